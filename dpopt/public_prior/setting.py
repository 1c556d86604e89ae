"""The kernels of a public prior as settings: their program, and the closed forms that solve it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt

from dpopt import _checks
from dpopt._errors import ParameterError, SolverError
from dpopt._figure import LIMIT
from dpopt._types import Json, Matrix, Numbers
from dpopt.lp import Backend, Solution, Status
from dpopt.privacy import Certificate, ExactKernel, Guarantee, Problem, quantise_kernel
from dpopt.privacy.kernel import kernel_pair, long_table
from dpopt.privacy.least import Least, least_of_kernel, require_pure
from dpopt.public_prior.algorithm import LARGEST_MATRIX, ClosedForm, Flat, Staircase
from dpopt.public_prior.prior import (
    LARGEST_EPSILON,
    LEAST_EPSILON,
    Letters,
    PublicPrior,
    places_of,
    public_prior,
)
from dpopt.public_prior.program import kernel_of, leximin_problem, tv_problem
from dpopt.public_prior.proof import least_of_rows
from dpopt.public_prior.sampler import (
    LeximinKernel,
    PublicPriorKernel,
    SamplingKernel,
    Units,
)
from dpopt.public_prior.utility import diagonal_bounds
from dpopt.shape import Design, Setting, made

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpopt.privacy.dominating import DominatingPair

OBJECTIVES = ("minimax", "leximin")
K = TypeVar("K", bound=Design)


class PriorSetting(Setting[K]):
    """What the settings share that have a public prior; letters in the caller's order."""

    prior: Any
    epsilon: Any
    letters: Any

    def _keep(self, **checked: object) -> None:
        """Check the prior and its letters, and set them and other fields to plain values."""
        public = public_prior(self.prior, self.letters)
        listed = None if isinstance(public.letters, range) else tuple(public.letters)
        checked |= {"prior": public.masses, "letters": listed, "public": public}
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @cached_property
    def public(self) -> PublicPrior:
        """The prior with the names of its letters."""
        return public_prior(self.prior, self.letters)

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, 0), between any two users."""
        return Guarantee(self.epsilon)

    def output(self, place: int) -> Hashable:
        """Return the name of a letter."""
        return self.public.letters[place]


class KeptPriorSetting(PriorSetting[K]):
    """What the settings share whose kernels K keep the prior: q K = q.

    Their units are an `ExactKernel`, as a program finds it, or a `ClosedForm`.
    """

    objective: Any

    @classmethod
    def example_data(cls) -> object:
        """Return a user's letter."""
        return 1

    @classmethod
    def example_neighbours(cls) -> list[tuple[int, int]]:
        """Return letters: every two users are neighbours."""
        return [(0, 1), (1, 2), (0, 3)]

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
        return quantise_kernel(point, self.guarantee, row=self.public.masses)

    def prove(self, units: Units) -> Certificate:
        """Return the proof of the integers, if they are of this prior and guarantee.

        Raises:
            ParameterError: if they are not.
            NotPrivateError: if they are not private.
        """
        if not isinstance(units, ClosedForm):
            _checks.instance("units", units, ExactKernel)
            n = self.public.size
            proof = units.proof_of(self.guarantee, (n, n))
        elif not np.array_equal(units.prior.masses, self.public.masses):
            raise ParameterError("units are of another prior than the setting's.")
        else:
            proof = units.certificate
            if proof.guarantee != self.guarantee:
                raise ParameterError(
                    f"units were proved for {proof.guarantee}; the setting promises "
                    f"{self.guarantee}."
                )
        return proof

    def spent(self, units: Units, epsilon: float | None, delta: float | None) -> Least:
        """Return the least epsilon between any two letters; of a closed form, for delta = 0.

        Neighbours are places of letters, and so is the output. They cover every two users, since a
        divergence is jointly convex.
        """
        if not isinstance(units, ClosedForm):
            return least_of_kernel(units, epsilon, delta)
        require_pure(self.kind, epsilon, delta)
        least = least_of_rows(units.rows)
        order = self.public.order.tolist()
        x, other, *outputs = (order[int(place)] for place in (*least.inputs, *least.outputs))
        return replace(least, inputs=(x, other), outputs=tuple(outputs))

    def subject(self, units: Units) -> tuple[object, ...]:
        """Return what the proof is about: prior, guarantee, and the integers or what makes them."""
        return self.kind, self.objective, self.public.masses, self.epsilon, units.subject

    def law(self, units: Units, data: Any) -> Sequence[int]:  # noqa: ANN401
        """Return the row of a user's letter."""
        places, single = places_of(self.public, data)
        if not single:
            raise ParameterError("the data are several letters; a law is that of one.")
        return units.row(int(places[0]))

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
        bounds = diagonal_bounds(self.public, self.epsilon)[order]
        axes.plot(q, bounds, color=LIMIT, linestyle=":", label="bound of lemma 3")
        axes.plot(q, units.diagonal[order], "o", clip_on=False, label=label)
        axes.set_xlabel("prior mass, $q_i$")
        axes.set_ylabel("probability to keep the letter, $K_{ii}$")
        axes.set_ylim(0.0, 1.03)

    def columns(self, units: Units) -> Mapping[str, Sequence[Any]]:
        """Return input, output and probability, a line for each two letters, by their names."""
        self.require_few("a table is made", "use apply")
        letters = self.public.letters
        return cast(Any, long_table(units.matrix(), letters, letters))


