"""How many multisets the reduction theorem leaves, and up to where they are all priced."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt.majority.setting import Axis, MajoritySetting

_LARGEST_VOTERS, _LARGEST_SIZE = 4001, 600_000_000
_LARGEST_GROUPED = 151


def reduced_size(setting: MajoritySetting) -> int:
    """Return the number of multisets that the reduction leaves to check.

    (K + 1)^2 for Delta = 0, else C(K+4, 4) + 3 C(K+3, 4) + 3 C(K+2, 4) + C(K+1, 4); with groups,
    counted from the ways to place t voters of each group at its corners.
    """
    _checks.instance("setting", setting, MajoritySetting)
    return int(sum(reduced_sizes(setting)))


def reduced_sizes(setting: MajoritySetting) -> list[int]:
    """Return how many multisets have d voters at corners with Delta, d = 0..K."""
    k = setting.mechanisms
    if not setting.groups:
        # d voters at corners with Delta in 4 d ways, the others as for Delta = 0.
        last = 0 if setting.mechanism_delta == 0.0 else k
        return [(4 * d or 1) * (k - d + 1) ** 2 for d in range(last + 1)]
    # ways[d, t]: ways to have t voters at inner corners, d of them at corners with Delta.
    ways = {(0, 0): 1}
    for place, group in enumerate(setting.voters):
        kinds = [axis.names[0][0] != "b" for axis in setting.axes if axis.group == place]
        inside = {(0, 0): 1}
        for shifted in kinds:
            wider: dict[tuple[int, int], int] = {}
            for (d, t), count in inside.items():
                for n in range(group.size - t + 1):
                    at = (d + n * shifted, t + n)
                    wider[at] = wider.get(at, 0) + count * (2 if n else 1)
            inside = wider
        joined: dict[tuple[int, int], int] = {}
        for (d, t), count in ways.items():
            for (e, u), other in inside.items():
                joined[d + e, t + u] = joined.get((d + e, t + u), 0) + count * other
        ways = joined
    sizes = [0] * (k + 1)
    for (d, t), count in ways.items():
        sizes[d] += count * (k - t + 1)
    return sizes


def priceable(setting: MajoritySetting) -> bool:
    """Whether the whole reduced set is small enough to be priced: up to 6e8 multisets."""
    k = setting.mechanisms
    largest = _LARGEST_GROUPED if setting.groups else _LARGEST_VOTERS
    pure = len(setting.axes) == 1
    return k <= largest and (pure or reduced_size(setting) <= _LARGEST_SIZE)


def require_priceable(setting: MajoritySetting) -> None:
    """Refuse a setting whose reduced set is too large to be priced.

    Raises:
        ParameterError: if it is.
    """
    _checks.instance("setting", setting, MajoritySetting)
    if not priceable(setting):
        raise ParameterError(
            f"mechanisms is {setting.mechanisms}; every constraint can be priced up to "
            f"{_LARGEST_VOTERS} voters if mechanism_delta is 0, else up to 203 (for groups: up to "
            f"{_LARGEST_GROUPED} voters and {_LARGEST_SIZE:.0e} multisets)."
        )


def walk_size(axes: Sequence[Axis], sizes: Sequence[int]) -> int:
    """Count the choices of how many voters stand on each axis, those of a group at most its size.

    Args:
        axes: those walked over; a group may have several.
        sizes: of the groups.
    """
    return math.prod(
        math.comb(size + sum(axis.group == group for axis in axes), size)
        for group, size in enumerate(sizes)
    )
