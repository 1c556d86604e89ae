"""Kinds of options whose values Tab completes; what is wrong with a value, the library says."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

# As in the modules that refuse others; literal, for Tab must not wait until those are loaded.
MAJORITY_OBJECTIVES = ("expected-error", "surrogate", "worst-case")
KERNEL_OBJECTIVES = ("minimax", "leximin", "population")
ROO_RULES = ("exact", "roo", "journal", "journal-repaired", "conference")
SAMPLE_RULES = ("exact", "smooth-floor", "roo")
PRIORS = ("uniform:", "common-uniform:", "beta:", "common-beta:", "point:")
BACKENDS = ("highs", "cvxpy", "cvxpy:CLARABEL", "cvxpy:SCS", "cvxpy:GUROBI", "cvxpy:MOSEK")
MECHANISMS = ("majority", "gnmax", "roo", "public-prior", "kernel", "smoothed")


class Words(click.ParamType):
    """A text; Tab offers some words and, where it may be a file's name, the files.

    Attributes:
        words: what is offered.
        files: whether the text may be the name of a file.
    """

    name = "text"

    def __init__(self, *words: str, files: bool = False) -> None:
        self.words, self.files = words, files

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the words that begin as what was typed does, or leave it to the shell's files."""
        del ctx, param
        found = [CompletionItem(word) for word in self.words if word.startswith(incomplete)]
        return [*found, CompletionItem(incomplete, type="file")] if self.files else found
