"""The papers' figures and tables, and what the linear programs say beyond them."""
