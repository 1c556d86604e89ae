"""The kernels of a public prior as settings: their program, and the closed forms that solve it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError, SolverError
from dpopt._types import Json, Matrix, Numbers, Vector, frozen
from dpopt.design import Answer, Setting, made
from dpopt.kernel import KernelSetting, over_kernel
from dpopt.kernel.program import matrix_of
from dpopt.lp import Backend, Problem, Solution, Status, solve
from dpopt.privacy import Certificate, ExactKernel, Guarantee, quantise_kernel
from dpopt.privacy.kernel import kernel_pair, long_table
from dpopt.public_prior.algorithm import (
    LARGEST_MATRIX,
    Flat,
    Layers,
    LetterKernel,
    Staircase,
    Units,
)
from dpopt.public_prior.prior import (
    LARGEST_EPSILON,
    LEAST_EPSILON,
    Letters,
    PublicPrior,
    named_prior,
    places_of,
    plain_names,
    public_prior,
)
from dpopt.public_prior.sampler import LeximinKernel, PublicPriorKernel, SamplingKernel
from dpopt.public_prior.utility import diagonal_bounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpopt.privacy.dominating import DominatingPair

OBJECTIVES = ("minimax", "leximin")
FORMULATIONS = ("shifted", "columns", "naive")
"""How `tv_problem` can write the constraints of privacy."""

MOST_LETTERS = 1000
"""Letters up to which a program over kernels is written out."""

# e^-epsilon must stay well above a solver's tolerance, 1e-10: from 18 on, with masses below 1e-8,
# solves failed.
_LARGEST_PROGRAM_EPSILON = 16.0
_FIXED_DUAL = 1e-6

K = TypeVar("K", bound=Answer)


class PriorSetting(Setting[K]):
    """What the settings share whose kernels keep a public prior; letters in the caller's order."""

    prior: Any
    epsilon: float
    letters: Any
    objective: Any

    def _keep_prior(self) -> None:
        """Check the prior and its letters, and set them to plain values."""
        public = named_prior(self.prior, self.letters)
        listed = None if isinstance(public.letters, range) else tuple(public.letters)
        for name, value in {"prior": public.masses, "letters": listed, "public": public}.items():
            object.__setattr__(self, name, value)

    @cached_property
    def public(self) -> PublicPrior:
        """The prior with the names of its letters."""
        return public_prior(self.prior, self.letters)

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, 0), between any two users."""
        return Guarantee(self.epsilon)

    @classmethod
    def example_data(cls) -> object:
        """Return a user's letter."""
        return 1

    def queries(self, numbers: Sequence[int]) -> list[Hashable]:
        """Return the letters at some places of the prior, for the command line.

        Raises:
            ParameterError: for a place that there is not.
        """
        letters = self.public.letters
        if not all(0 <= place < len(letters) for place in numbers):
            raise ParameterError(f"the inputs must be places in 0..{len(letters) - 1} of letters.")
        return [letters[place] for place in numbers]

    def require_few(self, what: str, instead: str) -> None:
        """Refuse to list n^2 numbers of more than 5000 letters."""
        if self.public.size > LARGEST_MATRIX:
            raise ParameterError(
                f"the kernel has {self.public.size} letters; {what} for at most "
                f"{LARGEST_MATRIX}: {instead}."
            )

    def point(self, solution: Solution) -> Matrix:
        """Return K as the solver left it, its rows divided by their sums, shape (n, n)."""
        return kernel_of(solution, self.epsilon)

    def units(self, point: Matrix) -> Units:
        """Return K repaired with q, which keeps q K = q, and as certified integers."""
        exact = quantise_kernel(point, self.guarantee, row=self.public.masses)
        return LetterKernel(self.public, exact)

    def prove(self, units: Units) -> Certificate:
        """Return the proof of the integers, if they are of this prior and guarantee.

        Raises:
            ParameterError: if they are not.
            NotPrivateError: if they are not private.
        """
        _checks.instance("units", units, Units)
        if not np.array_equal(units.prior.masses, self.public.masses):
            raise ParameterError("units are of another prior than the setting's.")
        proof = units.certificate
        between = units.exact.pairs is None if isinstance(units, LetterKernel) else True
        if proof.guarantee != self.guarantee or not between:
            raise ParameterError(
                f"units were proved for {proof.guarantee}; the setting promises {self.guarantee} "
                "between all letters."
            )
        return proof.about(*self.subject(units))

    def subject(self, units: Units) -> tuple[object, ...]:
        """Return what the proof is about: prior, guarantee, and the integers or what makes them."""
        return self.kind, self.objective, self.public.masses, self.epsilon, units.subject

    def law(self, units: Units, data: Any) -> Sequence[int]:  # noqa: ANN401
        """Return the row of a user's letter."""
        places, single = places_of(self.public, data)
        if not single:
            raise ParameterError("the data are several letters; a law is that of one.")
        return units.row(int(places[0]))

    def output(self, place: int) -> Hashable:
        """Return the name of a letter."""
        return self.public.letters[place]

    def dominating(self, units: Units) -> DominatingPair:
        """Return the tight dominating pair over all letters.

        They cover every two users, since a divergence is jointly convex.
        """
        self.require_few("a dominating pair is found", "there is none")
        weights = [units.row(letter) for letter in range(self.public.size)]
        return kernel_pair(weights, units.bits, None)

    def draw(self, axes: Axes, units: Units, label: str | None = None) -> None:
        """Draw K_ii against q_i, lemma 3's bound as a line."""
        order = self.public.order
        q = self.public.masses[order]
        axes.plot(q, diagonal_bounds(self.public, self.epsilon)[order], color="grey", linewidth=1)
        axes.plot(q, units.diagonal[order], marker="o", markersize=3, linestyle="", label=label)
        axes.set_xlabel("prior mass, $q_i$")
        axes.set_ylabel("probability to keep the letter, $K_{ii}$")
        axes.set_ylim(0.0, 1.0)

    def columns(self, units: Units) -> Mapping[str, Sequence[Any]]:
        """Return input, output and probability, a line for each two letters, by their names."""
        self.require_few("a table is made", "use apply")
        letters = self.public.letters
        return cast(Any, long_table(units.matrix(), letters, letters))

    def plain(self, units: Units) -> Json:
        """Return what a file keeps of the kernel."""
        return units.plain()

    def read(self, plain: Any) -> Units:  # noqa: ANN401
        """Return the kernel of a file, certified."""
        return LetterKernel(self.public, ExactKernel.read(plain))

    def to_dict(self) -> Json:
        """Return the parameters as plain values; names that JSON does not know as their repr."""
        return {**super().to_dict(), "letters": plain_names(self.letters)}


