"""Mutation tests of the core, run by hand: ``python -m tests.mutation [--quick] [names]``.

Each comparison and each rounding direction of a function is flipped, one at a time, in a copy of
the file, and the tests that guard the function are run against the copy. A mutant that passes all
of them is a survivor: a missing test, or equivalent, as `mutants_equivalent.txt` says, and why.

What only limits sizes (``require_size``) or words a message is left as it is: neither decides.

A name is a section of `GUARDED`, whose functions of `dpopt/verify.py` are listed with their tests;
a module of `MODULES`, of which every function is guarded by the same tests; or a function. Without
one, all are run; with ``--quick`` without the slow tests, so that more survive.

Why no framework, measured on `dpopt.ledger`: cosmic-ray 8.7 begins Python and collects the tests
for each of its 466 mutants, 7.5 s each. mutmut 3.8 takes 0.8 s for each of 609, most of them words
of messages and arguments; it needs a copy of the tree with a conftest of its own, and has no place
for reasons. Here the decisions are 68 mutants, the tests are collected once, and equivalent mutants
are named.
"""

from __future__ import annotations
import __future__

import ast
import copy
import io
import math
import os
import signal
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from dpopt import verify

JUDGE = "tests/proofs/test_judge.py"

PROOFS = "tests/proofs/test_"
ENDS = f"{PROOFS}enclosures.py"
FLIPS = f"{PROOFS}flips.py"
SETTINGS = (f"{PROOFS}settings.py", f"{PROOFS}verify_says.py")
VERIFIED = f"{PROOFS}verified.py"
AFFINE = f"{ENDS}::test_a_row_has_the_ends_of_what_is_enclosed"
KERNELS = (f"{PROOFS}verify_kernels.py", AFFINE, f"{PROOFS}settings.py", FLIPS, VERIFIED)
VOTERS = (
    ENDS,
    "tests/majority/test_certificate.py",
    "tests/majority/test_judge.py",
    "tests/majority/test_ties.py",
    f"{PROOFS}verify_majority_objectives.py",
    VERIFIED,
)
PMFS = (f"{PROOFS}verify_says.py", FLIPS, f"{PROOFS}verify_majority_objectives.py", VERIFIED)
BALLOTS = (ENDS, f"{PROOFS}verify_plurals.py", FLIPS, "tests/multiclass/test_bound.py", VERIFIED)
SAMPLERS = (
    *(f"{PROOFS}verify_samplers.py", FLIPS),
    AFFINE,
    f"{ENDS}::test_a_rule_is_decided_for_the_least_that_e_epsilon_may_be",
    f"{ENDS}::test_a_floor_is_decided_for_the_least_that_e_epsilon_may_be",
    "tests/roo/test_rules.py",
    "tests/roo/test_audit.py",
    "tests/roo/test_floor.py",
    VERIFIED,
)
PRIORS = (f"{PROOFS}verify_priors.py", ENDS, "tests/public_prior/test_mollifier.py", VERIFIED)

