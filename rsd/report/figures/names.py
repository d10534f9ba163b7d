"""What figures call configurations: as the paper does, by the sizes of draft, target and PRM.

size("Qwen2.5-Math-1.5B-Instruct"), size("skywork_1p5b"), size("tiny_m") # "1.5B", "1.5B", "M" name(run) # "RSD
(1.5B/7B/7B)", "BoN (1.5B/7B, N=16)", "Target (7B)"
"""

import re

import pandas as pd

TITLES = {
    "math500": "MATH500",
    "gsm8k": "GSM8K",
    "gaokao2023en": "GaoKao 2023 En",
    "olympiadbench": "OlympiadBench",
    "gpqa_diamond": "GPQA Diamond",
    "mmlu_stem": "MMLU STEM",
    "minerva_math": "Minerva",
    "cn_middle_school": "CN Middle School 24",
    "college_math": "College Math",
    "alpaca_eval": "AlpacaEval",
}
METHODS = {
    "speculative": "SD",
    "rsd": "RSD",
    "rsd_speculative": "RSD+SD",
    "majority": "Majority",
    "best_of_n": "BoN",
    "process_best_of_n": "Process BoN",
    "beam": "Beam",
}


def title(benchmark: str) -> str:
    """A benchmark as its authors write it."""
    return TITLES.get(benchmark, benchmark.replace("_", " "))


def size(model: str) -> str:
    """The size in a model's name: billions of parameters, or the letter of the tiny family; else the name."""
    found = re.search(r"(?<![\d.])(\d+(?:[.p]\d+)?)b(?![a-z])", model, re.IGNORECASE)
    if found:
        return f"{found[1].replace('p', '.')}B"
    last = re.split(r"[_-]", model)[-1]
    return last.upper() if len(last) == 1 else model


def rank(size: str) -> float:
    """Sizes in their order."""
    return float(size[:-1]) if re.fullmatch(r"[\d.]+B", size) else "SML".find(size) / 1000


def models(run: pd.Series) -> str:
    """The sizes of draft, target and PRM, of those that the run's configuration uses."""
    used = {
        "single": [run["role"]],
        "majority": [run["role"]],
        "best_of_n": [run["role"], "prm"],
        "process_best_of_n": [run["role"], "prm"],
        "beam": [run["role"], "prm"],
        "speculative": ["draft", "target"],
    }.get(run["method"], ["draft", "target", "prm"])
    return "/".join(size(run[part]) for part in used if isinstance(run[part], str))


def name(run: pd.Series) -> str:
    """The configuration without its threshold, as the paper's Figure 4 writes it."""
    if run["method"] == "single":
        return f"{run['role'].capitalize()} ({models(run)})"
    drawn = "" if pd.isna(run["n"]) else f", N={run['n']:.0f}"
    return f"{METHODS.get(run['method'], run['method'])} ({models(run)}{drawn})"