@dataclass(frozen=True, eq=False)
class PublicPriorSetting(PriorSetting[SamplingKernel]):
    """The kernel that loses least at the worst law p, of those that keep a public prior q.

        minimise   max_i 1 - K[i, i]                                "losses"
        subject to sum_j K[i, j] = 1                                "sums"
                   sum_i q[i] K[i, j] = q[j]                        "invariance"
                   K[i, j] <= e^epsilon K[i', j]                    "privacy"

    for all letters i, i', j; K >= 0: the program of `KernelSetting` with the 0-1 loss and the
    invariance q. The objective is the largest total variation between p and pK over all p.
    Algorithm 1 is its solution in O(n), for every f-divergence at once. Of its solutions "leximin"
    takes the one whose second smallest K_ii is largest too, then the third, and so on: a closed
    form in O(n) again, or at most n programs, each within 1e-9 of the one before. A program is
    written out for at most 1,000 letters and epsilon up to 16; the closed forms have no such limit.

    Attributes:
        prior: q, shape (n,), each above 0, summing to 1 up to 1e-9, in any order.
        epsilon: in [1e-9, 600], in nats: local privacy of a released letter.
        letters: n distinct names; 0..n-1 if None. As a text, a,b,c.
        objective: "minimax", or "leximin", which is minimax and better at the other letters.
    """

    kind: ClassVar[str] = "prior"
    papers: ClassVar[tuple[str, ...]] = ("public-prior",)

    prior: Numbers
    epsilon: float
    letters: Letters | None = None
    objective: Literal["minimax", "leximin"] = "minimax"

    def __post_init__(self) -> None:
        _checks.choice("objective", self.objective, OBJECTIVES)
        self._keep_prior()
        epsilon = _checks.real("epsilon", self.epsilon, LEAST_EPSILON, LARGEST_EPSILON)
        object.__setattr__(self, "epsilon", epsilon)
        leximin = self.objective == "leximin"
        object.__setattr__(self, "answer", LeximinKernel if leximin else PublicPriorKernel)

    @classmethod
    def example(cls) -> Self:
        """Return a prior of five letters."""
        return cls([0.05, 0.1, 0.15, 0.2, 0.5], 1.0)

    def problem(self) -> Problem:
        """Return the program of the least worst case; "leximin" goes on from its optimum.

        Raises:
            ParameterError: for more than 1,000 letters, or an epsilon above 16.
        """
        return tv_problem(self.public, self.epsilon)

    def closed_form(self) -> Layers:
        """Return Algorithm 1, or the leximin kernel."""
        return (Flat if self.objective == "leximin" else Staircase)(self.public, self.epsilon)

    def solved(self, backend: str | Backend, time_limit: float | None) -> Solution:
        """Solve the program; for "leximin", one after the other.

        The solution of the last program then has objective and bound of the first.
        """
        first = solve(self.problem(), backend, time_limit=time_limit)
        if self.objective == "minimax":
            return first
        _, last = _leximin(self.public.masses, self.epsilon, backend, time_limit)
        return replace(last, objective=first.objective, bound=first.bound, gap=first.gap)

    def value(self, units: Units) -> float:
        """Return the largest total variation between p and pK over all p: 1 - min K_ii."""
        return float(1 - units.diagonal.min())

    def read(self, plain: Any) -> Units:  # noqa: ANN401
        """Return the kernel of a file: of a closed form made again, its bits compared."""
        if not isinstance(plain, Mapping) or set(plain) != {"bits"}:
            return super().read(plain)
        units = self.closed_form()
        if units.bits != plain["bits"]:
            raise ParameterError("its bits are not those of its kernel.")
        return units


