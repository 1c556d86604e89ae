"""The report: an index page, and a page for every figure or table that a folder keeps."""

from experiments.report.pages import write_report

__all__ = ["write_report"]
