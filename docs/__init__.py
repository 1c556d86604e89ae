"""The pages of the site, and what Sphinx is told to make them."""
