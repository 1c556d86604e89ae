"""The group ``dpopt``, and one run of it: an exit code and at most one sentence.

The command of each kind is made from what its class says, which is imported when it is used; kinds
are listed in `dpopt._kinds`.
"""

from __future__ import annotations

import math
import os
import re
import sys
import time
import warnings
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from dpopt import __version__
from dpopt._errors import (
    BudgetError,
    DpoptError,
    InfeasibleError,
    NotPrivateError,
    ParameterError,
    SolverError,
)
from dpopt._kinds import KINDS, VERBS, described, hyphened
from dpopt.cli import output
from dpopt.cli.certify import certify, verify
from dpopt.cli.options import Flag, command, help_of, parameters
from dpopt.cli.release import ledger, mode, release, sample

if TYPE_CHECKING:
    from dpopt.shape import Design

# Characters of an error that is shown on one line.
_LONGEST = 600


class Kind(click.Command):
    """The command of a kind, whose class is imported once its options are asked for."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind, callback=self._run, short_help=KINDS[kind][1])

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the options of the fields of the kind's class, then those of every kind."""
        if not self.params:
            about = described(self._class)
            self.params = [*parameters(about.fields), *_OPTIONS]
            self.help, self.epilog = help_of(about)
        return super().get_params(ctx)

    @property
    def _class(self) -> Any:  # noqa: ANN401
        from dpopt.shape import kind_of

        return kind_of(cast(str, self.name))

    def _run(self, **given: Any) -> None:  # noqa: ANN401
        shared = {option.name: given.pop(cast(str, option.name)) for option in _OPTIONS}
        typed = {name: value for name, value in shared.items() if value is not None}
        _designed(self._class, given, **typed)


def _designed(
    kind: Any,  # noqa: ANN401
    given: dict[str, Any],
    backend: str | Literal["highs", "cvxpy", "cvxpy:CLARABEL", "cvxpy:GUROBI"] | None = None,
    time_limit: float | None = None,
    stop_at_gap: float = 0.0,
    proof: Flag = False,
    even_if_not_private: Flag = False,
    json: Flag = False,
    all_rows: Flag = False,
    plot: Path | None = None,
    style: Literal["plain", "neurips", "icml", "ieee"] = "plain",
    save: Path | None = None,
) -> None:
    """Design, save, draw and print what the options ask for.

    Args:
        kind: class of the setting.
        given: its fields; None for one that was not typed.
        backend: solve the linear program with highs, cvxpy or cvxpy:SOLVER, such as cvxpy:GUROBI;
            otherwise the closed form is taken where there is one, else highs.
        time_limit: seconds for the solve.
        stop_at_gap: In [0, 1]: stop once value and bound are this near, as a share of the program's
            objective; the result states its gap. A closed form has nothing to stop.
        proof: with --save X.json: write also X.proof.json, the proof of its bound, for dpopt
            verify.
        even_if_not_private: with --save: where the result is not private, write the record of its
            audit, which releases nothing.
        json: print the result as JSON.
        all_rows: print all rows, not the first 40.
        plot: draw the result to .png, .pdf or .svg.
        style: size and fonts of the drawing.
        save: write the result as JSON.
    """
    from dpopt.shape import design

    output.check_targets(plot, style, save)
    if proof and save is None:
        raise ParameterError("--proof is given without --save; it lies beside the saved file.")
    start = time.perf_counter()
    setting = kind(**{name: value for name, value in given.items() if value is not None})
    mechanism = design(setting, backend=backend, time_limit=time_limit, stop_at_gap=stop_at_gap)
    seconds = time.perf_counter() - start
    # First what may be refused: without a proof that a kind could have nothing is written.
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        if save is not None and (mechanism.private or even_if_not_private):
            mechanism.save(save, even_if_not_private=even_if_not_private, proof=proof)
    if plot is not None:
        output.draw(mechanism.plot, plot, style)
    for warning in said:
        click.echo(output.escaped(f"Note: {warning.message}"), err=True)
    table = list[str]()
    if not json:
        try:
            table = output.table_lines(mechanism.setting.columns(mechanism.table), all_rows)
        except ParameterError as error:
            table = [f"no table: {error}"]
    lines = [*output.listed({**_facts(mechanism), "seconds": f"{seconds:.3f}"}), "", *table]
    output.show_record(json, {**mechanism.to_dict(), "seconds": seconds}, lines)
    try:
        mechanism._require_private()
    except NotPrivateError as error:
        unsaved = save is not None and not even_if_not_private
        hint = "Nothing was saved; --even-if-not-private saves the audit, which releases nothing."
        raise NotPrivateError(f"{error} {hint}" if unsaved else str(error)) from None


