"""Experiments of "Smoothed Differential Privacy"."""

PAPER = "Smoothed Differential Privacy"
