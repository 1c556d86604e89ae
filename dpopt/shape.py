"""The shape of every mechanism: setting -> problem -> table -> repair -> verifier -> design.

A `Setting` is a frozen dataclass of parameters; its `Design` is the optimum of a linear program.
Where the optimum is known in closed form, the closed form is another solver of the same program:

    dpopt.design(setting)                    # the closed form, or HiGHS where there is none
    dpopt.design(setting, backend="highs")   # the program as the paper displays it
    dpopt.design(setting, backend="cvxpy")   # the same through any solver of cvxpy

What a solver returned is made a *table* of integers, repaired until the judge (`dpopt.verify`)
accepts it; the table is saved and released from, and nothing else is. docs/adding.md says how to
add a kind.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from importlib import import_module
from inspect import signature
from itertools import accumulate, pairwise
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt

from dpopt import _checks, _kinds, verify
from dpopt._errors import MALFORMED, NotPrivateError, ParameterError, SolverError
from dpopt._figure import new_axes, result_page
from dpopt._numbers import shown
from dpopt._types import IntVector, Json, Vector, brief
from dpopt.files import check_json_target, versions
from dpopt.lp import Backend, Solution, Status, solve
from dpopt.privacy import Problem
from dpopt.privacy.guarantee import Certificate, Guarantee, in_short, plain
from dpopt.privacy.release import Source, below, seeded, system
from dpopt.proofs import SMALL, Bound, Optimality, laid_beside, optimality
from dpopt.proofs.saved import AUDIT, STATED, read_sealed, seal
from dpopt.table import (
    Losses,
    Table,
    add_table,
    certify_table,
    interior,
    polished,
    probabilities_of,
    repair,
    rounded,
)
from dpopt.table.least import dominating_pair, least_of_table, pairs_of
from dpopt.table.table import BITS, alike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpopt.privacy.cost import DominatingPair, Least
    from dpopt.verify import Name

__all__ = ["Design", "Setting", "design", "kinds", "load", "made"]

# All kinds of settings by name.
_KINDS: dict[str, type[Setting]] = {}


class Setting(ABC):
    """Parameters of a private mechanism that a linear program decides: the paper in miniature.

    A subclass is a frozen dataclass. Its docstring displays the program, and names the fields under
    "Attributes:"; from these come the options of its command and their help.

    What it must say: an `example` and its `guarantee`; and a `dpopt.table.Table` over `inputs` that
    has `losses` needs no more: program, value, table, repair, proof, draws, files, frames and the
    proof of its bound follow. One with another objective says `problem` and `value`; one whose
    integers are something else says `table`, `judge`, `output_weights`, `plain` and `read`.

    Attributes:
        kind: of its files and its command; lower case with hyphens.
        summary: names of numbers of `report` that every short form of a design shows.
        domain: the variables of its table and which of them are neighbours, `dpopt.table.Inputs`;
            usually a cached property. Not there if the integers are no table.
        losses: what the table loses, `dpopt.table.Losses`, from which `problem` and `value` follow;
            likewise. None if the setting says these.
    """

    kind: ClassVar[str]
    summary: ClassVar[Any] = ()
    domain: Any
    losses: Any = None

    def __init_subclass__(cls) -> None:
        """Register the kind, if the class states one; its repr is one line."""
        super().__init_subclass__()
        if "__repr__" not in cls.__dict__:
            # Put here, it is kept by `dataclass`, whose own would print every array.
            cls.__repr__ = Setting.__repr__
        if "kind" in cls.__dict__:
            _register(cls)

    def __repr__(self) -> str:
        names = _parameters(type(self))
        return brief(self, **{n: getattr(self, n) for n in names if n not in self.unshown})

    @property
    def unshown(self) -> tuple[str, ...]:
        """Names of fields that say nothing here, which short forms leave out."""
        return ()

    @property
    def bits(self) -> int:
        """Bits of the total of a table's weights."""
        return BITS

    def keep(self, **checked: object) -> None:
        """Set fields to their checked values: for ``__post_init__``, which a frozen class has."""
        names = [f.name for f in fields(cast(Any, self))]
        for name, value in checked.items():
            if name not in names:
                raise ParameterError(
                    f"keep was given {name!r}; fields of {type(self).__name__} are "
                    f"{', '.join(names)}."
                )
            object.__setattr__(self, name, value)

    # --- what a mechanism says ---

    @classmethod
    @abstractmethod
    def example(cls) -> Self:
        """Return a small one, which every solver answers at once."""

    @classmethod
    def example_neighbours(cls) -> Sequence[tuple[Any, Any]]:
        """Return pairs of neighbouring inputs of the example, whose distributions tests compare.

        Of votes of private voters, those that differ are of voters who say either, as differently
        as their privacy allows.
        """
        return ()

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What the mechanism promises."""

    def problem(self) -> Problem:
        """Return the program as the paper displays it, its rows named.

        By default over private tables: rows "sums", "privacy", "delta" and "losses".

        Raises:
            ParameterError: if it would be too large to write out; it says up to which size.
        """
        problem = Problem(self.kind)
        add_table(problem, self.domain, self.guarantee)
        self._required_losses().add(problem, self.domain, self.guarantee)
        return problem

    def value(self, table: Any) -> float:  # noqa: ANN401
        """Return the objective of a table, computed from its integers alone."""
        return float(self._required_losses().value(table))

    def _required_losses(self) -> Losses:
        losses = self.losses
        if losses is None:
            raise ParameterError(f"kind {self.kind!r} says neither its losses nor its problem.")
        return losses

    def searched(
        self, backend: str | Backend | None, time_limit: float | None, stop_at_gap: float = 0.0
    ) -> Design | None:
        """Return the design if it is found over several programs; None if one decides it."""
        del backend, time_limit, stop_at_gap

    def closed_form(self) -> Any:  # noqa: ANN401
        """Return the optimum without a program, as a table; None if no closed form is known."""
        return None

    def report(self, table: Any) -> Mapping[str, Callable[[], Any]]:  # noqa: ANN401
        """Return further numbers of a design by name, each computed when it is first asked for."""
        del table
        return {}

    # --- what follows for tables over inputs ---

    def solved(
        self, backend: str | Backend, time_limit: float | None, stop_at_gap: float = 0.0
    ) -> Solution:
        """Solve `problem`; overridden where the program is solved in stages or in another form."""
        return solve(self.problem(), backend, time_limit=time_limit, stop_at_gap=stop_at_gap)

    def point(self, solution: Solution) -> Any:  # noqa: ANN401
        """Return what the paper calls the variable, such as gamma, q or K, out of a solution."""
        return probabilities_of(self.domain, self.guarantee, solution)

    def table(self, point: Any) -> Any:  # noqa: ANN401
        """Return a point as a private table: polished, rounded, and mixed until it is accepted.

        Raises:
            NotPrivateError: if no table near it is private.
        """
        inputs, guarantee = self.domain, self.guarantee
        values = polished(inputs, point, guarantee)
        first = rounded(inputs, values, self.bits, equal=alike(guarantee))
        return repair(first, self.interior(values), self.judge, self.bits)[0]

    def interior(self, values: Vector) -> Table:
        """Return a table whose inequalities all hold with slack; by default near the mean row."""
        return interior(self.domain, values, self.bits)

    def judge(self, table: Any) -> Certificate:  # noqa: ANN401
        """Return the exact proof of a table, from its integers and the setting alone.

        The integers may be out of a file that anybody could have written.

        Raises:
            NotPrivateError: if they are not private.
            ParameterError: if they are no table of this setting.
        """
        self._require_own(table)
        return certify_table(table, self.guarantee)

    def _require_own(self, table: object) -> None:
        if not isinstance(table, Table) or table.inputs != self.domain:
            raise ParameterError(f"table is {shown(table)}; it must be one over these inputs.")

    def output_weights(self, table: Any, data: Any) -> Sequence[int]:  # noqa: ANN401
        """Return the distribution of the output for one input, which is checked: integers."""
        return _table(self, table, "it has no Table and no output_weights").row(data)

    def drawn(self, table: Any, data: Any, source: Source) -> Any:  # noqa: ANN401
        """Return the output for data, or an array of outputs for several inputs, drawn exactly.

        Raises:
            ParameterError: for data that are no input; only who holds them may see it.
        """
        if isinstance(table, Table):
            outputs, single = table.drawn(data, source)
            if single:
                return self.output(int(outputs[0]))
            return outputs if type(self).output is Setting.output else self._called(outputs)
        return self.output(_one_of(self.kind, self.output_weights(table, data), source))

    def _called(self, places: IntVector) -> npt.NDArray[Any]:
        """Return what outputs are called, as an array of objects."""
        return np.frompyfunc(self.output, 1, 1)(places)

    def release_count(self, table: Any, data: Any) -> int:  # noqa: ANN401
        """Return how many outputs are drawn for data, after a check."""
        if isinstance(table, Table):
            return len(table.inputs.located(data)[0])
        self.output_weights(table, data)
        return 1

    def output(self, place: int) -> Any:  # noqa: ANN401
        """Return the output with a number; by default the number itself."""
        return place

    def columns(self, table: Any) -> Mapping[str, Sequence[Any]]:  # noqa: ANN401
        """Return the design as one tidy table, columns by name: for frames and the command line."""
        return _table(self, table, "it has no Table and no columns").columns()

    def draw(self, axes: Axes, table: Any, label: str | None = None) -> None:  # noqa: ANN401
        """Draw the design on axes: by default a line for each input up to symmetry.

        Of a kind with `columns` of its own, the last column of numbers against the first column.
        """
        if type(self).columns is not Setting.columns or not isinstance(table, Table):
            _draw_columns(axes, self.columns(table), label)
            return
        starts = table.inputs.starts.tolist()
        for row, (start, end) in enumerate(pairwise(starts)):
            # Up to eleven rows are named one by one.
            named = f"input {row}" if len(starts) <= 12 else label
            values = table.probabilities[start:end]
            axes.plot(range(len(values)), values, marker="o", markersize=3, label=named)
        axes.set_xlabel("output")
        axes.set_ylabel("probability")
        if 1 < len(starts) - 1 < 12:
            axes.legend(fontsize="small")

    def plain(self, table: Any) -> Any:  # noqa: ANN401
        """Return a table as plain values for a file; whole numbers as text, of any length."""
        return _table(self, table, "it has no Table and no plain").plain()

    def read(self, plain: Any) -> Any:  # noqa: ANN401
        """Return the table of a file, checked in form only; `judge` decides it."""
        return Table.read(self.domain, plain)

    # --- what few mechanisms say ---

    @property
    def maximises(self) -> bool:
        """Whether a larger value is better: as the losses say, where there are any."""
        return self.losses is not None and self.losses.maximise

    @property
    def together(self) -> int:
        """How many outputs spend the guarantee once: the field ``releases``; 1 without one."""
        return getattr(self, "releases", 1)

    @property
    def behind(self) -> tuple[Guarantee, int] | None:
        """Guarantee and number of the private voters whose outputs are the data; None if none are.

        Releases compose only if every vote was drawn afresh; see `dpopt.votes.Spending`.
        """
        return None

    @property
    def may_fail(self) -> bool:
        """Whether this is a published rule, which gets a design even where it is not private."""
        return False

    def bound(self, table: Any, solution: Solution | None) -> float | None:  # noqa: ANN401
        """Return a bound on the value of any other table: that of the solver's duals.

        For a closed form it is the value itself, since that is the optimum. None if none is known.
        """
        return self.value(table) if solution is None else solution.bound

    def _proof_size(self, table: Any) -> int:  # noqa: ANN401
        """Return about how many entries of rows a proof looks at: if few, it is made unasked."""
        if not isinstance(table, Table):
            return SMALL + 1
        inputs = table.inputs
        if self.guarantee.delta > 0:
            return inputs.size + 6 * len(inputs.edges.first)
        groups = inputs.neighbours
        return inputs.size + 2 * groups.size * (groups.shape[1] - 1)

    def _proof_rows(self, table: Any) -> Sequence[Name] | None:  # noqa: ANN401
        """Return names of rows whose multipliers may prove the bound; None for all tight ones."""
        del table

    def _proof_data(self, table: Any) -> Json:  # noqa: ANN401
        """Return what a proof file carries where the setting cannot state it exactly."""
        del table
        return {}

    def as_point(self, values: Vector) -> Any:  # noqa: ANN401
        """Return numbers that somebody else found, checked, as `point` returns them."""
        return values

    def dominating(self, table: Any) -> DominatingPair:  # noqa: ANN401
        """Return the tight dominating pair over all neighbours; refused if none is known."""
        return dominating_pair(_table(self, table, "no dominating pair of it is known"))

    def output_pairs(self, table: Any) -> list[tuple[Vector, Vector]]:  # noqa: ANN401
        """Return distributions (P, Q) of all neighbours that count; refused if none are known."""
        return pairs_of(_table(self, table, "no pairs of neighbours of it are listed"))

    def spent(self, table: Any, epsilon: float | None, delta: float | None) -> Least:  # noqa: ANN401
        """Return the least epsilon for a delta, or delta for an epsilon, enclosed; or refuse."""
        listed = _table(self, table, "no least epsilon of it is known")
        return least_of_table(listed, epsilon, delta)

    def to_dict(self) -> Json:
        """Return the parameters as plain values, from which `from_dict` makes them again."""
        return {name: plain(getattr(self, name)) for name in _parameters(type(self))}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the setting of a file's parameters."""
        try:
            signature(cls).bind(**values)
        except TypeError as error:
            raise ParameterError(
                f"setting is {shown(values)}; it must hold the parameters of {cls.kind!r} "
                f"({', '.join(_parameters(cls))}) by name: {error}."
            ) from None
        return cls(**values)