# The options of every kind, and the words for how a bound is known.
_OPTIONS = parameters(described(_designed).fields[2:])
_KNOWN_BY = {
    "proved": "proved in exact arithmetic",
    "float": "the solver's dual bound in floating point, not proved",
    "stated": "what the file says, not checked",
}


def _facts(found: Design) -> dict[str, str]:
    """Return what is printed of a design above its table."""
    from dpopt.privacy.guarantee import Guarantee, in_short

    facts, proof = dict[str, str](), found.certificate
    for name, value in found.summary().items():
        # Some means are of tables that cannot be listed.
        if value is None or (isinstance(value, float) and math.isnan(value)):
            continue
        facts[name] = in_short(value) if isinstance(value, Guarantee) else output.told(value)
        if name == "value":
            facts["value_is"] = f"better if {'larger' if found.setting.maximises else 'smaller'}"
    if found.bound is not None:
        facts["bound_is"] = _KNOWN_BY[found.bound.how]
    facts["certificate"] = "none"
    if proof is not None:
        plural = "" if proof.constraints == 1 else "s"
        facts["certificate"] = f"{proof.constraints:,} constraint{plural}; {proof.arithmetic}"
    return facts


@command()
def cite() -> None:
    """Print BibTeX: the papers behind the commands, this package, the solvers, related software.

    Example:
        dpopt cite
    """
    output.show(
        *(files("dpopt") / "references.bib").read_text(encoding="utf-8").strip().split("\n")
    )


@command()
def doctor(json: Flag = False) -> None:
    """Print versions, and solve a known program with each backend.

    Exit code 3 if a backend does not return the known optimum.

    Args:
        json: print the findings as JSON.

    Example:
        dpopt doctor
    """
    from dpopt.files import versions

    installed = versions(
        *("pandas", "polars", "scikit-learn", "opendp", "dp-accounting", "joblib", "torch")
    )
    backends = [_tried(name) for name in _backends()]
    ends = {
        entry["backend"]: f"{entry['failure'] or 'optimum 11 found'} in {entry['seconds']:.3f} s"
        for entry in backends
    }
    output.show_record(
        json, {"versions": installed, "backends": backends}, output.listed({**installed, **ends})
    )
    wrong = [entry["backend"] for entry in backends if not entry["correct"]]
    if wrong:
        raise SolverError(f"the known optimum was not found by {', '.join(wrong)}.")


def _backends() -> list[str]:
    import cvxpy

    return ["highs", *(f"cvxpy:{name}" for name in cvxpy.installed_solvers())]


def _tried(backend: str) -> dict[str, Any]:
    """Solve max 3a + 2b, a + b <= 4, a + 3b <= 6, a <= 3: 11 at (3, 1)."""
    from dpopt import Problem, solve

    problem = Problem("known optimum 11")
    problem.add_variables("x", 2, lower=0.0, upper=10.0)
    problem.add_rows("limits", {"x": [[1.0, 1.0], [1.0, 3.0], [1.0, 0.0]]}, upper=[4.0, 6.0, 3.0])
    problem.maximise({"x": [3.0, 2.0]})
    start = time.perf_counter()
    try:
        objective = solve(problem, backend=backend).objective
        failure = None if abs(objective - 11.0) < 1e-4 else f"FAILED: {objective} for 11"
    except DpoptError as error:
        objective, failure = None, f"FAILED: {error}"
    return {
        "backend": backend,
        "objective": objective,
        "correct": failure is None,
        "failure": failure,
        "seconds": time.perf_counter() - start,
    }


