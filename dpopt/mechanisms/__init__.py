"""Mechanisms, one paper to a module."""
