"""The optimal sampler: what it is, what was proved of it, and draws from exactly it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpopt._numbers import exact_text
from dpopt._plot import new_axes
from dpopt._types import IntVector, Json, Vector, brief, frozen
from dpopt.files import write_json
from dpopt.lp import Solution
from dpopt.privacy import Certificate
from dpopt.privacy.vouched import Implied
from dpopt.roo.histograms import Histograms
from dpopt.roo.optimal_program import histogram_prior, incidence
from dpopt.roo.optimal_proof import BITS, normalised, prove
from dpopt.roo.sampler import Below, LetterSampler
from dpopt.roo.setting import RooSetting

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class OptimalSampler(LetterSampler):
    """A sampler that looks at all counts but treats letters alike, its optimality and its proof.

    Attributes:
        setting: n, k and epsilon.
        objective: "worst-case", "bayes", "mean" or "fixed"; see `optimal_sampler`.
        prior: alpha of the symmetric Dirichlet law of P.
        distribution: P for "mean" and "fixed", shape (k,), read-only; else None.
        histograms: sorted counts of all data sets; a place is a histogram and one of its counts.
        weights: chance of each letter at each place, as integers over the sum for its histogram:
            what is certified, and what `release` draws from.
        kernel: the same as floats, shape (places,), read-only.
        certificate: the exact proof of epsilon-DP over all neighbours.
        value: the objective of the kernel: a total variation distance.
        bound: lower bound on the value of any epsilon-DP sampler, from the dual vector.
        gap: value - bound: what solver, repair and rounding together may have lost.
        mixing: part of a uniform letter that the repair added.
        solution: the solve behind the bound; duals by block name.
        provenance: versions that made it.
    """

    setting: RooSetting
    objective: str
    prior: float
    distribution: Vector | None
    histograms: Histograms
    weights: tuple[int, ...]
    kernel: Vector
    certificate: Certificate
    value: float
    bound: float
    gap: float
    mixing: float
    solution: Solution
    provenance: dict[str, str]

    @property
    def distances(self) -> Vector:
        """TV(K(x), empirical(x)) for each histogram, shape (histograms,)."""
        return frozen(distances(self.setting, self.histograms, self.kernel))

    @property
    def worst_case(self) -> float:
        """Largest TV(K(x), empirical(x)) over all data sets."""
        return float(self.distances.max())

    @property
    def mean(self) -> float:
        """Mean TV(K(x), empirical(x)) for n records of P, P symmetric Dirichlet(alpha)."""
        return float(histogram_prior(self.histograms, self.prior) @ self.distances)

    def output_distribution(self, counts: npt.ArrayLike) -> Vector:
        """Return the law of the released letter given the counts, both of shape (k,)."""
        places = self.histograms.places_of(self.fitting(counts))
        return frozen(self.kernel[places])

    def expected_law(self, distribution: npt.ArrayLike) -> Vector:
        """Return the law of the released letter for n records of P, shape (k,).

        Raises:
            ParameterError: if P is no law over k letters, or there are more than 1e6 counts.
        """
        return frozen(incidence(self.histograms, distribution) @ self.kernel)

    def require_private(self) -> None:
        """Do nothing: no sampler of this kind is made without its certificate."""

    def _subject(self) -> tuple[object, ...]:
        return "optimal", self.setting, self.histograms.numbers, self.weights

    def _implied(self) -> Iterator[Implied]:
        yield "kernel", self.kernel, normalised(self.histograms, self.weights)

    def _prove(self) -> Certificate:
        return prove(self.setting, self.histograms, self.weights)

    def _draw(self, counts: IntVector, below: Below) -> int:
        places = self.histograms.places_of(counts)
        sums = list(accumulate(self.weights[place] for place in places))
        drawn = below(sums[-1])
        return sum(total <= drawn for total in sums)

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw a letter's probability against its count, a point for each place; return the axes.

        The line is the empirical probability c / n.
        """
        axes, found, n = new_axes(ax), self.histograms, self.setting.records
        axes.plot([0, n], [0.0, 1.0], color="0.7", linewidth=1)
        axes.plot(found.count, self.kernel, "o", markersize=2, label=label)
        axes.set_xlabel("count of the letter, $c$")
        axes.set_ylabel("probability of the letter")
        axes.set_ylim(-0.03, 1.03)
        return axes

    def __repr__(self) -> str:
        return brief(
            self,
            records=self.setting.records,
            letters=self.setting.letters,
            epsilon=self.setting.epsilon,
            objective=self.objective,
            value=self.value,
            gap=self.gap,
        )

    def to_dict(self) -> Json:
        """Return the sampler as plain values, ready for JSON; weights as decimal strings."""
        law, found = self.distribution, self.histograms
        return {
            "setting": self.setting.to_dict(),
            "rule": f"optimal, {self.objective}",
            "objective": self.objective,
            "prior": self.prior,
            "distribution": None if law is None else law.tolist(),
            "histograms": found.counts.tolist(),
            "places": np.stack([found.owner, found.count], axis=1).tolist(),
            "bits": BITS,
            "weights": [exact_text(weight) for weight in self.weights],
            "private": True,
            "value": self.value,
            "bound": self.bound,
            "gap": self.gap,
            "worst_case": self.worst_case,
            "mean": self.mean,
            "mixing": self.mixing,
            "certificate": self.certificate.to_dict(),
            "status": str(self.solution.status),
            "backend": self.solution.backend,
            "provenance": self.provenance,
        }

    def save(self, path: str | Path) -> None:
        """Write the sampler to a JSON file, for reading: `dpopt.load` does not take it back.

        Raises:
            ParameterError: if the file cannot be written.
        """
        write_json(Path(path), {"format": "dpopt sampler", **self.to_dict()})


def distances(setting: RooSetting, found: Histograms, kernel: Vector) -> Vector:
    """Return TV(K(x), empirical(x)) = sum over letters of max(0, c / n - K), by histogram."""
    short = np.maximum(0.0, found.count / setting.records - kernel)
    return np.bincount(found.owner, found.multiplicity * short, found.size).astype(float)