# By section, the tests that guard it, and its functions.
_KINDS: dict[str, tuple[tuple[str, ...], str]] = {
    "values": (
        (JUDGE, *SETTINGS, FLIPS),
        "number same_denominator integer integers vector scaled shares_of integer_weights matrix "
        "require_size accepts is_pmf floats_of voters_prior",
    ),
    "settings": (
        SETTINGS,
        "majority_fits votes_fit is_prior_of_votes prior_fits rows_fit kernel_fits workload_fits",
    ),
    "kernels": (
        KERNELS,
        "allowed neighbours add_privacy add_losses add_shortfall kernel sizes_of decide_table "
        "among orbits symmetry_generators symmetric own_rows",
    ),
    "voters": (
        VOTERS,
        "Voters.__init__ Voters.exp Voters.times Voters.chance Voters.enclosed Voters.mixed "
        "Voters.row Voters.names Voters.walk Voters.screened Voters.settled "
        "Voters.slack Voters.broken majority",
    ),
    "pmfs": (
        PMFS,
        "vote_weights each_voter pmf_of_ones pmf_at_points pmf_of_beta pmf_of_uniform "
        "turned split LargestError.__init__ LargestError.voters LargestError.pmf LargestError.row "
        "LargestError.largest add_regrets",
    ),
    "ballots": (
        BALLOTS,
        "counts raised urn Ballots.__init__ Ballots.chances Ballots.program Ballots.near "
        "Ballots.chances_of_counts Ballots.decide plurality Labels.__init__ "
        "Labels.edges "
        "Labels.names Labels.row Labels.sides Labels.private Labels.stable corner_count "
        "corners_are_few",
    ),
    "rules": (
        SAMPLERS,
        "sizes moves chances_of_moves decide_rule roo Floor.__init__ Floor.weight Floor.step "
        "Floor.least Floor.most Floor.even Floor.bound Floor.ratio Floor.worst "
        "Floor.decide smooth_floor optimal_sampler",
    ),
    "priors": (
        PRIORS,
        "invariant_kernel most_kept Layers.rests Layers.rates Layers.columns Layers.drift "
        "layers decide_layers prior population decide_box mollifier",
    ),
    "releases": (
        ("tests/test_budget.py", f"{PROOFS}settings.py", FLIPS),
        "releases_fit curve_of under hull deciding decide_releases upper_delta stepped "
        "pairs_of_rows labels_of_majority Ballots.moves Ballots.pairs Labels.neighbours "
        "promised_by",
    ),
    "noise": (
        ("tests/noise/test_noise.py", f"{PROOFS}settings.py", FLIPS),
        "noise_fits Noise.__init__ Noise.scale Noise.spent Noise.decide Noise.mean "
        "noise_loss noise noise_rows",
    ),
    "workloads": (
        ("tests/local/test_workload.py", FLIPS, f"{PROOFS}settings.py", f"{PROOFS}hostile.py"),
        "gram_matrix times inverse second_moments workload at_most_at_all_patterns",
    ),
    "findings": (
        (f"{PROOFS}findings.py", f"{PROOFS}closed_forms.py", f"{PROOFS}hostile.py"),
        "Formulas.__init__ Formulas.parsed Formulas.count Formulas.listed Formulas.applied "
        "Formulas.kept Formulas.call Formulas.sides Formulas.value digits finding",
    ),
    "files": (
        (
            *(JUDGE, FLIPS, f"{PROOFS}exact.py"),
            *(f"{PROOFS}{name}.py" for name in ("verify_says", "forged", "hostile")),
        ),
        "ReadObject.unread read check design not_below optimum main",
    ),
}

GUARDED: dict[str, dict[str, tuple[str, ...]]] = {
    **{
        section: dict.fromkeys(functions.split(), tests)
        for section, (tests, functions) in _KINDS.items()
    },
    "judge": {
        "exp": (JUDGE, "-k", "test_exp or test_growth"),
        "growth": (JUDGE, "-k", "test_growth"),
        "least_slack": (JUDGE, "-k", "ratio or set"),
        "decide_ratios": (JUDGE, "-k", "test_ratio"),
        "decide_sets": (JUDGE, "-k", "test_set or ratio_and_set"),
    },
    "programs": {
        "bound": (JUDGE, "-k", "test_bound"),
        "decide": (JUDGE, "-k", "test_decided"),
    },
    "table": {
        "table_of": (JUDGE, "-k", "forged or accepted or test_distribution"),
        "any_table": (
            *(JUDGE, f"{PROOFS}forged.py", "-k"),
            "test_files or test_displayed or accepted or rows or make_no_neighbour",
        ),
        "listed_neighbours": (
            *(JUDGE, f"{PROOFS}forged.py", "-k"),
            "forged or accepted or one_output or lack_an_output or correspond",
        ),
        "require_correspondence": (f"{PROOFS}forged.py", "-k", "correspond"),
    },
}
"""By section of the file, the functions whose mutants are run, and pytest's arguments for each."""

