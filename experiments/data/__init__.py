"""Loaders of data sets that the user brings; the project ships none of them."""