PublicPriorSetting.answer = SamplingKernel


def minimax_kernel(
    prior: npt.ArrayLike | PublicPrior,
    epsilon: float,
    *,
    letters: Iterable[Hashable] | None = None,
) -> PublicPriorKernel:
    """Return the kernel of Algorithm 1: epsilon-LDP, qK = q, and least worst-case f-divergence.

    sup_p D_f(p || pK) is the least possible for every f at once. It is not the only kernel of
    which this is true; see `leximin_kernel`. For a uniform q it is n-ary randomised response.

    Args:
        prior: q, shape (n,), in any order, all above 0, summing to 1 up to 1e-9; or a
            `PublicPrior`.
        epsilon: in [1e-9, 600], in nats.
        letters: n distinct names; 0..n-1 if None.

    Raises:
        ParameterError: for a prior or an epsilon out of range.

    References:
        Zamanlooy, Diaz, Asoodeh, "Locally Private Sampling with Public Data", Algorithm 1 and
        theorem 2; the closed form of its recursion is ours.

    Example:
        >>> from dpopt import public_prior
        >>> design = public_prior.minimax_kernel([0.05, 0.1, 0.15, 0.2, 0.5], epsilon=1.0)
        >>> round(design.gamma_tv, 4), design.diagonal.round(4).tolist()
        (0.8748, [0.1252, 0.2312, 0.3198, 0.3913, 0.6073])
    """
    return cast(PublicPriorKernel, _in_closed_form(prior, epsilon, letters, "minimax"))


