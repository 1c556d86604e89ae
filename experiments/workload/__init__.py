"""Experiments on linear queries under local privacy: there is no paper but our own program."""
