"""``dpopt KIND``: the command of each kind, made from what its class says."""

from __future__ import annotations

import math
import time
import warnings
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from dpopt._errors import NotPrivateError, ParameterError
from dpopt._kinds import KINDS, described
from dpopt.cli.options import Flag, help_of, parameters
from dpopt.cli.output import OPTIONS, Answer, escaped

if TYPE_CHECKING:
    from dpopt.shape import Design


class Kind(click.Command):
    """The command of a kind, whose class is imported once its options are asked for."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind, callback=self._run, short_help=KINDS[kind][1])

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the options of the fields of the kind's class, then those of every kind."""
        if not self.params:
            about = described(self._class)
            self.params = [*parameters(about.fields), *_OPTIONS, *OPTIONS]
            self.help, self.epilog = help_of(about)
        return super().get_params(ctx)

    @property
    def _class(self) -> Any:  # noqa: ANN401
        from dpopt.shape import kind_of

        return kind_of(cast(str, self.name))

    def _run(self, **given: Any) -> None:  # noqa: ANN401
        answer = Answer.of(given)
        shared = {option.name: given.pop(cast(str, option.name)) for option in _OPTIONS}
        typed = {name: value for name, value in shared.items() if value is not None}
        _designed(self._class, given, answer, **typed)


def _designed(
    kind: Any,  # noqa: ANN401
    given: dict[str, Any],
    answer: Answer,
    backend: str | Literal["highs", "cvxpy", "cvxpy:CLARABEL", "cvxpy:GUROBI"] | None = None,
    time_limit: float | None = None,
    stop_at_gap: float = 0.0,
    proof: Flag = False,
    even_if_not_private: Flag = False,
) -> None:
    """Design, save, draw and print what the options ask for.

    Args:
        kind: class of the setting.
        given: its fields; None for one that was not typed.
        answer: what becomes of the design.
        backend: solve the linear program with highs, cvxpy or cvxpy:SOLVER, such as cvxpy:GUROBI;
            otherwise the closed form is taken where there is one, else highs.
        time_limit: seconds for the solve.
        stop_at_gap: In [0, 1]: stop once value and bound are this near, as a share of the program's
            objective; the result states its gap. A closed form has nothing to stop.
        proof: with --save X.json: write also X.proof.json, the proof of its bound, for dpopt
            verify.
        even_if_not_private: with --save: where the result is not private, write the record of its
            audit, which releases nothing.
    """
    from dpopt.shape import design

    if proof and answer.save is None:
        raise ParameterError("--proof is given without --save; it lies beside the saved file.")
    start = time.perf_counter()
    setting = kind(**{name: value for name, value in given.items() if value is not None})
    mechanism = design(setting, backend=backend, time_limit=time_limit, stop_at_gap=stop_at_gap)
    seconds = time.perf_counter() - start
    # First what may be refused: without a proof that a kind could have nothing is written.
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        if answer.save is not None and (mechanism.private or even_if_not_private):
            mechanism.save(answer.save, even_if_not_private=even_if_not_private, proof=proof)
    answer.draw(mechanism.plot)
    for warning in said:
        click.echo(escaped(f"Note: {warning.message}"), err=True)
    columns = lambda: mechanism.setting.columns(mechanism.table)  # noqa: E731
    answer.show(mechanism.to_dict(), _facts(mechanism), columns, seconds)
    try:
        mechanism._require_private()
    except NotPrivateError as error:
        unsaved = answer.save is not None and not even_if_not_private
        hint = "Nothing was saved; --even-if-not-private saves the audit, which releases nothing."
        raise NotPrivateError(f"{error} {hint}" if unsaved else str(error)) from None


# The options of every kind, and the words for how a bound is known.
_OPTIONS = parameters(described(_designed).fields[3:])
_KNOWN_BY = {
    "proved": "proved in exact arithmetic",
    "float": "the solver's dual bound in floating point, not proved",
    "stated": "what the file says, not checked",
}


def _facts(found: Design) -> dict[str, Any]:
    """Return what is printed of a design above its table."""
    facts, proof = dict[str, Any](), found.certificate
    for name, number in found.summary().items():
        facts[name] = number
        if name == "value" and not math.isnan(number):
            better = "larger" if found.setting.maximises else "smaller"
            facts["value_is"] = f"better if {better}"
    if found.bound is not None:
        facts["bound_is"] = _KNOWN_BY[found.bound.how]
    facts["certificate"] = "none"
    if proof is not None:
        plural = "" if proof.constraints == 1 else "s"
        facts["certificate"] = f"{proof.constraints:,} constraint{plural}; {proof.arithmetic}"
    return facts