class _Group(click.Group):
    """Mechanisms, each with the command that designs it, then what is done with files of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [*KINDS, *VERBS]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of a name; of a name that is none, say which one is near."""
        name = args[0]
        if name not in self.commands and not name.startswith("-"):
            similar = get_close_matches(name, self.commands, 1)
            mean = f" Did you mean {similar[0]!r}?" if similar else ""
            ctx.fail(f"No such command {name!r}.{mean}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List what linear programs decide, then what is done with it."""
        del ctx
        width = formatter.width - 6 - max(map(len, self.commands))
        for title, names in (("Mechanisms", KINDS), ("Files and tools", VERBS)):
            listed = [(name, self.commands[name].get_short_help_str(width)) for name in names]
            with formatter.section(title):
                formatter.write_dl(listed)


@click.group(
    cls=_Group,
    epilog="""\b
Exit codes:
  0    it is done
  2    bad input: a parameter, or a file that is missing or was changed; or a
       release that its ledger refuses
  3    no solution: infeasible, out of time or memory, or a solver failed
  4    not private, or not proved to be; what was found is printed all the same
  5    standard output took no answer; if a category or label was drawn, that is
       spent, and the message says so
  130  interrupted (Ctrl-C)
""",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="dpopt")
@click.pass_context
def cli(context: click.Context) -> None:
    """Differentially private mechanisms, designed by linear programming."""
    from dpopt._progress import progress_bar

    context.with_resource(progress_bar())


for _command in (
    *map(Kind, KINDS),
    *(verify, certify, release, mode, sample, ledger, cite, doctor),
):
    cli.add_command(_command)


def loaded() -> click.Group:
    """Return the group with the options of all its commands, for those who read them there."""
    for each in cli.commands.values():
        each.get_params(click.Context(each))
    return cli


def run(arguments: Sequence[str] | None) -> tuple[int, str]:
    """Return the exit code of ``dpopt`` with these arguments, and the sentence for its user."""
    typed = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = cli.main(args=typed or ["--help"], prog_name="dpopt", standalone_mode=False)
    except click.ClickException as error:
        return 2, f"{_sentence(error.format_message())}{_hint(error)}"
    except (BudgetError, ParameterError) as error:
        return 2, _sentence(str(error))
    except (InfeasibleError, SolverError) as error:
        return 3, _sentence(str(error))
    except NotPrivateError as error:
        return 4, _sentence(str(error))
    except MemoryError:
        return 3, "out of memory; ask for a smaller instance."
    except output.OutputError as error:
        return 5, _sentence(str(error))
    except (UnicodeEncodeError, OSError) as error:
        # Every file is read and written by functions that refuse by name: this is click's help.
        return 5, _sentence(str(output.refused(error)))
    except (click.Abort, KeyboardInterrupt):
        return 130, "interrupted."
    except SystemExit as end:
        if "_DPOPT_COMPLETE" in os.environ:
            raise
        # So click ends where the reader of its help has gone.
        output.abandon()
        return (5, "standard output took no answer: nobody reads it.") if end.code else (0, "")
    if sys.stdout is None:
        # What the verbs write says so itself; click writes its help to nowhere.
        return 5, f"{output.CLOSED}."
    return (code if isinstance(code, int) else 0), ""


def _hint(error: click.ClickException) -> str:
    """Return which option takes what was typed without one; nothing of other errors."""
    # Errors of click's that are of another class are about options.
    context = error.ctx if type(error) is click.UsageError else None
    names = [] if context is None else [option.name for option in context.command.params]
    return " An input is given by --input, or its counts by --counts." if "input" in names else ""


def _sentence(message: str) -> str:
    """Return one sentence, whatever the library that refused had to say; arguments as options."""
    sentence = output.escaped(" ".join(message.split()))
    if len(sentence) > _LONGEST:
        sentence = f"{sentence[: _LONGEST // 2]} ... {sentence[-_LONGEST // 2 :]}"
    # An argument as a sentence of the library names it: rule='ladder', or inputs= without a value.
    sentence = re.sub(
        r"\b([a-z_]+)=(?:(['\"])([^'\"]*)\2|(?=[\s,.;]))",
        lambda found: f"{hyphened(found[1])} {found[3] or ''}".strip(),
        sentence,
    )
    return sentence if sentence.endswith((".", "?")) else f"{sentence}."
