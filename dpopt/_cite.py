"""BibTeX entries of what a result rests on: the paper, this package, the solver."""

from __future__ import annotations

from pathlib import Path

from dpopt import __version__, _kinds
from dpopt._errors import ParameterError
from dpopt._numbers import shown

_ENTRIES = {
    "darrm": """@article{jiang2024optimized,
  title   = {Optimized Tradeoffs for Private Prediction with Majority Ensembling},
  author  = {Jiang, Shuli and Zhang, Qiuyi (Richard) and Joshi, Gauri},
  journal = {Transactions on Machine Learning Research},
  year    = {2024},
  note    = {arXiv:2411.17965}
}""",
    "roo": """@article{tasnim2025differentially,
  title   = {Differentially Private Sampling via Reveal-or-Obscure},
  author  = {Tasnim, Naima and Gilani, Atefeh and Sankar, Lalitha and Kosut, Oliver},
  journal = {arXiv preprint arXiv:2504.14696},
  year    = {2025}
}""",
    "roo-conference": """@inproceedings{tasnim2025reveal,
  title     = {Reveal-or-Obscure: A Differentially Private Sampling Algorithm for Discrete
               Distributions},
  author    = {Tasnim, Naima and Gilani, Atefeh and Sankar, Lalitha and Kosut, Oliver},
  booktitle = {IEEE Information Theory Workshop (ITW)},
  year      = {2025}
}""",
    "public-prior": """@article{zamanlooy2024locally,
  title   = {Locally Private Sampling with Public Data},
  author  = {Zamanlooy, Behnoosh and Diaz, Mario and Asoodeh, Shahab},
  journal = {arXiv preprint arXiv:2411.08791},
  year    = {2024}
}""",
    "smoothed": """@article{liu2023smoothed,
  title   = {Smoothed Differential Privacy},
  author  = {Liu, Ao and Wang, Yu-Xiang and Xia, Lirong},
  journal = {Transactions on Machine Learning Research},
  year    = {2023},
  note    = {arXiv:2107.01559}
}""",
    "gnmax": """@inproceedings{papernot2018scalable,
  title     = {Scalable Private Learning with {PATE}},
  author    = {Papernot, Nicolas and Song, Shuang and Mironov, Ilya and Raghunathan, Ananth and
               Talwar, Kunal and Erlingsson, {\\'U}lfar},
  booktitle = {International Conference on Learning Representations},
  year      = {2018}
}""",
    "permute-and-flip": """@inproceedings{mckenna2020permute,
  title     = {Permute-and-Flip: A New Mechanism for Differentially Private Selection},
  author    = {McKenna, Ryan and Sheldon, Daniel R.},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {33},
  year      = {2020}
}""",
    "exponential": """@inproceedings{mcsherry2007mechanism,
  title     = {Mechanism Design via Differential Privacy},
  author    = {McSherry, Frank and Talwar, Kunal},
  booktitle = {IEEE Symposium on Foundations of Computer Science (FOCS)},
  pages     = {94--103},
  year      = {2007},
  doi       = {10.1109/FOCS.2007.66}
}""",
    "dpopt": f"""@software{{dpopt,
  title   = {{dpopt: differentially private mechanisms designed by linear programming}},
  author  = {{{{The dpopt authors}}}},
  version = {{{__version__}}}
}}""",
    "highs": """@article{huangfu2018parallelizing,
  title   = {Parallelizing the dual revised simplex method},
  author  = {Huangfu, Qi and Hall, J. A. Julian},
  journal = {Mathematical Programming Computation},
  volume  = {10},
  number  = {1},
  pages   = {119--142},
  year    = {2018},
  doi     = {10.1007/s12532-017-0130-5}
}""",
    "cvxpy": """@article{diamond2016cvxpy,
  title   = {{CVXPY}: A {P}ython-embedded modeling language for convex optimization},
  author  = {Diamond, Steven and Boyd, Stephen},
  journal = {Journal of Machine Learning Research},
  volume  = {17},
  number  = {83},
  pages   = {1--5},
  year    = {2016}
}""",
}


def names() -> tuple[str, ...]:
    """Return what `cite` knows by name: every kind, and every package that defines one."""
    kinds = _kinds.KINDS
    packages = {_package(_kinds.module_of(kind)) for kind in kinds}
    return tuple(sorted({*kinds, *packages, "smoothed"}))


def cite(subject: object) -> str:
    """Return BibTeX for a mechanism or a result: its papers, this package, and the solver.

    Args:
        subject: the name of a kind or of its package (such as majority, roo, public-prior), a
            setting or a result of one, or the path of a saved result.

    Raises:
        ParameterError: if it is none of these, or the file cannot be read.
    """
    if isinstance(subject, str) and subject in names():
        return _joined(_papers_of(subject), None)
    if isinstance(subject, (str, Path)):
        return cite(_loaded(subject))
    papers = getattr(getattr(subject, "setting", subject), "papers", None)
    if papers is None:
        module = type(subject).__module__
        package = _package(module)
        # An exact kernel is no paper's own.
        if not module.startswith("dpopt.") or package not in {*names(), "privacy"}:
            raise ParameterError(
                f"subject is of type {type(subject).__name__}; it must be one of "
                f"{', '.join(names())}, a result of theirs, or a saved mechanism."
            )
        papers = _papers_of(package)
    return _joined(papers, getattr(subject, "solution", None))


def _package(module: str) -> str:
    """Return the name of the package directly under this one, with hyphens."""
    return module.split(".")[1].replace("_", "-") if "." in module else ""


def _papers_of(name: str) -> tuple[str, ...]:
    """Return the papers of a kind, or of all kinds that a package defines, each once."""
    from dpopt.shape import kind_of

    if name == "smoothed":
        # A package of results, without a kind.
        return ("smoothed",)
    own = [kind for kind in _kinds.KINDS if _package(_kinds.module_of(kind)) == name]
    # In the order of the modules, as a paper's own comes before what it adds.
    asked = [name] if name in _kinds.KINDS else sorted(own, key=_kinds.module_of)
    found = [getattr(kind_of(kind), "papers", ()) for kind in asked]
    return tuple(dict.fromkeys(paper for papers in found for paper in papers))


def _loaded(path: str | Path) -> object:
    from dpopt.shape import load

    try:
        exists = Path(path).exists()
    except (OSError, ValueError):
        exists = False
    if not exists:
        raise ParameterError(
            f"subject is {shown(str(path))}; it must be one of {', '.join(names())}, or "
            "the path of a saved mechanism."
        )
    return load(path)


def _joined(papers: tuple[str, ...], solution: object) -> str:
    backend = str(getattr(solution, "backend", "highs"))
    solver = ["highs"] if "highs" in backend.lower() else []
    modelling = ["cvxpy"] if backend.startswith("cvxpy") else []
    return "\n\n".join(_entry(key) for key in (*papers, "dpopt", *solver, *modelling))


def _entry(key: str) -> str:
    """Return the entry of a key; a setting from outside may give an entry instead of a key.

    Raises:
        ParameterError: if it is neither.
    """
    if key.lstrip().startswith("@"):
        return key.strip()
    if key not in _ENTRIES:
        raise ParameterError(
            f"papers holds {shown(key)}; it must hold BibTeX entries, or keys of "
            f"{', '.join(_ENTRIES)}."
        )
    return _ENTRIES[key]
