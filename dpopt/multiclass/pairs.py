r"""Extreme pairs of laws on C classes, and which choices of them decide privacy: the theorems.

A voter has the law P on [C] = {0, ..., C - 1} under one data set and P' under its neighbour. With
r = e^epsilon, it is an *r-pair* if P <= r P' and P' <= r P, and an *(r, Delta)-pair* if
P(S) <= r P'(S) + Delta and P'(S) <= r P(S) + Delta for all sets S. b = r / (1 + r), c = 1 - b, and
delta_y is the law that votes y.

**Theorem 1.** (u, w) -> (b u + c w, c u + b w) maps pairs of arbitrary laws one to one onto the
r-pairs, for r > 1. So these are a product of two simplices, with C^2 corners:

    (b delta_y + c delta_z, c delta_y + b delta_z) for all y and z.

*Proof.* The image is an r-pair, as b and c have ratio r. The inverse is u = (b P - c P') / (b - c)
and w = (b P' - c P) / (b - c): both add up to 1, and are non-negative exactly if r P >= P' and
r P' >= P. A linear bijection maps corners to corners; those of the product are pairs of theirs. ∎

In words: each private voter tosses a coin of chances b and c, the other way round under the
neighbour, and votes by u or by w.

**Theorem 2.** Let a rule depend on the counts of the votes alone, with values a(l) for a set of
outputs. Of f = E_P a - t E_P' a, the voters independent, the largest value over all choices of
r-pairs stands at K corners among which no (y, z) meets (z, y), y != z.

*Proof.* Given all other voters f is affine in the pair of one: the largest value stands at K
corners. E_P a depends on the multiset of the P_i alone, as a depends on counts and the voters are
independent; so does E_P' a on the P'_i. Exchanging the P' of two voters therefore leaves f as it
is. Voters at (y, z) and (z, y) become (P, P) and (P', P'), P = b delta_y + c delta_z: mixtures of
(y, y) and (z, z), which are r-pairs. f is affine in each of the two given all others, so that some
choice of loops for both is no worse. The number of voters not at a loop falls with every exchange,
so it ends. ∎

What is left is, for each two classes, a signed number of voters, and loops:

    the coefficient of x^K in ((1 + x) / (1 - x))^(C (C - 1) / 2) / (1 - x)^C

choices instead of binom(K + C^2 - 1, K). Nor need three voters be on a circle (y, z), (z, w),
(w, y): see the corners module, which walks over what is left then. All edges are needed, also those
between two classes of which neither is told: without them programs return rules that are not
private.

**Theorem 3.** Let 0 < Delta < 1. The map

    (Q, u, w, Q') -> (Delta Q + (1 - Delta)(b u + c w), (1 - Delta)(c u + b w) + Delta Q')

takes quadruples of arbitrary laws onto the (r, Delta)-pairs. The corners of these are the images of
(Delta, (1 - Delta) b, (1 - Delta) c, 0) and its mirror image under those maps of the four letters
to [C] that give each class letters in a row, or none:

    C + 3 C (C - 1) + 3 C (C - 1)(C - 2) + C (C - 1)(C - 2)(C - 3)

of them: 8, 39 and 136 for C = 2, 3 and 4, of the C^4 maps.

*Proof.* The image is an (r, Delta)-pair: (1 - Delta)(b u + c w) <= r (1 - Delta)(c u + b w), and
the first term of P is at most Delta. Let now (P, P') be an (r, Delta)-pair. U = (P - r P')^+ and
U' = (P' - r P)^+ have masses s and s' of at most Delta, on sets without a common class. P - U and
P' - U' are within r of each other: where U > 0, P - U = r P' and U' = 0; in the same way where
U' > 0; else nothing was taken. Say s >= s'. Then P' - U' has the larger mass, by s - s'; its
excess over P - U where it is larger is at least that, so lowering it there, never below P - U,
makes the masses equal, and the two stay within r. Scaling both by (1 - Delta) / (1 - s) takes more
off, in proportion. What is left is (1 - Delta) times an r-pair, which is (b u + c w, c u + b w)
by theorem 1; what was taken are laws Q and Q' times Delta.

The image of a product of four simplices is the hull of the images of its corners, which are the
maps of the four letters. Their ratios P : P' fall strictly: 1 : 0, r : 1, 1 : r, 0 : 1. If a map
gives y two letters and z one between them, then among all ways of sharing out the letters of y
and z between the two, the points (P(y), P'(y)) fill a polygon whose corners are those sets of
letters whose ratios are all larger, or all smaller, than those of the rest; this one is no corner,
but a mixture of such. So only letters in a row are left. Each such map is a corner: choose for its
classes, in the order of the letters, linear functions i -> alpha_y p_i + beta_y p'_i that touch a
convex polygon one after the other, each largest on its own letters, and for the other classes one
below all. The functional sum_y alpha_y P(y) + beta_y P'(y) has its maximum there and nowhere
else. ∎

**Theorem 4.** With (r, Delta)-pairs, theorem 2 holds with "no corner meets its mirror image", that
is with its P and P' exchanged. *Proof.* The same: the exchange gives (P, P) and (P', P'), which
are mixtures of loops; only loops are their own mirror image. ∎

With n loops C and the others in q = (n_corners - C) / 2 mirrored couples, what is left are the
coefficients of ((1 + x) / (1 - x))^q / (1 - x)^C. For delta > 0 the label is private exactly if
f <= delta for each *set* of outputs, a being the probability of the set. For a rule that treats
classes alike one set of each size 1, ..., C - 1 suffices. For delta = 0 single outputs do.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from math import comb, perm

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt.privacy.exponential import rational

Law = tuple[Fraction, ...]
Pair = tuple[Law, Law]


def corners(classes: int, ratio: Fraction, mechanism_delta: Fraction = Fraction(0)) -> list[Pair]:
    """Return the corners (P, P') of a voter's pairs of laws, exactly: theorems 1 and 3.

    Args:
        classes: C, at least 2.
        ratio: r = e^epsilon, above 1.
        mechanism_delta: Delta, in [0, 1).

    Raises:
        ParameterError: for a parameter out of range.

    Example:
        >>> from fractions import Fraction
        >>> len(corners(3, Fraction(2))), len(corners(3, Fraction(2), Fraction(1, 10)))
        (9, 39)
    """
    _checks.integer("classes", classes, 2)
    r, delta = rational("ratio", ratio), rational("mechanism_delta", mechanism_delta)
    if r <= 1:
        raise ParameterError(f"ratio is {_checks.shown(ratio)}; it must be above 1.")
    if not 0 <= delta < 1:
        raise ParameterError(
            f"mechanism_delta is {_checks.shown(mechanism_delta)}; it must be in [0, 1)."
        )
    b = r / (1 + r)
    letters = [delta, (1 - delta) * b, (1 - delta) * (1 - b), Fraction(0)]
    if not delta:
        letters = letters[1:3]
    found = []
    for runs in range(1, len(letters) + 1):
        for sizes in _compositions(len(letters), runs):
            for named in permutations(range(classes), runs):
                labels = [y for y, size in zip(named, sizes, strict=True) for _ in range(size)]
                sides = (letters, letters[::-1])
                found.append((_image(classes, labels, sides[0]), _image(classes, labels, sides[1])))
    return found


def corner_count(classes: int, *, approximate: bool = False) -> int:
    """Return the number of `corners`: C^2, or that of theorem 3 for Delta > 0."""
    letters = 4 if approximate else 2
    return sum(comb(letters - 1, runs - 1) * perm(classes, runs) for runs in range(1, letters + 1))


def reduced_count(voters: int, classes: int, *, approximate: bool = False) -> int:
    """Return the number of choices of K corners that theorem 2, or 4 for Delta > 0, leaves.

    Args:
        voters: K, at least 1.
        classes: C, at least 2.
        approximate: whether Delta > 0.

    Example:
        >>> [reduced_count(k, 3) for k in (2, 3, 4)]
        [42, 138, 363]
    """
    couples = (corner_count(classes, approximate=approximate) - classes) // 2
    kinds = couples + classes
    # (1 + x)^q / (1 - x)^(q + C): how many couples are turned, and a multiset of kinds.
    return sum(
        comb(couples, turned) * comb(voters - turned + kinds - 1, kinds - 1)
        for turned in range(min(couples, voters) + 1)
    )


def _image(classes: int, labels: Sequence[int], masses: Sequence[Fraction]) -> Law:
    law = [Fraction(0)] * classes
    for label, mass in zip(labels, masses, strict=True):
        law[label] += mass
    return tuple(law)


def _compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    if parts == 1:
        return [(total,)]
    return [
        (first, *rest)
        for first in range(1, total - parts + 2)
        for rest in _compositions(total - first, parts - 1)
    ]
