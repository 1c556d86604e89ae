"""Imports point downwards only; the picture stands in the README."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BASE = {"_types", "_errors", "_checks", "_numbers", "_plot", "_progress", "_kinds", "files"}
BASE |= {"provenance"}
LOWER = {"base", "lp", "prob", "privacy", "data"}
ABOVE = {"interop", "explore", "cli", "sweeps"}
ALLOWED = {
    "base": {"base"},
    "lp": {"base", "lp"},
    "prob": {"base", "prob"},
    "privacy": {"base", "lp", "prob", "privacy"},
    "data": {"base", "data"},
    "design": {*LOWER, "design"},
    "kernel": {*LOWER, "design", "kernel"},
    "paper": {*LOWER, "design", "kernel", "paper"},
    "interop": {*LOWER, "design", "kernel", "paper", "interop"},
    "sweeps": {"base", "sweeps"},
    "explore": {*LOWER, "design", "kernel", "paper", "package", "explore"},
    "cli": {*LOWER, "design", "kernel", "paper", "package", "explore", "cli"},
    "package": {*LOWER, "design", "kernel", "paper", "interop", "sweeps", "package"},
}
PACKAGE = {"_cite"}
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


def test_the_judge_never_imports_the_designer() -> None:
    for judge in ("check", "proof", "ties"):
        for target in imported_modules(ROOT / f"dpopt/majority/{judge}.py"):
            assert not target.startswith(("dpopt.majority.program", "dpopt.majority.setting"))
            assert not target.startswith("dpopt.lp")
    judges = [f"roo/{name}" for name in ("audit", "witness", "floor_proof", "optimal_proof")]
    for judge in (*judges, "public_prior/proof", "privacy/layers"):
        for target in imported_modules(ROOT / f"dpopt/{judge}.py"):
            assert "program" not in target
            assert not target.startswith("dpopt.lp")


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
