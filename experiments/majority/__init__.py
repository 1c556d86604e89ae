"""Experiments of the DaRRM paper."""
