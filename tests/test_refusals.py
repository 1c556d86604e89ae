"""What does not fit together is refused in one sentence that names what does not.

Single values of a wrong kind are tried by robustness/test_public_fuzz.py for every public callable
and by shape/checks.py for every setting. Here stand limits, and arguments that contradict others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import dpopt
from dpopt import ParameterError, Problem, composition, lp, majority, smoothed, table
from dpopt.ballots import tabulate
from dpopt.cli import release
from dpopt.privacy import guarantee
from dpopt.prob import batches
from tests.kernel.test_symmetry import ring
from tests.shape.toys import Coin

NAN, INF = math.nan, math.inf
TWICE: dict[str, Any] = {"releases": 2, "total_epsilon": 1.0, "total_delta": 0.1}


def kernel(**changed: Any) -> dpopt.Kernel:
    return dpopt.Kernel(**{"loss": np.eye(3), "epsilon": 1.0, **changed})


def on_a_ring(symmetry: Any, **changed: Any) -> dpopt.Kernel:
    return dpopt.Kernel(**{"loss": ring(4), "epsilon": 1.0, "symmetry": symmetry, **changed})


def several(**changed: Any) -> dpopt.Kernel:
    return kernel(**{"epsilon": None, **TWICE, **changed})


def rows(*block: Any) -> dpopt.Kernel:
    return kernel(constraints=[block])


def on_another(point: Any = None, **changed: Any) -> None:
    given = {"setting": dpopt.Kernel.example(), **changed}
    dpopt.certify(np.eye(4) if point is None else point, **given)


def of_problem(objective: Any, *rows: Any) -> None:
    lp.solve(cp.Problem(objective, [*rows]))


def of_cvxpy(row: Any) -> None:
    dpopt.certify(V2, 1.0, constraints=[row])


def program() -> Problem:
    problem = Problem()
    problem.add_variables("x", 2, lower=0.0, upper=1.0)
    problem.add_variables("y", 1, lower=0.0, upper=1.0)
    problem.add_variables("K", (3, 4), lower=0.0, upper=1.0)
    problem.add_rows("budget", {"x": [[1.0, 1.0]]}, upper=1.5)
    problem.maximise({"x": [1.0, 1.0]})
    return problem


def add(matrix: Any, **limits: Any) -> None:
    """Add rows to a program, which are refused and leave it as it is."""
    unchanged(lambda p: p.add_rows("r", matrix, **limits))


def over(matrix: Any) -> None:
    add({"K": matrix}, upper=1.0)


def private(**changed: Any) -> None:
    unchanged(lambda p: p.add_private(**{"name": "r", "variable": "K", "epsilon": 1.0, **changed}))


def unchanged(change: Any) -> None:
    problem = program()
    try:
        change(problem)
    finally:
        assert (list(problem.variables), list(problem.blocks)) == (["x", "y", "K"], ["budget"])
        assert lp.solve(problem).objective == pytest.approx(1.5, abs=1e-9)


def constraints(K: Any, epsilon: Any = 1.0, *more: Any, **how: Any) -> None:
    dpopt.privacy_constraints(K, epsilon, *more, **how)


def moved(*sigma: int) -> tuple[Any, Any]:
    return np.array(sigma), np.array(sigma)


def adaptive(*pair: Any, releases: Any = 1) -> None:
    composition.adaptive_delta([pair], releases, 1.0)


def sgd(**changed: Any) -> None:
    smoothed.sgd_profile(**{"values": [0, 1, 2], "drawn": 2, "epsilons": 1.0, **changed})


K3, S3, X = cp.Variable((3, 3)), table.SortedHistograms(3, 3), cp.Variable(2)
V2 = cp.Variable((2, 2))
V2.value = np.array([[0.6, 0.4], [0.4, 0.6]])
ASKED = cp.Problem(cp.Minimize(cp.sum(X)), [X >= 0])
MEAN = smoothed.SamplingHistogram(5, 4)
PLAIN, VOTES = dpopt.Plurality(5, 3, 0.5), [[2, 2, 1, 0, 2], [0, 1, 0, 0, 1]]
# Each denominator is short; their common one would not be.
PRIMES = [p for p in range(3, 2500) if all(p % q for q in range(2, math.isqrt(p) + 1))]
DENOMINATORS = np.array([Fraction(1, p**200) for p in PRIMES], dtype=object)

# By what is called: EXPRESSION -> WORDS of the refusal.
REFUSED = {
    "settings": """