TABLE, OF_INPUTS = "tests/table/test_table.py", "tests/table/test_inputs.py"
MODULES: dict[str, tuple[str, ...]] = {
    "ledger": tuple(f"tests/ledger/test_{name}.py" for name in ("ledger", "releases", "attacks")),
    "files": ("tests/test_files.py",),
    "table.table": (TABLE,),
    "table.inputs": (OF_INPUTS, TABLE),
    "table.histograms": (OF_INPUTS, TABLE),
    "smoothed.delta": (
        *("tests/smoothed/test_public.py", "tests/smoothed/test_categories.py"),
        *("tests/smoothed/test_random_settings.py", "tests/smoothed/test_reduction.py"),
        "-k",
        "bracket or kernel or inside or no_epsilon or suffices or dropped_costs or definition or "
        "smoothed_delta_is or composition or certified or reference_smoothed",
    ),
    "lp.loop": tuple(
        f"tests/lp/test_{name}.py"
        for name in ("problem", "families", "order", "failures", "start", "gap", "door")
    ),
}
"""By module, of which every function is guarded, the tests: first what notices most, soonest."""

_LISTED = Path(__file__).with_name("mutants_equivalent.txt").read_text(encoding="utf-8")
EQUIVALENT = frozenset(line for line in _LISTED.splitlines() if not line.startswith("# "))
"""Mutants that no test can tell from the original, by what `Mutant.name` says; above them, why."""

# Imported once: each mutant is tried in a process that goes on from there.
_IMPORTED = ("dpopt.shape", "dpopt.table", "highspy", "mpmath", "scipy.optimize")
# Seconds of the tests without a change, and of those with one: a mutant may not end.
_LONGEST, _AT_LEAST, _TIMES = 600, 20, 4
# With this, no slow tests are asked.
_QUICK = "--quick"
# Exit code of a process in which a mutant did not take the place of the function.
_NO_PLACE = 99
_FLIPPED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
# Other ends, and other roundings.
_NAMES = {"min": "max", "floor": "ceil", "low": "high", "lower": "upper"}
_NAMES |= {other: name for name, other in _NAMES.items()}
_OF_NUMPY = {"min": "max", "minimum": "maximum", "any": "all", "floor": "ceil"}
_OF_NUMPY |= {other: name for name, other in _OF_NUMPY.items()}


