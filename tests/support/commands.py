"""The program, run as its entry point runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from napari_panoptic.cli.main import main


class Outcome(NamedTuple):
    """What one run of the program returned and printed."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


def exit_status(*arguments: object) -> int:
    """Run the program; return its exit status, also where it stops at its arguments."""
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as stop:
        return int(stop.code or 0)