def leximin_kernel(
    prior: npt.ArrayLike | PublicPrior,
    epsilon: float,
    *,
    letters: Iterable[Hashable] | None = None,
) -> LeximinKernel:
    """Return the leximin kernel: epsilon-LDP, qK = q, minimax, and best at the letters above.

    Its smallest K_ii is that of Algorithm 1, so that no f-divergence has a smaller worst case;
    then its second smallest is as large as any such kernel has, and so on.

    Args:
        prior: q, shape (n,), in any order, all above 0, summing to 1 up to 1e-9; or a
            `PublicPrior`.
        epsilon: in [1e-9, 600], in nats.
        letters: n distinct names; 0..n-1 if None.

    Raises:
        ParameterError: for a prior or an epsilon out of range.

    Example:
        >>> from dpopt import public_prior
        >>> design = public_prior.leximin_kernel([0.05, 0.1, 0.15, 0.2, 0.5], epsilon=1.0)
        >>> design.diagonal.round(4).tolist()
        [0.1252, 0.232, 0.3242, 0.4046, 0.6005]
    """
    return cast(LeximinKernel, _in_closed_form(prior, epsilon, letters, "leximin"))


def _in_closed_form(
    prior: npt.ArrayLike | PublicPrior,
    epsilon: float,
    letters: Iterable[Hashable] | None,
    objective: Literal["minimax", "leximin"],
) -> SamplingKernel:
    """Return the design without its proof, which is made before the first release."""
    public: Any = public_prior(prior, letters)
    setting = PublicPriorSetting(public, epsilon, objective=objective)
    return made(setting, setting.closed_form(), certificate=None)


def tv_problem(
    prior: npt.ArrayLike | PublicPrior, epsilon: float, formulation: str = "shifted"
) -> Problem:
    """Return the program whose optimum is Gamma_TV: minimise t subject to 1 - K_ii <= t.

    Over kernels K (n x n) with K 1 = 1, q K = q and K_ij <= e^epsilon K_i'j. Three forms of the
    last, with w_j >= K_ij the ceiling of a column:

    - "naive": e^-epsilon K_ij <= K_i'j, n^2 (n - 1) rows.
    - "columns": e^-epsilon w_j <= K_ij <= w_j, 2 n^2 rows.
    - "shifted": K = e^-epsilon 1 w^T + V, 0 <= V_ij <= (1 - e^-epsilon) w_j, n^2 rows.

    All coefficients of privacy lie in [e^-epsilon, 1], so that large epsilon stays in a solver's
    range. Solve it with `dpopt.solve`, and read K with `kernel_of`.

    Args:
        prior: q, shape (n,), above 0, summing to 1, n at most 1,000; or a `PublicPrior`.
        epsilon: above 0, in nats, at most 16.
        formulation: see above.

    Raises:
        ParameterError: if an argument is out of range.
    """
    q = public_prior(prior).masses
    form = _checks.choice("formulation", formulation, FORMULATIONS)
    loss = np.ones((q.size, q.size)) - np.eye(q.size)
    return kernels_keeping(
        q,
        epsilon,
        loss=loss,
        objective="minimax",
        formulation=cast(Any, "edges" if form == "naive" else form),
    )


def kernels_keeping(q: Vector, epsilon: float, **asked: Any) -> Problem:  # noqa: ANN401
    """Return the program over all epsilon-LDP kernels that keep q, for an objective.

    Args:
        q: shape (n,).
        epsilon: in (0, 16].
        asked: parameters of `KernelSetting`.

    Raises:
        ParameterError: for more than 1,000 letters, or an epsilon out of range.
    """
    epsilon = program_epsilon(epsilon)
    if q.size > MOST_LETTERS:
        raise ParameterError(
            f"prior has {q.size} letters; its program is written out for at most {MOST_LETTERS}, "
            "and the closed forms are for any number."
        )
    if q.size == 1:
        return _of_one_letter(epsilon)
    return KernelSetting(epsilon=epsilon, invariant=q, **asked).problem()


def _of_one_letter(epsilon: float) -> Problem:
    """Return the program of the only kernel of one letter, in the shifted form."""
    shrink = math.exp(-epsilon)
    problem = Problem("kernel of one letter")
    problem.add_variables("ceiling", 1, lower=0.0, upper=1.0)
    problem.add_variables("excess", 1, lower=0.0, upper=1.0)
    problem.add_rows("sums", {"ceiling": [[shrink]], "excess": [[1.0]]}, lower=1.0, upper=1.0)
    problem.add_rows("privacy", {"ceiling": [[shrink - 1.0]], "excess": [[1.0]]}, upper=0.0)
    problem.minimise({"ceiling": 0.0})
    return problem


