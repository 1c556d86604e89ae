"""Experiments of the paper on locally private sampling with a public prior."""
