"""The report: an index page, and a page for every figure or table that a folder keeps."""