dpopt.Noise(101, 1.0, 1e-3) -> sensitivity is 101
dpopt.Noise(900, 0.05) -> sensitivity is 900
dpopt.Noise(1, 1.0, 1e-300) -> delta is
dpopt.Noise(1, 1.0, 0.0, [1, 0]) -> loss
dpopt.Noise(1, 1.0, 0.0, [1, 1]) -> loss
dpopt.Noise(1, 1.0, 0.0, [0]) -> loss
dpopt.Noise(2, 1.0, 0.1, "squared", 2) -> releases is 2
dpopt.Noise(1, 1.0, 0.0, "squared", 2) -> releases is 2
dpopt.Plurality(6, 3, 1e9) -> epsilon is
dpopt.Majority(5, 0.5, 1.5, priors="uniform:0,1") -> priors is 'uniform:0,1'
dpopt.Plurality(6, 3, 1.0, prior="dirichlet:0") -> prior is
dpopt.Plurality(6, 3, 1.0, prior="beta:1,1") -> prior is
dpopt.Plurality(400, 10, 1.0) -> permute-and-flip
dpopt.Plurality(400, 10, 1.0, rule="ladder") -> permute-and-flip
dpopt.design(dpopt.Majority(3, 1e-9, 1)) -> double precision
dpopt.Plurality(6, 3, 1.0, prior="dirichlet") -> prior is
dpopt.Plurality(6, 3, 1.0, prior="dirichlet:1,2") -> prior is
dpopt.Plurality(6, 3, 1.0, prior="dirichlet:1e7") -> prior is
dpopt.Plurality(6, 3, 1.0, prior="uniform:1") -> prior is
dpopt.Plurality(6, 3, 1.0, prior="point:1") -> prior is
audit_rule("ladder", 252, 10, 0.5) -> all sorted histograms of 252 ballots
""",
    "several releases": """
dpopt.Majority(5, 0.3) -> allowance is missing; give it, or releases, total_epsilon
dpopt.Majority(5, 0.3, 1.0, releases=2) -> allowance is 1.0 and releases is 2
dpopt.Majority(5, 0.3, releases=2) -> releases is 2 and total_epsilon is missing
dpopt.Majority(5, 0.3, 1.0, total_epsilon=1.0) -> is given and releases is 1
dpopt.Majority(5, 0.3, 1.0, total_delta=0.1) -> is given and releases is 1
kernel(epsilon=None) -> epsilon is missing
several(total_delta=0.0) -> total_delta is 0; it must be at least 1e-12. For 0, design one release
several(delta=0.1) -> delta is 0.1 and releases is 2
several(total_epsilon=29) -> total_epsilon is 29; it must be a number in (0, 28]
several().problem() -> releases is 2; for several there is no single program
dpopt.Majority(5, 0.3, **TWICE).problem() -> for several there is no single program
dpopt.Plurality(5, 3, **TWICE).problem() -> for several there is no single program
dpopt.Plurality(5, 3, rule="ladder", **TWICE) -> rule is 'ladder' and releases is 2
dpopt.Plurality(5, 3, releases=0) -> releases is 0; it must be an integer of at least 1
dpopt.Multiclass(5, 3, 0.3, voter_delta=0.1, **TWICE) -> voter_delta is 0.1 and releases is 2
composition.adaptive_delta([], 1, 1.0) -> pairs is empty
""",
    "votes": """
