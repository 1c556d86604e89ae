"""Imports point downwards only; the picture stands in the README."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import dpopt

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
LOWER = {"base", "lp", "prob", "privacy", "data", "proofs"}
ABOVE = {"interop", "cli"}
ALLOWED = {
    "base": {"base"},
    "lp": {"base", "lp"},
    "prob": {"base", "prob"},
    "privacy": {"base", "lp", "prob", "privacy"},
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
"""What belongs to no room and no paper; every other name directly under dpopt is a paper."""


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


FORBIDDEN = ("dpopt.lp", "dpopt.shape")
JUDGES = [path for path in sources("dpopt") if path.name == "proof.py"]


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


@pytest.mark.parametrize("path", JUDGES, ids=module_name)
def test_the_judge_never_imports_the_designer(path: Path) -> None:
    """What proves has not seen a solver, a program, or a setting that makes one."""
    for module, importer in reached(path).items():
        outside = not any(f"{module}.".startswith(f"{name}.") for name in FORBIDDEN)
        assert outside, f"{importer} imports {module}"
        assert "program" not in module, f"{importer} imports {module}"


def test_there_are_judges() -> None:
    """By their file's name, in a package of which each has at least one setting that is proved."""
    assert JUDGES
    for path in JUDGES:
        assert any("Certificate" in part.read_text() for part in path.parent.glob("*.py")), path


def test_the_rule_finds_what_a_judge_reaches_through_others() -> None:
    assert "dpopt.lp.problem" in reached(ROOT / "dpopt/shape.py")
    assert home_of("dpopt.privacy", "certify_kernel") == "dpopt.privacy.exact"
    assert home_of("dpopt", "lp") == "dpopt.lp"
    assert "dpopt.privacy.exponential" in reached(ROOT / "dpopt/privacy/quantise.py")
    types = reached(ROOT / "dpopt/_figure.py")
    assert not any(name.startswith("matplotlib") for name in types)


@pytest.mark.parametrize("path", sources("experiments"), ids=module_name)
def test_experiments_use_public_names(path: Path) -> None:
    for target in imported_modules(path):
        if target.split(".")[0] == "dpopt":
            private = [part for part in target.split(".") if part.startswith("_")]
            assert private in ([], ["__version__"]), f"{path} imports {target}"


def test_no_optional_solver_is_imported_at_start() -> None:
    for name in ("__init__", "model", "problem", "solution", "loop"):
        path = ROOT / f"dpopt/lp/{name}.py"
        top = [
            node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        assert not {"cvxpy", "highspy"} & {str(module).split(".")[0] for module in top}


SLOW = {"cvxpy", "highspy", "matplotlib", "rich", "scipy.optimize", "scipy.stats"}
"""Libraries that take longer to load than most of what does without them."""
OPTIONAL = {"ipywidgets", "joblib", "polars"}
LATE = {
    # The doors to the solvers, which load these.
    "dpopt.lp.export": {"dpopt.lp.backends.highs"},
    "dpopt.lp.loop": {"dpopt.lp.backends.highs", "dpopt.lp.door"},
    # The command line loads these to list its commands, and neither numpy nor a design for that.
    "dpopt._progress": {"dpopt._checks"},
    "dpopt.files": {"numpy"},
}
"""What else is imported inside a function, and where; of `dpopt.cli`, what a command needs."""


def late_imports(path: Path) -> Iterator[str]:
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    yield from (alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    names = [f"{node.module}.{alias.name}" for alias in node.names]
                    yield from (name if path_of(name) else str(node.module) for name in names)


@pytest.mark.parametrize("path", sources("dpopt"), ids=module_name)
def test_imports_stand_at_the_top(path: Path) -> None:
    """But for libraries that are optional or slow, and what the command line can list without."""
    name = module_name(path)
    if layer_of(name) == "cli":
        return
    allowed = SLOW | OPTIONAL | LATE.get(name, set())
    for target in late_imports(path):
        assert any(f"{target}.".startswith(f"{known}.") for known in allowed), f"late: {target}"


def test_no_module_is_more_than_a_module() -> None:
    """None has a class of its own, by which it could be called, and a function is not its name."""
    assert dpopt.kinds()
    modules = [part for part in list(sys.modules.values()) if part is not None]
    own = [part for part in modules if getattr(part, "__name__", "").split(".")[0] == "dpopt"]
    assert all(type(part) is ModuleType for part in own)
    assert not isinstance(dpopt.design, ModuleType)