@dataclass(frozen=True)
class Mutant:
    """A function with one change.

    Attributes:
        name: the function, what was there, and what is there now; with a number, if not the first.
        function: the function alone, without decorators.
        source: the whole file with the change.
    """

    name: str
    function: ast.FunctionDef
    source: str


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in the place of a node."""
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for flipped in _FLIPPED[type(operator)]:
                other = copy.deepcopy(node)
                other.ops[place] = flipped()
                yield other
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield ast.BoolOp(other, node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield node.operand
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in _NAMES:
        yield ast.Name(_NAMES[node.id], ast.Load())
    elif isinstance(node, ast.Attribute) and node.attr in _OF_NUMPY:
        yield ast.Attribute(node.value, _OF_NUMPY[node.attr], ast.Load())
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        if node.slice.value in (0, 1):
            yield ast.Subscript(node.value, ast.Constant(1 - node.slice.value), node.ctx)
    elif isinstance(node, ast.BinOp):
        yield from _changed(node)


def _changed(node: ast.BinOp) -> Iterator[ast.AST]:
    """Yield what may stand in the place of an operation on two numbers."""
    if isinstance(node.op, ast.FloorDiv | ast.RShift):
        # Rounded up instead of down.
        negative = ast.BinOp(ast.UnaryOp(ast.USub(), node.left), node.op, node.right)
        yield ast.UnaryOp(ast.USub(), negative)
    elif isinstance(node.op, ast.Add | ast.Sub):
        for kept, constant in ((node.left, node.right), (node.right, node.left)):
            if isinstance(constant, ast.Constant) and isinstance(constant.value, int):
                yield kept
        if isinstance(node.right, ast.Constant) or isinstance(node.op, ast.Sub):
            other = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            yield ast.BinOp(node.left, other, node.right)


class _Put(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        """Return the new node for the old one, and every other one as it is."""
        return self.new if node is self.old else self.generic_visit(node)


def function_of(tree: ast.Module, name: str) -> ast.FunctionDef:
    """Return the definition of a function, or of a method as Class.method."""
    found: Any = tree
    for part in name.split("."):
        found = next(node for node in found.body if getattr(node, "name", None) == part)
    return found


def unchanged(source: str, function: str) -> Mutant:
    """Return a function of a file as it is."""
    return _mutant(source, function_of(ast.parse(source), function), function)


def _mutant(source: str, function: ast.FunctionDef, name: str) -> Mutant:
    """Return the file with another function in its place."""
    lines, bare = source.splitlines(), copy.copy(function)
    bare.decorator_list = []
    written = textwrap.indent(ast.unparse(bare), " " * function.col_offset).splitlines()
    lines[function.lineno - 1 : function.end_lineno] = written
    return Mutant(name, bare, "\n".join(lines))


def _is_told(node: ast.AST) -> bool:
    """Whether a part words a message, or limits a size."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id == "require_size"
    return isinstance(node, ast.JoinedStr)


def mutants(source: str, function: str) -> Iterator[Mutant]:
    """Yield all mutants of a function of a file."""
    names, first = Counter[str](), function_of(ast.parse(source), function)
    left_out = {id(node) for part in ast.walk(first) if _is_told(part) for node in ast.walk(part)}
    for place, node in enumerate(ast.walk(first)):
        for number in range(0 if id(node) in left_out else sum(1 for _ in changes(node))):
            # A tree of its own, in which the nodes are met in the same order.
            whole = copy.deepcopy(first)
            old = list(ast.walk(whole))[place]
            # A name alone would not say which one it is.
            around = next(n for n in ast.walk(whole) if old in ast.iter_child_nodes(n))
            shown = around if isinstance(around, ast.expr) else old
            before = ast.unparse(shown)
            new = list(changes(old))[number]
            _Put(old, new).visit(whole)
            after = ast.unparse(shown if shown is not old else new)
            name = f"{function}: {before} -> {after}"
            names[name] += 1
            again = f" ({names[name]})" if names[name] > 1 else ""
            yield _mutant(source, ast.fix_missing_locations(whole), name + again)


def in_place_of(module: ModuleType, function: str, mutant: Mutant, path: Path) -> None:
    """Have the package use a function of a module as a changed file says it."""
    path.write_text(mutant.source, encoding="utf-8")
    own: Any = vars(module)
    space, flags = {**own}, __future__.annotations.compiler_flag
    code = ast.Module([mutant.function], [])
    exec(compile(code, str(path), "exec", flags), space)
    old, new = own[function.split(".")[0]], space[mutant.function.name]
    for part in function.split(".")[1:]:
        old = vars(old)[part]
    # A property, a cached one, a static method, or what is cached.
    for name in ("fget", "func", "__wrapped__"):
        before = getattr(old, name, None)
        if hasattr(old, "cache_clear"):
            old.cache_clear()
        old = old if before is None else before
    if not isinstance(old, FunctionType):
        raise TypeError(f"{function} is no function")
    # Wherever the function is known by another name, too.
    old.__code__, old.__defaults__ = new.__code__, new.__defaults__
    # What a mutant may call, and what tests of the file alone copy.
    own.update(ceil=math.ceil, __file__=str(path))