vote(PLAIN, VOTES, budget=Guarantee(0.9)) -> affords 1
vote(PLAIN, VOTES, voters_per_record=6) -> voters_per_record is 6
vote(PLAIN, VOTES, counts=[[1, 2, 2]]) -> give exactly one
vote(PLAIN) -> give exactly one
vote(PLAIN, VOTES, trained_once=True) -> trained_once is True; it belongs to private voters
vote(PLAIN, counts=[1, 4]) -> counts
vote(PLAIN, counts=[[5]]) -> counts
vote(PLAIN, counts=[[1, 2, 2], [5]]) -> counts
vote(PLAIN, counts=[[1, 2, 3]]) -> counts
vote(PLAIN, counts=[[6, -1, 0]]) -> counts
vote(PLAIN, counts=[[2.5, 1.5, 1]]) -> counts
vote(dpopt.Multiclass(5, 3, 0.5, 2), VOTES) -> trained_once is None
vote(dpopt.Multiclass(5, 3, 0.5, 2), VOTES, trained_once=False, budget=Guarantee(1.5)) -> affords 1
vote(dpopt.Multiclass(5, 3, 0.5, 2), counts=[[1, 2, 2]], trained_once=False) -> votes are needed
""",
    "kernels": """
kernel(loss="absolute") -> inputs is None and loss is 'absolute'
kernel(loss="absolute", inputs=2**22 + 1) -> at most 4194304
kernel(loss="hamming", inputs=4) -> shape is None and loss is 'hamming'
kernel(loss="hamming", shape=(10**9,) * 50) -> which makes about 1e+450
kernel(loss="hamming", shape=(1, 1)) -> shape is (1, 1), which makes 1 words
kernel(loss="hamming", shape=(2, 2), inputs=3) -> makes 4 words of 3 inputs
kernel(loss="hamming", shape=(2, 2), outputs=3) -> words of 4 inputs and 3 outputs
kernel(loss="absolute", inputs=3, graph="grid") -> shape is None
kernel(inputs=4) -> inputs is 4 and loss a table of shape (3, 3)
kernel(loss=[[1.0, 1e101], [0.0, 0.0]]) -> above 1e+100
kernel(epsilon=601.0) -> epsilon is 601
kernel(graph=[(1, 1)]) -> two different inputs
kernel(graph="hamming", shape=(2, 2)) -> makes 4 words of 3 inputs
kernel(graph="path", shape=(3,)) -> belongs to the graphs 'grid' and 'hamming'
kernel(prior=[0.5, 0.5]) -> prior has shape
kernel(prior=[1, 1, 1], objective="worst-case") -> belongs to objective 'mean'
kernel(invariant=[0.5, 0.6, 0.7]) -> invariant sums to 1.8
kernel(invariant=np.eye(3)) -> invariant has shape (3, 3); it must be (3,)
kernel(loss=np.ones((3, 2)), invariant=[0.2, 0.3, 0.5]) -> as many outputs as inputs
kernel(constraints="near.json") -> read_constraints
kernel(loss=np.zeros((150, 150)), delta=0.1).problem() -> at most 2,000,000
rows("a", np.ones((1, 8)), 0.0, 1.0) -> has shape (1, 8)
rows("a", [[0, 3, 0]], [1.0], [0.5], [None]) -> constraints 'a' hold input 3
rows("a", [[0, 0, 3]], [1.0], [0.5], [None]) -> constraints 'a' hold output 3
rows("a", [[1, 0, 0]], [1.0], [0.5], [None]) -> of a row that has no limits
rows("a", [[0, 0]], [1.0], [0.5], [None]) -> places of rows 'a' have shape
rows("a", [[0, 0, 0]], [NAN], [0.5], [None]) -> coefficients of rows 'a'
rows("a", [[0, 0, 0]], [1.0, 2.0], [0.5], [None]) -> one for each place
rows("a", [[0, 0, 0]], [1.0], [0.5], 0.7) -> upper of rows 'a' is 0.7
rows("a", [[0, 0, 0]], [1.0], [0.5], []) -> 1 lower and 0 upper
rows("", [[0, 0, 0]], [1.0], [None], [0.5]) -> name of constraints is ''
rows("privacy", np.ones((1, 9)), 0.0, 1.0) -> constraints holds the name 'privacy'
on_a_ring("round") -> symmetry is 'round'; it must be one of none, auto
on_a_ring([]) -> symmetry is []; it must be a name
on_a_ring([([0, 1, 2], [0, 1, 2, 3])]) -> permutations of 0..3
on_a_ring([([0, 1, 2, 3], [0.0, 1, 2, 3])]) -> permutations of 0..3
on_a_ring([([0, 1, 1, 3], [0, 1, 2, 3])]) -> permutations of 0..3
on_a_ring([([0, 1, 2, 4], [0, 1, 2, 3])]) -> permutations of 0..3
on_a_ring([([1, 0, 2, 3], [0, 1, 2, 3])]) -> the pair (0, 0) to (1, 0), and loss is 0 at the first
on_a_ring("symbols", loss=1 - np.eye(4), graph="cycle") -> that are none in graph
on_a_ring("cyclic", graph="path") -> 'cyclic': generators must map neighbours to neighbours
on_a_ring("cyclic", prior=[1, 2, 1, 2]) -> prior gives them different weights
on_a_ring("reflection", invariant=[0.25] * 4) -> there are constraints, an invariant or names
on_a_ring("cyclic", constraints=[("far", np.eye(16)[[3]], 0.05, None)]) -> there are constraints
on_a_ring("cyclic", output_names="a,b,c,d") -> 'cyclic' and there are constraints, an invariant
on_a_ring("hamming") -> 'hamming' without a shape
on_a_ring("cyclic", loss=ring(4)[:, :3]) -> 4 inputs and 3 outputs
on_a_ring("cyclic", loss="absolute", inputs=100_000, graph="cycle") -> not known to keep the loss
""",
    "tables that are certified": """
