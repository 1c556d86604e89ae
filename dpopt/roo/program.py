"""Linear programs over q_0..q_M: the journal paper's, and the exact one."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from dpopt import _checks
from dpopt._errors import ParameterError
from dpopt.lp import Problem, make_rows
from dpopt.lp.model import Rows
from dpopt.roo.setting import RooSetting
from dpopt.roo.transitions import Move, moves

_LARGEST = 200_000


def exact_problem(setting: RooSetting) -> Problem:
    """Return the program of the least rule in the smallest count: variable "q", block "privacy".

    Minimise sum of q_m subject to f(m~, c~) <= e^epsilon f(m, c) for all moves between neighbours:
    O(1) rows for each m. The optimum is least in every q_m at once.

    Raises:
        ParameterError: if M = floor(n / k) is above 200,000.
    """
    _checks.instance("setting", setting, RooSetting)
    found = [move for m in range(_size(setting)) for move in moves(setting, m)]
    return _problem(setting, "privacy", _rows(setting, found))


def journal_problem(setting: RooSetting) -> Problem:
    """Return the journal paper's program: (68) to (70) and (72) to (74), minimise sum of q_m.

    Raises:
        ParameterError: if M = floor(n / k) is above 200,000.
    """
    _checks.instance("setting", setting, RooSetting)
    n, k, e = setting.records, setting.letters, math.exp(setting.epsilon)
    last = _size(setting) - 1
    m = np.arange(last + 1)
    u, v = 1 / k - (m + 1) / n, e * (1 / k - m / n)
    w = (m * math.expm1(setting.epsilon) - 1) / n
    flat = np.ones(last + 1)
    u_all, v_all = flat * (1 / k - 1 - 1 / n), flat * e * (1 / k - 1)
    w_all = flat * (math.expm1(setting.epsilon) - 1 / n)
    problem = _problem(setting, "(68)", _diagonals(last, {0: u - v}, w))
    problem.add_rows("(72)", _diagonals(last, {0: u_all - v_all}, w_all))
    if last:
        problem.add_rows("(69)", _diagonals(last, {0: -v, 1: u}, w, rows=slice(0, last)))
        problem.add_rows("(70)", _diagonals(last, {0: -v, -1: u}, w, rows=slice(1, last + 1)))
        both = {"(73)": (1, slice(0, last)), "(74)": (-1, slice(1, last + 1))}
        for name, (offset, rows) in both.items():
            problem.add_rows(name, _diagonals(last, {0: -v_all, offset: u_all}, w_all, rows=rows))
    return problem


def _size(setting: RooSetting) -> int:
    if setting.largest_minimum > _LARGEST:
        raise ParameterError(
            f"records / letters is {setting.records / setting.letters:g}; the program is written "
            f"out up to {_LARGEST}. The recursion has no such limit."
        )
    return setting.largest_minimum + 1


def _problem(setting: RooSetting, name: str, rows: Rows) -> Problem:
    problem = Problem("DS-ROO obscuring probabilities")
    problem.add_variables("q", _size(setting), lower=0.0, upper=1.0)
    problem.minimise({"q": 1.0})
    problem.add_rows(name, rows)
    return problem


def _rows(setting: RooSetting, found: list[Move]) -> Rows:
    """Return q~ (1/k - c~/n) - e q (1/k - c/n) <= (e c - c~) / n for each move, times n."""
    n, k, e = setting.records, setting.letters, math.exp(setting.epsilon)
    count = len(found)
    here = np.array([(move.minimum, move.count) for move in found], dtype=float)
    there = np.array([(move.new_minimum, move.new_count) for move in found], dtype=float)
    place = np.arange(count)
    data = np.concatenate([n / k - there[:, 1], -e * (n / k - here[:, 1])])
    columns = np.concatenate([there[:, 0], here[:, 0]]).astype(int)
    shape = (count, setting.largest_minimum + 1)
    matrix = sp.csr_array((data, (np.concatenate([place, place]), columns)), shape=shape)
    # e c - c~ without cancellation where c~ is next to c.
    right = math.expm1(setting.epsilon) * here[:, 1] - (there[:, 1] - here[:, 1])
    return make_rows(matrix, upper=right)


def _diagonals(
    last: int, bands: dict[int, np.ndarray], right: np.ndarray, rows: slice | None = None
) -> Rows:
    """Return rows sum over offsets of band[m] q_{m + offset} <= right[m], for m in ``rows``."""
    part = slice(0, last + 1) if rows is None else rows
    m = np.arange(last + 1)[part]
    data = np.concatenate([band[part] for band in bands.values()])
    columns = np.concatenate([m + offset for offset in bands])
    place = np.tile(np.arange(m.size), len(bands))
    matrix = sp.csr_array((data, (place, columns)), shape=(m.size, last + 1))
    return make_rows(matrix, upper=right[part])