def kernel_of(solution: Solution, epsilon: float) -> Matrix:
    """Return K from a solution of any of the forms, shape (n, n), read-only.

    Entries of the shifted form are brought into their limits, and rows are divided by their sums.
    K is as private as the solver's tolerance: see `dpopt.privacy.quantise_kernel`.

    Args:
        solution: of `tv_problem`.
        epsilon: the one given there.
    """
    _checks.instance("solution", solution, Solution)
    epsilon = program_epsilon(epsilon)
    plain = "kernel" in solution.values
    n = math.isqrt(solution["kernel"].size) if plain else solution["ceiling"].size
    kernel = matrix_of(solution, n, math.exp(-epsilon))
    return frozen(kernel / kernel.sum(axis=1, keepdims=True))


def leximin_values(
    prior: npt.ArrayLike | PublicPrior, epsilon: float, *, backend: str | Backend = "highs"
) -> Vector:
    """Return the diagonal of the leximin kernel by successive programs, for small n.

    The least K_ii is maximised, then the least of those that can still rise, and so on: after
    each program the letters whose rows have a positive dual, which stay at this value in every
    optimum, are fixed. At most n programs; a judge of the closed form, exact up to about 1e-8.

    Args:
        prior: q, shape (n,), above 0, summing to 1; or a `PublicPrior`.
        epsilon: above 0, in nats, at most 16.
        backend: see `dpopt.solve`; it must return duals.

    Returns:
        Shape (n,), in the caller's order of letters, read-only.

    Raises:
        ParameterError: if an argument is out of range.
        SolverError: if the solver found no answer, or no dual.
    """
    q, epsilon = public_prior(prior).masses, program_epsilon(epsilon)
    return _leximin(q, epsilon, backend, None)[0]


def _leximin(
    q: Vector, epsilon: float, backend: str | Backend, time_limit: float | None
) -> tuple[Vector, Solution]:
    """Return the leximin diagonal, and the solution of the last of the programs."""
    values = np.full(q.size, np.nan)
    while True:
        free = np.isnan(values)
        solution = solve(_leximin_step(q, epsilon, values), backend, time_limit=time_limit)
        stuck = np.abs(solution.duals["free"]) > _FIXED_DUAL
        if not np.any(stuck):
            raise SolverError("the solver returned no dual for any letter.", Status.NUMERICAL)
        values[np.flatnonzero(free)[stuck]] = solution.objective
        if not np.any(np.isnan(values)):
            return frozen(values), solution


def _leximin_step(q: Vector, epsilon: float, values: Vector) -> Problem:
    """Maximise the least free K_ii; ``values`` holds those fixed before, NaN where free."""
    problem = kernels_keeping(q, epsilon, loss=np.eye(q.size), sense="maximise")
    # Above 1: a bound that holds would take the dual from the rows.
    problem.add_variables("least", 1, lower=0.0, upper=2.0)
    diagonal, free = over_kernel(problem, diagonal_rows(q.size)), np.isnan(values)
    chosen = {name: part[np.flatnonzero(free)] for name, part in diagonal.items()}
    minus = -np.ones((int(free.sum()), 1))
    problem.add_rows("free", {**chosen, "least": minus}, lower=0.0)
    if not np.all(free):
        fixed = {name: part[np.flatnonzero(~free)] for name, part in diagonal.items()}
        # A solver's tolerance less than was reached: else the next program may be infeasible.
        problem.add_rows("fixed", fixed, lower=values[~free] - 1e-10)
    problem.maximise({"least": 1.0})
    return problem


def diagonal_rows(n: int) -> sp.csr_array:
    """Return K_11 .. K_nn as rows over the flattened kernel: K_ii stands at place i (n + 1)."""
    return sp.csr_array((np.ones(n), (np.arange(n), np.arange(n) * (n + 1))), shape=(n, n * n))


def program_epsilon(epsilon: float) -> float:
    """Return epsilon if a program with coefficients down to e^-epsilon can be solved.

    Raises:
        ParameterError: if it is not in (0, 16].
    """
    return _checks.real("epsilon", epsilon, 0.0, _LARGEST_PROGRAM_EPSILON, open_lower=True)