dpopt.certify([[0.5, 0.5]], 1.0) -> at least 2 inputs
dpopt.certify([[0.5, NAN], [0.5, 0.5]]) -> kernel holds nan for input 0 and output 1
dpopt.certify([[0.5, 0.4], [0.5, 0.5]]) -> row of input 0 sums to 0.9
dpopt.certify([[1.5, -0.5], [0.5, 0.5]]) -> row of input 0 has -0.5 of negative probability
dpopt.certify({"a": [0.5, 0.5], "b": [0.5, "x"]}) -> column 'b' of kernel is not an array
dpopt.certify({"input": [0, 0], "output": [0, 0], "probability": [1.0, 1.0]}) -> 2 lines of input 0
dpopt.certify({"input": [0, 1], "output": [0, 1], "probability": [1.0, 1.0]}) -> write 0 if it is
dpopt.certify(cp.Variable((2, 2))) -> has no value; solve it first
dpopt.certify("no-such.csv") -> no such file
dpopt.certify("table.xlsx") -> a table is a file that ends in .csv
dpopt.certify(dpopt.design(dpopt.RevealOrObscure.example()), delta=0.1) -> is asked for
dpopt.certify(dpopt.design(dpopt.SmoothFloor.example()), epsilon=1.0, delta=None) -> is asked for
dpopt.certify(dpopt.design(dpopt.Mollifier.example()), delta=0.1) -> no least epsilon of it
dpopt.certify(dpopt.design(dpopt.Majority.example()), graph="path") -> between its own neighbours
dpopt.certify(dpopt.design(dpopt.Majority.example()), epsilon=1.0) -> such as design.kernel
dpopt.certify(dpopt.design(dpopt.Kernel.example()), inputs="abcd") -> for more take
on_another(epsilon=1.0) -> epsilon is given and so is setting
on_another(delta=0.1) -> delta is given and so is setting
on_another(graph="path") -> graph is given and so is setting
on_another(constraints=[]) -> constraints is given and so is setting
on_another(inputs="abcd") -> inputs is given and so is setting
on_another(setting="kernel") -> setting is 'kernel'; it must be
on_another({"input": [0], "output": [0], "probability": [1.0]}) -> point is a dict; it must be
dpopt.certify(np.ones((2, 3, 5)) / 5, 2.0, graph="hamming", shape=(2, 3)) -> it must be a table
dpopt.certify(np.eye(2), 1.0, constraints=[X[0] <= 0.5]) -> must then be a variable of cvxpy
of_cvxpy(V2[0, 0] <= X[0]) -> at place 0; it must be an equality or ineq
of_cvxpy(cp.square(V2[0, 0]) <= 0.5) -> at place 0; it must be an equality or ineq
of_cvxpy(cp.norm(V2) <= 2) -> at place 0; it must be an equality or ineq
""",
    "programs": """
