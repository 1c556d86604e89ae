"""Imports point downwards only; the picture stands in the README."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BASE = {
    "_types",
    "_errors",
    "_checks",
    "_numbers",
    "_page",
    "_progress",
    "_kinds",
    "files",
}
BASE |= {"provenance", "_figure", "_sweep", "_threads", "verify"}
LOWER = {"base", "lp", "prob", "privacy", "table", "data", "proofs"}
ABOVE = {"interop", "cli"}
ALLOWED = {
    "base": {"base"},
    "lp": {"base", "lp"},
    "prob": {"base", "prob"},
    "privacy": {"base", "lp", "prob", "privacy"},
    "table": {"base", "lp", "prob", "privacy", "table"},
    "data": {"base", "data"},
    "proofs": {"base", "lp", "proofs"},
    "shape": {*LOWER, "shape"},
    "kernel": {*LOWER, "shape", "kernel"},
    "ballots": {*LOWER, "shape", "ballots"},
    "paper": {*LOWER, "shape", "kernel", "ballots", "paper"},
    "votes": {*LOWER, "shape", "kernel", "ballots", "paper", "votes"},
    "interop": {*LOWER, "shape", "kernel", "ballots", "paper", "votes", "interop"},
    "cli": {*LOWER, "shape", "kernel", "ballots", "paper", "votes", "package", "cli"},
    "package": {*LOWER, "shape", "kernel", "ballots", "paper", "votes", "interop", "package"},
}
PACKAGE = {"_interact", "ledger"}
"""What belongs to no room and no paper; every other name directly under dpopt is a paper.

The ledger is told what is released, and asks accountants of `dpopt.interop` what it all spends.
"""


def imported_modules(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            found += [module, *(f"{module}.{alias.name}" for alias in node.names)]
    return found


def layer_of(module: str) -> str | None:
    parts = module.split(".")
    if parts[0] != "dpopt":
        return None
    if parts[1:] == ["__main__"]:
        return "cli"
    if len(parts) == 1 or parts[1].startswith("__"):
        return "package"
    if parts[1] in BASE:
        return "base"
    if parts[1] in PACKAGE:
        return "package"
    if parts[1] in ALLOWED:
        return parts[1]
    return "paper" if parts[1] in PAPERS else None


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


PAPERS = sorted(
    path.stem
    for path in (ROOT / "dpopt").iterdir()
    if (path.suffix == ".py" or (path / "__init__.py").exists())
    and path.stem not in {*BASE, *ALLOWED, *PACKAGE}
    and not path.stem.startswith("__")
)


@pytest.mark.parametrize("path", sources("dpopt"), ids=module_name)
def test_imports_point_downwards(path: Path) -> None:
    layer = layer_of(module_name(path))
    assert layer is not None, f"{path} belongs to no layer"
    for target in imported_modules(path):
        if not target.startswith("dpopt."):
            continue
        found = layer_of(target) or "package"
        assert found in ALLOWED[layer], f"{module_name(path)} imports {target}"


@pytest.mark.parametrize("paper", PAPERS)
def test_papers_do_not_import_each_other(paper: str) -> None:
    for path in sources("dpopt"):
        own = module_name(path).split(".")
        if own[1:2] == [paper]:
            for target in imported_modules(path):
                parts = target.split(".")
                other = parts[0] == "dpopt" and set(parts[1:2]) & (set(PAPERS) - {paper})
                assert not other, f"{path} imports {target}"


# What decides privacy: the stand-alone judge, and what calls it in process.
JUDGE, CALLER = ROOT / "dpopt/verify.py", ROOT / "dpopt/table/judge.py"
FORBIDDEN = ("dpopt.lp.loop", "dpopt.lp.backends", "dpopt.shape", "dpopt.table.program")


def path_of(module: str) -> Path | None:
    """The file of a module of the package; None of another name."""
    parts = module.split(".")
    if parts[0] != "dpopt":
        return None
    folder = ROOT.joinpath(*parts)
    found = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    return found if found.exists() else None


def run_imports(path: Path) -> Iterator[tuple[str, str | None]]:
    """Yield (module, name) of the imports that run, also within functions: none is for types."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and "TYPE_CHECKING" in ast.unparse(branch.test)
        for part in branch.body
        for node in ast.walk(part)
    }
    for node in ast.walk(tree):
        if id(node) not in for_types and isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif id(node) not in for_types and isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)


def home_of(module: str, name: str | None) -> str:
    """The module that defines a name: of a package, the one that its __init__ has it from."""
    if name is None or path_of(f"{module}.{name}") is not None:
        return module if name is None else f"{module}.{name}"
    path = path_of(module)
    if path is not None and path.name == "__init__.py":
        for origin, imported in run_imports(path):
            if imported == name and origin != module:
                return home_of(origin, name)
    return module


def reached(path: Path) -> dict[str, str]:
    """Every module of the package that a file needs, with the one that imports it."""
    found: dict[str, str] = {}
    left = [path]
    while left:
        here = left.pop()
        for module, name in run_imports(here):
            home = home_of(module, name)
            there = path_of(home)
            if there is not None and home not in found:
                found[home] = module_name(here)
                left.append(there)
    return found


def test_the_judge_needs_nothing_but_python() -> None:
    assert reached(JUDGE) == {}
    modules = {module.partition(".")[0] for module, _ in run_imports(JUDGE)}
    assert modules <= sys.stdlib_module_names


def test_what_calls_the_judge_has_seen_no_solver() -> None:
    for module, importer in reached(CALLER).items():
        outside = not any(f"{module}.".startswith(f"{name}.") for name in FORBIDDEN)
        assert outside, f"{importer} imports {module}"


def test_the_rule_finds_what_a_module_reaches_through_others() -> None:
    assert "dpopt.lp.problem" in reached(ROOT / "dpopt/shape.py")
    assert home_of("dpopt.table", "certify_table") == "dpopt.table.judge"
    assert home_of("dpopt", "lp") == "dpopt.lp"
    assert "dpopt.privacy.exponential" in reached(ROOT / "dpopt/privacy/exact.py")
    types = reached(ROOT / "dpopt/_figure.py")
    assert not any(name.startswith("matplotlib") for name in types)
