"""BibTeX entries of what a result rests on: the paper, this package, the solver."""

from __future__ import annotations

from pathlib import Path

from dpopt import __version__, _checks
from dpopt._errors import ParameterError

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

_SOURCES = {
    "majority": ("darrm",),
    "gnmax": ("gnmax", "darrm"),
    "roo": ("roo", "roo-conference"),
    "public-prior": ("public-prior",),
    "kernel": (),
    "smoothed": ("smoothed",),
}
MECHANISMS = tuple(_SOURCES)


def cite(subject: object) -> str:
    """Return BibTeX for a mechanism or a result: its papers, this package, and the solver.

    Args:
        subject: a name (majority, gnmax, roo, public-prior, kernel, smoothed), a result of one of
            these modules, or the path of a saved mechanism.

    Raises:
        ParameterError: if it is none of these, or the file cannot be read.
    """
    if isinstance(subject, str) and subject in _SOURCES:
        return _joined(_SOURCES[subject], None)
    if isinstance(subject, (str, Path)):
        return cite(_loaded(subject))
    parts = type(subject).__module__.split(".")
    name = parts[1].replace("_", "-") if parts[0] == "dpopt" else ""
    if name == "privacy":
        name = "kernel"
    if name not in _SOURCES:
        raise ParameterError(
            f"subject is of type {type(subject).__name__}; it must be one of "
            f"{', '.join(MECHANISMS)}, a result of theirs, or a saved mechanism."
        )
    return _joined(_SOURCES[name], getattr(subject, "solution", None))


def _loaded(path: str | Path) -> object:
    from dpopt.design import load

    try:
        exists = Path(path).exists()
    except (OSError, ValueError):
        exists = False
    if not exists:
        raise ParameterError(
            f"subject is {_checks.shown(str(path))}; it must be one of {', '.join(MECHANISMS)}, or "
            "the path of a saved mechanism."
        )
    return load(path)


def _joined(papers: tuple[str, ...], solution: object) -> str:
    backend = str(getattr(solution, "backend", "highs"))
    solver = ["highs"] if "highs" in backend.lower() else []
    modelling = ["cvxpy"] if backend.startswith("cvxpy") else []
    return "\n\n".join(_ENTRIES[key] for key in (*papers, "dpopt", *solver, *modelling))