unchanged(lambda p: p.add_variables("z", 2, lower=[0.0, 2.0], upper=1.0)) -> entry 1
unchanged(lambda p: p.add_variables("z", 2, lower=1.0, upper=0.0)) -> lower
unchanged(lambda p: p.add_variables("z", 2, lower=INF, upper=INF)) -> lower
unchanged(lambda p: p.minimise([1.0, 1.0, 1.0])) -> objective
unchanged(lambda p: p.minimise({"x": [1.0, INF]})) -> objective of 'x'
unchanged(lambda p: p.minimise({"z": 1.0})) -> 'z'
unchanged(lambda p: p.minimise({"K": np.ones((4, 3))})) -> objective of 'K' has shape (4, 3)
unchanged(lambda p: p.minimise({"K": {(3, 0): 1.0}})) -> 'K' has no entry (3, 0)
unchanged(lambda p: p.minimise({"K": {(0, 0): [1.0, 2.0]}})) -> the coefficients for 'K'
unchanged(lambda p: p.minimise({"K": {(0, 0): INF}})) -> objective of 'K'
unchanged(lambda p: p.then_minimise({"z": 1.0})) -> 'z'
unchanged(lambda p: p.add_variables("x", 1, lower=0.0, upper=1.0)) -> name is 'x'
unchanged(lambda p: p.add_variables("budget", 1, lower=0.0, upper=1.0)) -> name is 'budget'
unchanged(lambda p: p.add_rows("x", [[1.0] * 15], upper=1.0)) -> name is 'x'
unchanged(lambda p: p.add_rows("budget", [[1.0] * 15], upper=1.0)) -> name is 'budget'
unchanged(lambda p: p.add_family("x", print)) -> name is 'x'
unchanged(lambda p: p.add_family("budget", print)) -> name is 'budget'
unchanged(lambda p: p.add_family("cone", print, over="z")) -> 'z'
unchanged(lambda p: p.add_family("disc", print, first=3)) -> first is 3; it must be a function
unchanged(lambda p: p.set_inside({}, slack=1.0)) -> name all variables
unchanged(lambda p: p.set_bounds("x", lower=[0, 9])) -> bounds of 'x': lower is 9
unchanged(lambda p: p.set_bounds("x", upper=[1.0] * 3)) -> bounds of 'x': upper has shape
unchanged(lambda p: p.set_bounds("x", upper=NAN)) -> bounds of 'x': upper holds NaN
unchanged(lambda p: p.set_bounds("L", lower=0.0)) -> no variable named 'L'; known: x, y, K
unchanged(lambda p: p.replace_rows("b", {"x": [[1.0, 1.0]]}, upper=1.0)) -> no rows named 'b'
unchanged(lambda p: p.replace_rows("budget", {"z": 1.0}, upper=1.0)) -> no variable named 'z'
lp.solve(program(), stop_at_gap=-1.0) -> stop_at_gap
lp.solve(program(), "gurobi") -> such as cvxpy:CLARABEL.
lp.solve(program(), "Mosek") -> such as cvxpy:CLARABEL.
lp.solve(Problem()) -> no variables
of_problem(cp.Maximize(cp.Constant(3.0))) -> no variables
of_problem(cp.Minimize(cp.Parameter(name="price") * X[0])) -> 'price' has no value
of_problem(cp.Minimize(cp.Variable(boolean=True))) -> integer or boolean
of_problem(cp.Minimize(X[0]), cp.FiniteSet(X[0], [1, 2])) -> finite sets
of_problem(cp.Minimize(cp.real(cp.Variable(complex=True)))) -> complex
of_problem(cp.Maximize(cp.norm(X))) -> its objective
of_problem(cp.Minimize(0), (cp.sqrt(X) <= 1).set_label("root")) -> 'root'
of_problem(cp.Minimize(0), (X - NAN >= 1).set_label("gap")) -> rows 'gap': upper holds NaN
of_problem(cp.Minimize(X[0]), cp.norm(X) <= 1) -> by problem.solve() of cvxpy, and prove the
of_problem(cp.Minimize(cp.sum_squares(X))) -> not linear
of_problem(cp.Minimize(cp.exp(X[0]))) -> kernel that it finds by dpopt.certify
Problem().assemble() -> no variables
Problem().then_minimise([1.0]) -> no objective before
add([[1.0]], upper=1.0) -> 'r' have 1 columns
add({"x": [[1.0]]}, upper=1.0) -> 'x' has shape (1, 1)
add({"x": [[1.0, 1.0]]}) -> lower and upper
add({"x": [[1.0, 1.0]]}, lower=2.0, upper=1.0) -> lower is 2
add({"x": [[1.0, INF]]}, upper=1.0) -> matrix
add({"x": [[1.0, 1.0]]}, upper=NAN) -> upper
add({"z": [[1.0]]}, upper=1.0) -> 'z'
add({"x": np.eye(2), "y": [[1.0]]}, upper=1.0) -> rows 'r'
add({"x": [[1.0, 1.0]]}, lower=INF) -> lower
over({(0, 4): 1.0}) -> 'K' has no entry (0, 4); its shape is (3, 4)
over({(-1, 0): 1.0}) -> 'K' has no entry (-1, 0)
over({3: 1.0}) -> 'K' has no entry 3
over({(0, 0): [1.0, 2.0]}) -> 'K'
over({(0, 0): NAN}) -> matrix holds a value that is not finite
over([{(0, 0): 1.0}, 5]) -> row 1 for 'K' is 5
over(np.ones((4, 3))) -> the matrix for 'K' has shape (4, 3); it must be (12,) or (3, 4)
over(np.ones((2, 4, 3))) -> shape (2, 4, 3)
over(np.ones(11)) -> shape (11,)
over(sp.csr_array(np.ones((2, 11)))) -> shape (2, 11)
private(graph=[(1, 1)]) -> graph holds the edge (1, 1)
private(graph=[(0, 4)]) -> graph holds the edge (0, 4)
private(graph="grid", shape=(3, 2)) -> shape is
private(shape=(2, 2)) -> shape is
private(variable="Q") -> no variable named 'Q'
private(variable="x") -> 'r' are over 'x', which has shape (2,)
private(name="budget") -> name is 'budget'
constraints(np.eye(3)) -> cvxpy Variable or affine
constraints(cp.Variable(3)) -> of shape (inputs, outputs)
constraints(cp.square(K3)) -> affine
constraints(cp.Constant(np.eye(3))) -> affine
constraints(cp.Variable((2, 2), complex=True)) -> must be a real cvxpy
constraints(K3, cp.Parameter(2)) -> scalar cvxpy Parameter
constraints(K3, cp.Variable()) -> scalar cvxpy Parameter
constraints(K3, 1.0, 0.0, [[0, 0]]) -> edge (0, 0)
constraints(K3, shape=(3,)) -> shape is
constraints(cp.Variable((200, 200)), 1.0, 0.1) -> 7,960,000 privacy rows
""",
    "integers and their inputs": """