@dataclass(frozen=True, eq=False)
class PublicPriorSetting(KeptPriorSetting[SamplingKernel]):
    """The kernel that loses least at the worst law p, of those that keep a public prior q.

        minimise   max_i 1 - K[i, i]                                "losses"
        subject to sum_j K[i, j] = 1                                "sums"
                   sum_i q[i] K[i, j] = q[j]                        "invariance"
                   K[i, j] <= e^epsilon K[i', j]                    "privacy"

    for all letters i, i', j; K >= 0: the program of `KernelSetting` with the 0-1 loss and the
    invariance q. The objective is the largest total variation between p and pK over all p.
    Algorithm 1 is its solution in O(n), for every f-divergence at once. Of its solutions "leximin"
    takes the one whose second smallest K_ii is largest too, then the third, and so on: a closed
    form in O(n) again, or a program of n objectives in order (see `leximin_problem`). A program is
    written out for at most 1,000 letters and epsilon up to 16; the closed forms have no such limit.

    Attributes:
        prior: q, shape (n,), each above 0, summing to 1 up to 1e-9, in any order.
        epsilon: in [1e-9, 600], in nats: local privacy of a released letter.
        letters: n distinct names; 0..n-1 if None. As a text, a,b,c.
        objective: "minimax", or "leximin", which is minimax and better at the other letters.
    """

    kind: ClassVar[str] = "prior"

    prior: Numbers
    epsilon: float
    letters: Letters | None = None
    objective: Literal["minimax", "leximin"] = "minimax"

    def __post_init__(self) -> None:
        _checks.choice("objective", self.objective, OBJECTIVES)
        epsilon = _checks.real("epsilon", self.epsilon, LEAST_EPSILON, LARGEST_EPSILON)
        leximin = self.objective == "leximin"
        self._keep(epsilon=epsilon, answer=LeximinKernel if leximin else PublicPriorKernel)

    @classmethod
    def example(cls) -> Self:
        """Return a prior of five letters."""
        return cls([0.05, 0.1, 0.15, 0.2, 0.5], 1.0)

    def problem(self) -> Problem:
        """Return the program of the least worst case; of "leximin" with further objectives.

        Raises:
            ParameterError: for more than 1,000 letters, or an epsilon above 16.
        """
        leximin = self.objective == "leximin"
        return (leximin_problem if leximin else tv_problem)(self.public, self.epsilon)

    def closed_form(self) -> ClosedForm:
        """Return Algorithm 1, or the leximin kernel."""
        return (Flat if self.objective == "leximin" else Staircase)(self.public, self.epsilon)

    def solved(
        self, backend: str | Backend, time_limit: float | None, stop_at_gap: float = 0.0
    ) -> Solution:
        """Solve the program.

        Raises:
            SolverError: if the solver found no answer, of "leximin" to one of the objectives.
        """
        solution = super().solved(backend, time_limit, stop_at_gap)
        if solution.note:
            raise SolverError(solution.note, Status.NUMERICAL)
        return solution

    def proof_size(self, units: Units) -> int:
        """Return n, as much as there is to prove of a closed form; of a table, its entries."""
        n = self.public.size
        return n if isinstance(units, ClosedForm) else 5 * n * n

    def value(self, units: Units) -> float:
        """Return the largest total variation between p and pK over all p: 1 - min K_ii."""
        return float(1 - units.diagonal.min())

    def plain(self, units: Units) -> Json:
        """Return the integers; of a closed form their bits, as the setting makes them again."""
        return {"bits": units.bits} if isinstance(units, ClosedForm) else units.plain()

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
        prior: q, or a `PublicPrior`; as of `minimax_kernel`.
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