def _table(setting: Setting, table: object, lacking: str) -> Table:
    """Return a table over inputs; of other integers, a setting has members of its own."""
    if not isinstance(table, Table):
        raise ParameterError(f"kind is {setting.kind!r}; {lacking}.")
    return table


def _displayed(setting: Setting, table: Any) -> tuple[str, Json] | None:  # noqa: ANN401
    """Return kind and setting of the program that `dpopt.verify` displays, None if there is none.

    Of a kind that it does not know, that of a table over inputs that are written out.
    """
    if setting.kind in verify.KINDS:
        return setting.kind, setting.to_dict()
    if not isinstance(table, Table) or setting.losses is None or setting.losses.maximise:
        return None
    promised = setting.guarantee
    written = table.inputs.plain(sets=promised.delta > 0)
    numbers = {"epsilon": promised.epsilon, "delta": promised.delta}
    return "table", {**numbers, "inputs": written, "losses": setting.losses.plain()}


def _one_of(kind: str, weights: Sequence[int], source: Source) -> int:
    """Return a place drawn in proportion to weights; every sum is compared: no draw stops early."""
    numbers = isinstance(weights, Sequence) and set(map(type, weights)) == {int}
    if not numbers or min(weights) < 0 or not any(weights):
        raise ParameterError(
            f"output_weights of kind {kind!r} must be a list of integers of at least 0, not all of "
            "them 0; Python's own, which do not overflow."
        )
    sums = list(accumulate(weights))
    return sum(map(below(sums[-1], source).__ge__, sums))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Design:
    """A mechanism: integers, the proof that they are private, and draws from exactly these.

    What else a setting reports of its designs (`Setting.report`) is an attribute, computed when it
    is first asked for: `design.gamma` of a majority, `design.kernel` of a kernel.

    A result's certificate is about its own integers and no others: a constructor call and
    `dataclasses.replace` compare its digest with them, and a copy or a pickle is proved again. Who
    writes into ``__dict__`` is not stopped.

    Attributes:
        setting: what was asked.
        table: the integers that were proved, and that `release` draws from.
        certificate: the exact proof; None if they are not private, which only a published rule or a
            given point can be.
        solution: the solve behind it; None for a closed form, a given point, or a file.
        provenance: versions that made it.
    """

    setting: Any
    table: Any
    # What the solver's duals bound in floats, in the units of `value`; None if nothing is known.
    _float_bound: float | None = None
    solution: Solution | None = None
    provenance: dict[str, str] = field(default_factory=versions)
    # Names, as in `to_dict`, of what a file stated and nothing here could check.
    _stated: tuple[str, ...] = ()
    certificate: Certificate | None = None
    # Numbers that one way to make the design knows, beside those of `Setting.report`.
    _details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a setting that is none, and a certificate of something else or of less."""
        _checks.instance("setting", self.setting, Setting)
        proof, promised = self.certificate, self.setting.guarantee
        if proof is None:
            return
        if not proof.is_about(*_subject(self.setting, self.table)):
            raise ParameterError(
                "certificate is not about the other numbers of this design: what is released was "
                "not proved; make the result anew instead of changing one of its fields."
            )
        proved = proof.guarantee
        if proved.epsilon > promised.epsilon or proved.delta > promised.delta:
            raise ParameterError(
                f"certificate is of {proved}, and kind {self.setting.kind!r} promises "
                f"{promised}; what is released must be proved."
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the fields; what is made of them is proved again."""
        return _restored, ({entry.name: getattr(self, entry.name) for entry in fields(self)},)

    @cached_property
    def _reported(self) -> Mapping[str, Callable[[], Any]]:
        return self.setting.report(self.table)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """Return a number that the setting reports, or one of `details`."""
        # Of an object that is being made, nothing is known yet.
        if name.startswith("_") or "_details" not in vars(self):
            raise AttributeError(f"a design has no {name!r}")
        if name in self._details:
            return self._details[name]
        if name in self._reported:
            # Kept beside the cached properties.
            value = vars(self)[name] = self._reported[name]()
            return value
        raise AttributeError(f"a design of kind {self.setting.kind!r} has no {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._reported, *self._details})

    @property
    def guarantee(self) -> Guarantee:
        """What the mechanism was meant to promise."""
        return self.setting.guarantee

    @property
    def private(self) -> bool:
        """Whether the guarantee was proved."""
        return self.certificate is not None

    @property
    def _verdict(self) -> str:
        return "private" if self.private else "not private"

    @cached_property
    def value(self) -> float:
        """The objective, computed from the table."""
        return self.setting.value(self.table)

    @cached_property
    def optimality(self) -> Optimality | None:
        """The exact bound and the multipliers that prove it, for the true e^epsilon.

        They are of the program that `dpopt.verify` displays for the plain values of a file. None
        where nothing is claimed of other points, or that module does not know the kind.

        Raises:
            ParameterError: if that module does not display such a setting, or it is too large.
            SolverError: if no multipliers were found.
        """
        setting, table = self.setting, self.table
        displayed = None if self._float_bound is None else _displayed(setting, table)
        if displayed is None:
            return None
        rows, numbers = setting._proof_rows(table), setting._proof_data(table)
        return optimality(*displayed, setting.plain(table), rows, numbers)

    @property
    def bound(self) -> Bound | None:
        """No point is better than this, in the units of `value`; None if nothing is known.

        A float that says how it is known, `Bound.how`: "proved", rounded outward from the rational
        of `optimality`, of small answers whose proof is as tight as the solver's duals (to 1e-8),
        or where that was asked for; "float", from these duals in double precision; "stated", what
        a file says.
        """
        if self._float_bound is None:
            return None
        if "bound" in self._stated:
            return Bound(self._float_bound, "stated")
        if "optimality" in vars(self) or self._quickly_proved:
            proof = self.optimality
            if proof is not None:
                return proof.as_float()
        return Bound(self._float_bound, "float")

    @cached_property
    def _quickly_proved(self) -> bool:
        """Whether there is a tight proof that takes no time worth asking for."""
        if self.status is Status.GAP or self._float_bound is None:
            return False
        try:
            if self.setting._proof_size(self.table) > SMALL or self.optimality is None:
                return False
        except (ParameterError, SolverError):
            return False
        looser = abs(self.optimality.as_float() - self._float_bound)
        if looser <= 1e-8 * max(1.0, abs(self.value)):
            return True
        # The rows of the proof were not those of the optimum: it is there if it is asked for.
        del vars(self)["optimality"]
        return False

    @property
    def gap(self) -> float | None:
        """How far value and bound are apart; below 0 by rounding only."""
        if self.bound is None:
            return None
        return self.bound - self.value if self.setting.maximises else self.value - self.bound

    @property
    def status(self) -> Status | None:
        """How the solve ended, perhaps at a gap; None of a closed form, a point, or a file."""
        return None if self.solution is None else self.solution.status

    def _require_private(self) -> None:
        """Refuse a mechanism without a certificate."""
        if not self.private:
            self.setting.judge(self.table)
            raise NotPrivateError(f"this {self.setting.kind} has no certificate.")

    def releases(self, data: object = None) -> int:
        """Return how often `release` spends the guarantee for data, which are checked.

        Once for each output; of a setting of k releases, once for every k outputs or fewer.

        Args:
            data: see `release`, as for what is raised.
        """
        return -(-self._outputs(data) // self.setting.together)

    def _outputs(self, data: object) -> int:
        """Return how many outputs `release` draws for data, which are checked."""
        self._require_private()
        return self.setting.release_count(self.table, data)

    def release(self, data: object = None) -> Any:  # noqa: ANN401
        """Return one private output for ``data``, with the operating system's randomness.

        Spends the whole guarantee, for data that change as the setting's neighbours do; a person
        who can change them in t such steps spends t times the epsilon. Several releases add up, see
        `dpopt.Ledger.release`; of a setting of k releases, k outputs spend the guarantee together.
        No seed; timing is outside the guarantee.

        Args:
            data: one input of the mechanism; of many kinds also an array of them, each of which
                gets an output.

        Raises:
            ParameterError: for data that are no input; the refusal is for the curator alone.
            NotPrivateError: if the mechanism has no certificate.
        """
        self._require_private()
        return self.setting.drawn(self.table, data, system)

    def simulate(self, data: object, rng: np.random.Generator) -> Any:  # noqa: ANN401
        """Return what `release` would, from a seeded generator: for experiments, NOT private."""
        return self.setting.drawn(self.table, data, seeded(rng))

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw the design on ``ax``, or on a new figure; return the axes."""
        axes = new_axes(ax)
        self.setting.draw(axes, self.table, label)
        return axes

    def summary(self) -> Json:
        """Return parameters, value, guarantee, verdict, bound, how it is known, and the gap."""
        how = None if self.bound is None else self.bound.how
        return {**self._headline(), "bound": self.bound, "bound_is": how, "gap": self.gap}

    def _summarised(self) -> Json:
        return {name: getattr(self, name) for name in self.setting.summary}

    def _headline(self) -> Json:
        """Return what the one-line repr says: of what is not proved, the guarantee is a target.

        Of an answer that was stopped before the optimum also status and gap.
        """
        words: Json = {
            name: value
            for name, value in self.setting.to_dict().items()
            if isinstance(value, int | float | str) and not isinstance(value, bool)
            if name not in self.setting.unshown
        }
        words |= {"value": self.value, **self._summarised()}
        words["guarantee" if self.private else "target"] = self.guarantee
        words["verdict"] = self._verdict
        stopped = self.status is Status.GAP
        return words | ({"status": str(self.status), "gap": self.gap} if stopped else {})

    def __repr__(self) -> str:
        stated = {STATED: ", ".join(self._stated)} if self._stated else {}
        return brief(self, **self._headline(), **stated)

    @property
    def _statement(self) -> str:
        """What was proved, and of what; or the inputs and the output that show a loss."""
        try:
            self._require_private()
        except NotPrivateError as error:
            return f"Not private; it releases nothing. {error}"
        proof = cast(Certificate, self.certificate)
        decided = f"{proof.constraints:,} inequalities decided in {proof.arithmetic}"
        return f"{in_short(self.guarantee)}: {proof.claim}. {decided}."

    def _repr_html_(self) -> str:
        """Return picture, what was proved, guarantee, verdict and facts, for notebooks."""
        facts = {
            name: in_short(fact) if isinstance(fact, Guarantee) else fact
            for name, fact in self._headline().items()
        }
        return result_page(type(self).__name__, self._statement, self.private, facts, self.plot)

    def to_dict(self) -> Json:
        """Return the design as plain values, ready for JSON; integers as text."""
        solved, proof = self.solution, self.certificate
        return {
            **self._written_out(),
            "setting": self.setting.to_dict(),
            "table": self.setting.plain(self.table),
            "value": _known(self.value),
            "bound": self.bound,
            "bound_is": None if self.bound is None else self.bound.how,
            "gap": _known(self.gap),
            **{name: _known(value) for name, value in self._summarised().items()},
            "status": None if solved is None else str(solved.status),
            "backend": None if solved is None else solved.backend,
            "provenance": self.provenance,
            **({STATED: list(self._stated)} if self._stated else {}),
            "private": self.private,
            "verdict": self._verdict,
            "certificate": None if proof is None else proof.to_dict(),
        }

    def _written_out(self) -> Json:
        """Return what `dpopt.verify` reads beside setting and integers."""
        own, promised = self.setting.kind, self.guarantee
        kind, program = _displayed(self.setting, self.table) or (own, None)
        return {
            "kind": own,
            "guarantee": {"epsilon": promised.epsilon, "delta": promised.delta},
            # Of a kind that it does not know.
            **({} if kind == own else {"displayed": program}),
        }

    def save(
        self,
        path: str | Path,
        *,
        even_if_not_private: bool = False,
        proof: bool = False,
        verifier: bool = False,
    ) -> None:
        """Write the design to a JSON file that `dpopt.load` proves again.

        Args:
            path: of the file.
            even_if_not_private: of a design without a certificate, write the record of its audit: a
                file for reading, which `dpopt.load` refuses as not private.
            proof: write also X.proof.json beside X.json, the multipliers that prove its bound, for
                ``python verify.py X.json X.proof.json``; see `dpopt.verify`. Of a rule or a given
                point, which bounds no other, a warning says that there is none.
            verifier: lay verify.py there too, which needs nothing but Python.

        Raises:
            ParameterError: if a file cannot be written, another verify.py is there, or no design of
                this kind has a proof.
            NotPrivateError: if it is not proved private and its audit was not asked for.
            SolverError: if no multipliers were found.
        """
        target, kind = Path(path), self.setting.kind
        check_json_target(target)
        proof_of_bound, data = None, cast("Json | None", None)
        if _checks.flag("proof", proof):
            displayed = _displayed(self.setting, self.table)
            if displayed is None:
                raise ParameterError(f"proof is True; there is no proof that a {kind!r} is best.")
            proof_of_bound = self.optimality
            if proof_of_bound is None:
                warnings.warn(
                    f"there is no proof of optimality: nothing says that a {kind!r} like this is "
                    "best. It is saved without one.",
                    stacklevel=2,
                )
            else:
                kind = displayed[0]
                data = {"setting": displayed[1], **self.setting._proof_data(self.table)}
        verifier = _checks.flag("verifier", verifier)
        with laid_beside(target, kind, proof_of_bound, verifier, data):
            audit = _checks.flag("even_if_not_private", even_if_not_private) and not self.private
            if not audit:
                self._require_private()
            of = {"of": self.setting.kind} if audit else {}
            seal(AUDIT if audit else self.setting.kind, {**of, **self.to_dict()}, target)


def _restored(values: dict[str, Any]) -> Design:
    """Return the design of a pickle, its digest compared and its proof made again."""
    read = Design(**values)
    if read.certificate is None:
        return read
    return replace(read, certificate=_proved(read.setting, read.table))


def _subject(setting: Setting, table: Any) -> tuple[object, ...]:  # noqa: ANN401
    """Return what a certificate is about: the kind, all parameters, and the integers."""
    return setting.kind, setting, getattr(table, "key", table)


def _proved(setting: Setting, table: Any) -> Certificate:  # noqa: ANN401
    """Return the proof of a table as one about this table in this setting, and no others."""
    proof = setting.judge(table)
    if not isinstance(proof, Certificate):
        raise ParameterError(
            f"judge of kind {setting.kind!r} returned {shown(proof)}; it must be a Certificate."
        )
    return proof.about(*_subject(setting, table))


def design(
    setting: Setting,
    *,
    backend: str | Backend | None = None,
    time_limit: float | None = None,
    stop_at_gap: float = 0.0,
) -> Design:
    """Return the mechanism that the program of a setting finds best, proved private.

    There is one exception: a paper's published rule that is not private is returned too, so that it
    can be inspected; its design has ``private`` False and no certificate, and releases nothing.

    Args:
        setting: an object of a class such as `dpopt.Majority` (`dpopt.kinds` lists all), or of a
            setting class of your own.
        backend: solver of the linear program, see `dpopt.solve`. None chooses a closed form where
            there is one, else a method made for the setting where there is one, else HiGHS.
        time_limit: seconds for the solver.
        stop_at_gap: in [0, 1]; 0 solves to optimality. If it is above 0, a solve that adds
            constraints round by round may stop early, at a feasible point whose value is within
            stop_at_gap * S of the bound. Here S is the larger of sum_j |c_j x_j| and max_j |c_j|
            for the objective sum_j c_j x_j. The design's ``status`` is then ``"gap"``, and its
            ``gap`` is the difference. The integers are proved private either way: if rounding
            breaks a constraint, they are mixed with a strictly private mechanism, just enough for
            the proof to succeed.

    Raises:
        ParameterError: if it is no setting, or its program is too large to write out.
        InfeasibleError: if the program has no solution.
        NotPrivateError: if privacy cannot be proved, unless the rule is a published one.
        SolverError: if the solver found no answer.

    Example:
        >>> import dpopt
        >>> from dpopt import RevealOrObscure
        >>> dpopt.design(RevealOrObscure(records=5, categories=2, epsilon=1.0)).private
        True
    """
    _check_setting(setting)
    if time_limit is not None:
        _checks.real("time_limit", time_limit, 0.0)
    stop_at_gap = _checks.real("stop_at_gap", stop_at_gap, 0.0, 1.0)
    several = setting.searched(backend, time_limit, stop_at_gap)
    if several is not None:
        return several
    table = setting.closed_form() if backend is None else None
    if table is not None:
        return made(setting, table)
    solution = setting.solved("highs" if backend is None else backend, time_limit, stop_at_gap)
    return made(setting, setting.table(setting.point(solution)), solution)


def made(
    setting: Setting,
    table: Any,  # noqa: ANN401
    solution: Solution | None = None,
    *,
    strict: bool | None = None,
    **others: Any,  # noqa: ANN401
) -> Design:
    """Return the design of a setting at a given table.

    Args:
        setting: what was asked.
        table: see `Setting.table`.
        solution: the solve behind them.
        strict: raise for a table that is not private, instead of leaving out the certificate;
            unless the setting `may_fail`, if None.
        others: further fields of the design; ``float_bound`` is `Setting.bound` unless given.

    Raises:
        ParameterError: if the table is none of this setting.
        NotPrivateError: if the table is not private, and strict.
    """
    _check_setting(setting)
    if "certificate" not in others:
        try:
            others["certificate"] = _proved(setting, table)
        except NotPrivateError:
            if strict or (strict is None and not setting.may_fail):
                raise
    stated = "float_bound" in others
    bound = others.pop("float_bound") if stated else setting.bound(table, solution)
    return Design(setting=setting, table=table, solution=solution, _float_bound=bound, **others)


def kinds() -> tuple[type[Setting], ...]:
    """Return all kinds of settings, the package's and your own, by name.

    Example:
        >>> import dpopt
        >>> {"kernel", "majority"} <= {kind.kind for kind in dpopt.kinds()}
        True
    """
    for module, _ in _kinds.KINDS.values():
        import_module(module)
    return tuple(_KINDS[name] for name in sorted(_KINDS))


def kind_of(name: str) -> type[Setting] | None:
    """Return the kind of a name; None if there is none."""
    if name not in _KINDS and name in _kinds.KINDS:
        import_module(_kinds.KINDS[name][0])
    return _KINDS.get(name)


def load(path: str | Path) -> Any:  # noqa: ANN401
    """Return a saved mechanism, proved again from its integers.

    Structure is checked first, then privacy, then the hash: if a file was edited so that it is not
    private, the error says that it is not private.

    Raises:
        ParameterError: if the file is missing, truncated, malformed, of another schema, or was
            changed after it was saved.
        NotPrivateError: if its integers are not private, or it holds an audit: the check of a
            published rule, not a mechanism to release from.
    """
    sealed = read_sealed(Path(path))
    if sealed.kind == AUDIT:
        raise NotPrivateError(
            f"file {str(sealed.path)!r} holds the audit of a mechanism "
            f"({shown(sealed.body.get('of'))}) that is not proved private; it is for reading and "
            "releases nothing."
        )
    kind = kind_of(sealed.kind)
    if kind is None:
        names = ", ".join(each.kind for each in kinds())
        raise sealed.refuse(
            f"its kind is {shown(sealed.kind)}; known are {names}; in Python, import the module "
            "that defines it first, if it is your own"
        )
    try:
        setting = kind.from_dict(sealed.body["setting"])
        table = setting.read(sealed.body["table"])
        stated = sealed.body["bound"]
        bound = None if stated is None else _checks.real("bound", stated)
        # Strict also for a published rule: a file without a proof is not a mechanism's.
        others = {"float_bound": bound, "provenance": sealed.provenance, "_stated": ("bound",)}
        design = made(setting, table, strict=True, **others)
    except ParameterError as error:
        raise sealed.refuse(str(error).rstrip(".")) from None
    except MALFORMED as error:
        # The cause is kept: in a kind of one's own, it may be an error of that kind.
        raise sealed.refuse("its setting, table or bound are missing or malformed") from error
    sealed.require_hash()
    # What a file says stands in it twice: to be loaded, and to be read without this package.
    written = design._written_out()
    for name in {"kind", "guarantee", "displayed"} & set(sealed.body):
        if json.loads(json.dumps(written.get(name))) != sealed.body[name]:
            raise sealed.refuse(f"its {name} is not that of its setting")
    return design


def _register(cls: type[Setting]) -> None:
    name = cls.__dict__["kind"]
    if not isinstance(name, str) or not re.fullmatch("[a-z][a-z0-9-]*", name):
        raise ParameterError(
            f"kind is {shown(name)}; it must be lower case letters, digits and hyphens."
        )
    if name in _kinds.VERBS:
        raise ParameterError(f"kind is {name!r}; the command line has a verb of that name.")
    where, before = (cls.__module__, cls.__qualname__), _KINDS.get(name)
    same = before is None or (before.__module__, before.__qualname__) == where
    inside = cls.__module__.partition(".")[0] == __name__.partition(".")[0]
    if not same or (not inside and name in _kinds.KINDS):
        raise ParameterError(f"kind is {name!r}; another class is of that kind already.")
    _KINDS[name] = cls


def _check_setting(setting: object) -> None:
    """Refuse what is no setting, or one whose parameters could change after the proof."""
    if not isinstance(setting, Setting):
        what = f"the class {setting.__name__}" if isinstance(setting, type) else shown(setting)
        raise ParameterError(f"setting is {what}; it must be an object of a Setting.")
    if not is_dataclass(setting) or not cast(Any, setting).__dataclass_params__.frozen:
        raise ParameterError(
            f"setting is a {type(setting).__name__}, which must be a dataclass(frozen=True)."
        )
    if not hasattr(setting, "kind"):
        raise ParameterError(f"setting is a {type(setting).__name__}, which must say its kind.")


def _parameters(cls: type[Any]) -> dict[str, bool]:
    """Return the names of the constructor's parameters, and which of them it must be given."""
    return {
        f.name: f.default is MISSING and f.default_factory is MISSING for f in fields(cls) if f.init
    }


def _draw_columns(axes: Axes, table: Mapping[str, Sequence[Any]], label: str | None) -> None:
    """Draw the last column of numbers against the first column, or against the place in it."""
    numbers = [name for name, column in table.items() if all(isinstance(v, Real) for v in column)]
    if not numbers:
        raise ParameterError(
            f"columns are {', '.join(table) or 'none'}; none holds numbers alone: override draw."
        )
    first, last = next(iter(table)), numbers[-1]
    places = range(len(table[last])) if first == last else list(table[first])
    axes.plot(places, list(table[last]), marker="o", markersize=3, label=label)
    axes.set_xlabel("place" if first == last else first)
    axes.set_ylabel(last)


def _known(value: Any) -> Any:  # noqa: ANN401
    """Return a value as JSON has it: None for a number that is not known here, nan."""
    return None if isinstance(value, float) and math.isnan(value) else value