Table(Graph(1, 2), (0, 0), 0) -> total must
Table(Graph(1, 2), (-1, 0), -1) -> total must
Table(Graph(1, 2), (1, 1), 2.0) -> total must
Table(Graph(1, 2), [1, 1], 2) -> weights must be a tuple of 2 integers
Table(Graph(1, 2), (1, 1, 0), 2) -> weights must be a tuple of 2 integers
Table(Graph(1, 2), (1.0, 1), 2) -> weights must be integers of at least 0
Table(Graph(1, 2), (True, 1), 2) -> weights must be integers of at least 0
Table(Graph(1, 2), (-1, 3), 2) -> weights must be integers of at least 0
Table(Graph(1, 2), (1, 2), 2) -> weights of row 0 sum to 3
Table(S3, (1,) * S3.size, 4) -> sum
Table.read(S3, {}) -> table
Table.read(S3, None) -> table
Table.read(S3, {"total": "3"}) -> table
Table.read(Graph(2, 2), {"total": "3", "weights": [["1", "1", "1"], ["3"]]}) -> other lengths
rounded(Graph(2, 2), [1, 2, -1, 3]) -> negative
rounded(Graph(2, 2), [1, 2, 0, 0]) -> all have probability 0
polished(Graph(2, 2), np.array([0.5, 0.5]), Guarantee(1.0)) -> must hold 4 finite numbers
polished(Graph(2, 2), np.array([0.5, INF] * 2), Guarantee(1.0)) -> must hold 4 finite numbers
Graph(3, 3, np.array([0, 1])) -> graph has shape
Graph(3, 3, None, (moved(0, 0, 2),)) -> no permutation
Graph(3, 3, np.array([(1, 2), (2, 1)]), (moved(1, 0, 2),)) -> neighbours to neighbours
Words(1, 2, True) -> at least 2 symbols
Words(2, 0, True) -> at least 1 position
Graph(5, 2).located(5) -> inputs
Graph(5, 2).located([-1, 0]) -> inputs
Graph(5, 2).located([[0]]) -> inputs
Graph(5, 2).located([0.0]) -> inputs
S3.located([4, -1, 0]) -> add up to 3 records
S3.located([[3, 0, 0], [2, 0, 0]]) -> add up to 3 records
S3.located([3, 0]) -> 3 integers for each query
S3.located(3) -> 3 integers for each query
S3.located([[[3, 0, 0]]]) -> 3 integers for each query
S3.located([3.0, 0.0, 0.0]) -> 3 integers for each query
Losses([0.0, 1.0], [1.0, -1.0]) -> weights is
Losses([0.0, 1.0], [0.0, 0.0]) -> weights is
Losses([0.0, 1.0], [1.0, NAN]) -> weights is
Losses([[0.0, 1.0]]) -> costs has shape (1, 2); it must be finite numbers, shape (n,)
Losses([0.0, INF]) -> costs is
Losses(["a", "b"]) -> costs
Losses([]) -> costs
""",
    "rows of a command": """
