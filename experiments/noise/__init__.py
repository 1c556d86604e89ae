"""Experiments on additive noise for integers: there is no paper but our own program."""
