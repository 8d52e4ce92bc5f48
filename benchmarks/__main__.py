"""Run benchmarks: ``python -m benchmarks NAME [option=value …] [NAME …]``.

``--list`` prints the names with their options, ``--all`` runs those of benchmarks/scripts.md in
processes of their own. Those that open a window need a display, such as that of ``xvfb-run -a``.
"""

import importlib
import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Callable

from benchmarks.measure import ROOT

MODULES = {
    "edits": ("strokes", "fills", "mends"),
    "views": ("start", "switch", "sliders", "objects", "slide_view"),
    "long_use": ("long_use",),
    "cohorts": ("evaluate", "experiment", "memory", "many_regions", "fold", "slide"),
    "reviews": ("review_coverage", "review_small"),
    "suspects": ("suspects", "review_suspects"),
    "versions": ("version_gate",),
    "failure_slices": ("failure_slices",),
}
WINDOWS = ("edits", "views", "long_use")
CASES = "../shared/cases"
ALL = (
    f"start cohort={CASES}/monusac",
    f"switch cohort={CASES}/monusac",
    f"switch cohort={CASES}/monusac-large",
    *("switch", "sliders", "strokes", "mends", "fills", "objects"),
    f"evaluate cohort={CASES}/monusac",
    f"experiment cohort={CASES}/monusac",
    *("slide", "slide_view"),
)
AT_MOST_S = 1800


def main(arguments: list[str]) -> None:
    """Run the benchmarks that are named."""
    names = {name: module for module, own in MODULES.items() for name in own}
    if "--all" in arguments:
        run_all(names)
    elif "--list" in arguments or not arguments:
        for name, module in names.items():
            function = benchmark(name, module)
            print(f"{name}{inspect.signature(function)}\n    {inspect.getdoc(function)}\n")
    while arguments and not arguments[0].startswith("--"):
        name, options = arguments.pop(0), {}
        if name not in names:
            sys.exit(f"{name} is no benchmark; --list prints all")
        while arguments and "=" in arguments[0]:
            key, _, value = arguments.pop(0).partition("=")
            options[key] = value
        function = benchmark(name, names[name])
        known = inspect.signature(function).parameters
        if unknown := set(options) - set(known):
            sys.exit(f"{name} has no option {', '.join(unknown)}, but {', '.join(known)}")
        function(**{key: type(known[key].default)(value) for key, value in options.items()})


def benchmark(name: str, module: str) -> Callable[..., None]:
    """Return the function of a benchmark."""
    found: Callable[..., None] = getattr(importlib.import_module(f"benchmarks.{module}"), name)
    return found


def run_all(names: dict[str, str]) -> None:
    """Run those of the document, each in a process of its own, and print what they print."""
    for line in ALL:
        name, _, cohort = line.partition(" cohort=")
        is_there = (ROOT / cohort).exists()
        printed = run(line, names[name]) if is_there else f"left out: {cohort} is not there"
        print(f"### `python -m benchmarks {line}`\n\n{printed}\n", flush=True)


def run(line: str, module: str) -> str:
    """Return what a benchmark prints, or why there is nothing."""
    command = [sys.executable, "-m", "benchmarks", *line.split()]
    if module in WINDOWS and not os.environ.get("DISPLAY"):
        if not shutil.which("xvfb-run"):
            return "left out: there is no display, and no xvfb-run to make one"
        command = ["xvfb-run", "-a", "-s", "-screen 0 1600x1000x24", *command]
    try:
        done = subprocess.run(  # noqa: S603
            command, cwd=ROOT, capture_output=True, text=True, timeout=AT_MOST_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"left out: {type(error).__name__}"
    return done.stdout.replace(str(ROOT), ".").strip()


if __name__ == "__main__":
    main(sys.argv[1:])
