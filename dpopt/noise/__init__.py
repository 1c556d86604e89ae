"""Additive noise on all integers with the least mean loss, certified."""