def passes(
    module: ModuleType,
    function: str,
    mutant: Mutant,
    tests: tuple[str, ...],
    folder: Path,
    *,
    quick: bool,
    seconds: float = _LONGEST,
) -> bool:
    """Whether the tests of a function pass with a changed file, tried in a process of its own."""
    child, code = os.fork(), 0
    if child == 0:
        signal.alarm(math.ceil(seconds))
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            try:
                in_place_of(module, function, mutant, folder / Path(str(module.__file__)).name)
            except BaseException:  # noqa: BLE001
                os._exit(_NO_PLACE)
            try:
                options = ("-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-m")
                # The slow ones are asked if no other notices.
                for marked in ("not slow",) if quick else ("not slow", "slow"):
                    code = code or pytest.main([*tests, *options, marked])
                    code = 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else code
            except BaseException:  # noqa: BLE001
                code = 1
        os._exit(int(code))
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == _NO_PLACE:
        raise RuntimeError(f"no code takes the place of that of {mutant.name}")
    return os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0


def functions_of(tree: ast.AST) -> Iterator[str]:
    """Yield the names of the functions and the methods of a module; a stub of a method is none."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{name}" for name in functions_of(node))
        elif isinstance(node, ast.FunctionDef):
            stub = node.body[-1]
            if not (isinstance(stub, ast.Expr) and isinstance(stub.value, ast.Constant)):
                yield node.name


def chosen(names: list[str]) -> Iterator[tuple[ModuleType, str, str, tuple[str, ...]]]:
    """Yield the module, the name in it, the name here and the tests of each function asked for."""
    for section, functions in GUARDED.items():
        for name, tests in functions.items():
            if not names or section in names or name in names:
                yield verify, name, name, tests
    for section, tests in MODULES.items():
        module = import_module(f"dpopt.{section}")
        for function in functions_of(ast.parse(Path(str(module.__file__)).read_bytes())):
            name = f"{section}.{function}"
            if not names or section in names or name in names:
                yield module, function, name, tests


def run(arguments: list[str]) -> int:
    """Run the mutants of sections or functions, say which survive, and return the exit code."""
    names, quick = [name for name in arguments if name != _QUICK], _QUICK in arguments
    wrong, guarded, asked = 0, list(chosen(names)), dict[tuple[str, ...], float | None]()

    def say(what: str) -> None:
        sys.stdout.write(f"{what}\n")
        sys.stdout.flush()

    for name in _IMPORTED:
        import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        for module, function, name, tests in guarded:
            source = Path(str(module.__file__)).read_text(encoding="utf-8")
            every = [
                replace(mutant, name=mutant.name.replace(function, name, 1))
                for mutant in mutants(source, function)
            ]
            if not every:
                continue
            if tests not in asked:
                # A child finds what was collected before imported.
                with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                    pytest.main([*tests, "--collect-only", "-q", "-n", "0", "-m", ""])
                same, begun = unchanged(source, function), time.monotonic()
                sound = passes(module, function, same, tests, Path(folder), quick=quick)
                taken = time.monotonic() - begun
                asked[tests] = max(_AT_LEAST, _TIMES * taken) if sound else None
            seconds = asked[tests]
            if seconds is None:
                say(f"FAILS WITHOUT A CHANGE: {name}")
                wrong += 1
                continue
            known = {equal for equal in EQUIVALENT if equal.startswith(f"{name}: ")}
            counts = Counter[bool]()
            for mutant in every:
                survives = passes(
                    module, function, mutant, tests, Path(folder), quick=quick, seconds=seconds
                )
                equivalent = mutant.name in known
                known.discard(mutant.name)
                counts[survives] += 1
                if survives != equivalent:
                    say(f"{'SURVIVES' if survives else 'IS KILLED'}: {mutant.name}")
                    wrong += 1
            for equal in known:
                say(f"IS NO MUTANT: {equal}")
                wrong += 1
            say(f"{name}: {counts[False]} killed, {counts[True]} equivalent or surviving")
    return 1 if wrong or not guarded else 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
