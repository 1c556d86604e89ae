"""Experiments of the Reveal-or-Obscure papers."""

from experiments.roo import audit_map, bounds_figure, conference, obscuring, table_one, utility

EXPERIMENTS = (
    obscuring.EXPERIMENT,
    bounds_figure.EXPERIMENT,
    conference.EXPERIMENT,
    table_one.EXPERIMENT,
    audit_map.EXPERIMENT,
    utility.EXPERIMENT,
)
