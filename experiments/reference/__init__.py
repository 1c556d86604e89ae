"""The API reference: HTML pages from the docstrings of every public name."""
