"""Experiments of the papers on Reveal-or-Obscure."""