rows_of_text("input", "", int, "integers") -> input is empty
rows_of_text("input", " , ", int, "integers") -> input is empty
rows_of_text("input", "1,-", int, "integers") -> no list of integers
rows_of_text("input", "1,x", int, "integers") -> no list of integers, and there is no such file
rows_of_text("input", ".", int, "integers") -> input is '.';
""",
    "kinds of one's own": """
Coin(1.0).keep(epsilom=2.0) -> keep was given 'epsilom'; fields of Coin are eps
Coin(1.0).output_weights((1, 3), 0) -> 'toy-coin'; it has no Table and no output_weights
Coin(1.0).columns((1, 3)) -> 'toy-coin'; it has no Table and no columns
Coin(1.0).plain((1, 3)) -> 'toy-coin'; it has no Table and no plain
""",
    "compositions and sampling": """
adaptive([0.5, 0.5], [1.0]) -> pairs
adaptive([0.5, 0.6], [0.5, 0.5]) -> pairs
adaptive([0.5, 0.5], [0.5, 0.5], releases=0) -> releases
optimal_composition(Guarantee(0.1), 2, 1.0) -> delta is
optimal_composition(Guarantee(0.1), 2, 1e-301) -> delta is
smoothed.privacy_profile(MEAN, 1.0, (5, 5)) -> histogram
smoothed.privacy_profile(MEAN, 1.0, (5, 4, 1)) -> histogram
smoothed.privacy_profile(smoothed.SamplingHistogram(10**9, 10**8), 1.0) -> databases
smoothed.smoothed_delta(MEAN, 1.0, [0.2, 1.2]) -> [0, 1]
smoothed.smoothed_delta(MEAN, 1.0, [[0.2, 0.7]]) -> sum
smoothed.smoothed_delta(MEAN, 1.0, [[0.2, 0.3, 0.5]]) -> categories
smoothed.SamplingHistogram(10, 11) -> drawn is 11
MEAN.pmfs([[1, 2]]) -> 5 records over 2
smoothed.SamplingHistogram(10**5, 10**4).pmfs([[1, 10**5 - 1]]) -> table of distributions
sgd(values=[0.5, 1]) -> no integer
sgd(values=[1 << 50, 1]) -> 2^40
sgd(values=[129, 1]) -> values holds 129
sgd(drawn=4) -> drawn
sgd(epsilons=701.0) -> epsilons
sgd(lowest=5) -> values holds
sgd(values=[-127], drawn=1, highest=-127) -> highest
sgd(highest=1 << 17) -> highest
batch_distribution(np.zeros(1010, dtype=int), 505) -> 2^1000 batches
batch_distribution([0, 1 << 30, 5], 2) -> partial sums
batch_distribution(np.arange(400_000) % 200, 60) -> additions
smoothed.privacy_profile(smoothed.SamplingHistogram(2000, 1000, 3), 1.0) -> Give one histogram
sgd(lowest=-30_000, highest=30_000) -> table of
sgd(lowest=-30_000, highest=30_000, rounded=True) -> table of
smoothed.SamplingHistogram.of_lost_rate(10, "1e-100000000") -> lost_rate is
smoothed.SamplingHistogram.of_lost_rate(10, "0." + "0" * 5000 + "1") -> lost_rate is
smoothed.SamplingHistogram.of_lost_rate(10, "1/0") -> lost_rate is
smoothed.SamplingHistogram.of_lost_rate(10, "nan") -> lost_rate is
smoothed.smoothed_delta(MEAN, 1, [[1e308, 1e308]]) -> sum
smoothed.smoothed_delta(MEAN, 1, [[1.7e308, 0.0]]) -> sum
dpopt.Population([0.5, 0.5], 1.0, users=[[1e308, 1e308]]) -> sum
dpopt.Population([0.5, 0.5], 1.0, users=[[1.7e308, 0.0]]) -> sum
dpopt.Mollifier([0.5, 0.5], 1.0, distribution=[1e308, 1e308]) -> sum
dpopt.Mollifier([0.5, 0.5], 1.0, distribution=[1.7e308, 0.0]) -> sum
dpopt.public_prior.draw_own_category(DENOMINATORS, DENOMINATORS.size) -> common denominator
roo.rule_weights(roo.RooSetting(10**15, 3, 5e-324), "exact") -> 1,000,000 of the q_m
roo.rule_weights(roo.RooSetting(10**15, 2, 1e-9), "journal") -> 1,000,000 of the q_m
roo.rule_weights(roo.RooSetting(10**7, 2, 1e-8), "journal-repaired") -> 1,000,000 of the q_m
roo.rule_weights(roo.RooSetting(10**15, 3, 1e-9), "conference") -> 1,000,000 of the q_m
expected_error_weights(3, PointPrior((0.1, 0.2))) -> prior
surrogate_weights(3, SamplePrior(np.full((3, 5), 0.5))) -> prior
expected_error_weights(3, UniformPrior(((0.0, 1e-8), (1.0 - 1e-8, 1.0)))) -> too narrow
expected_error_weights(101, UniformPrior(((0.0, 1e-12), (1.0 - 1e-12, 1.0)))) -> too narrow
""",
}


# What the expressions name.
SPACE = {"sp": sp, "Guarantee": dpopt.Guarantee, "roo": dpopt.roo, "Coin": Coin}
SPACE |= {"vote": dpopt.vote, "rows_of_text": release._rows}
for _module in (tabulate, guarantee, lp, majority, batches, table):
    SPACE |= vars(_module)


def listed(text: str) -> Iterator[tuple[str, str]]:
    for line in text.strip().splitlines():
        expression, _, words = line.rpartition(" -> ")
        yield expression, words


@pytest.mark.parametrize("group", REFUSED)
def test_it_is_refused_in_one_sentence(group: str) -> None:
    wrong = []
    for expression, words in listed(REFUSED[group]):
        try:
            eval(expression, SPACE | globals())
        except ParameterError as error:
            text = str(error)
            if words not in text or not re.fullmatch(r"[^\n]{1,400}\.", text):
                wrong.append(f"{expression}: {text}")
        else:
            wrong.append(f"{expression}: taken")
    assert not wrong, "\n".join(wrong)
