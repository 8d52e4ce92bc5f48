"""The command ``napari-panoptic``: its parser, its exit status, and its output streams."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO, cast

from napari_panoptic import __version__
from napari_panoptic.cli.parser import CommandParser, Parser
from napari_panoptic.cli.printing import warn
from napari_panoptic.common.errors import PanopticError, SettingsError
from napari_panoptic.common.text import shortened
from napari_panoptic.io.files.guard import VARIABLE, largest_px

COMMANDS = {
    "view": "open a cohort in a window",
    "evaluate": "write the figures of a whole cohort as CSV tables",
    "report": "write everything about a whole cohort as one HTML file",
    "package": "write a page on which a colleague can review objects in a browser",
    "import-verdicts": "import the verdicts that a colleague gave on the page of a package",
    "plan": "draw a sample of objects to review, from which a whole cohort can be estimated",
    "estimate": "estimate from a reviewed plan what is true of the whole cohort",
    "correct": "write the annotation with the verdicts of a review applied",
    "compare": "compare an old and a new version of predictions: fixed and broken nuclei, and a "
    "verdict",
    "dump": "score the organisers' own output of PQ per mask",
    "convert": "write all regions of a team, or of the annotation, in another format",
    "init": "check what a folder contains, list doubts, and describe it in a cohort.toml",
    "sample": "write the built-in sample cohort into a folder",
    "demo": "open the built-in sample cohort in a window",
}
"""Command -> its line in the help. Its module has the same name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        Without the program's name; those of the process if None.

    Returns
    -------
    int
        0 when it was done; 1 when nothing could be done with the files, or on this machine, as
        they are; 2 for a mistake in the arguments: a word that is misspelt or missing, a value
        that an option cannot have, a name that the cohort does not have, or a command or option
        that does not suit it; 130 when it was stopped. ``compare`` also returns 3 (the new
        version is worse) and 4 (undecided).
    """
    with _readers_may_end():
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    parser = command_parser()
    try:
        options, unknown = parser.parse_known_args(arguments)
        if unknown:
            getattr(options, "parser", parser).refuse(unknown)
        if options.command is None:
            parser.print_help()
            return 2
        with _limited(getattr(options, "max_pixels", None)):
            if hasattr(options, "max_pixels"):
                largest_px()  # raises if the environment's value is no number
            return int(options.run(options))
    except SettingsError as error:
        parser.exit(2, f"napari-panoptic: {error}\n")
    except PanopticError as error:
        warn(str(error))
        return 1
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        warn(
            f"expected a name that the file system takes, found a longer one; choose a shorter "
            f"name ({shortened(str(error.filename), 80)})"
        )
        return 1
    except KeyboardInterrupt:
        warn("stopped")
        return 130


@contextmanager
def _limited(max_pixels: int | None) -> Iterator[None]:
    """Set the limit of pixels, which other processes inherit, during a command; None for none."""
    before = os.environ.get(VARIABLE)
    if max_pixels is not None:
        os.environ[VARIABLE] = str(max_pixels)
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before


def command_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="napari-panoptic",
        description="See why a nucleus segmentation failed: open a challenge's regions with "
        "their annotations and the teams' predictions, colour every nucleus by its outcome, and "
        "compute the same figures as tables.",
        epilog="Exit status: 0 done, 1 nothing could be done with the files, or on this machine, "
        "as they are, 2 a mistake in the command, such as a misspelt word or a name that the "
        "cohort does not have. 'compare' has two more: 3 the new version is worse, 4 undecided.",
    )
    parser.add_argument("--version", action="version", version=f"napari-panoptic {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=CommandParser)
    for name, meaning in COMMANDS.items():
        own = commands.add_parser(name, help=meaning)
        own.load = partial(import_module, f"napari_panoptic.cli.{name.replace('-', '_')}")
    for name, meaning in _questions().items():
        own = commands.add_parser(name, help=meaning)
        own.load = partial(_question, name)
    return parser


def _questions() -> dict[str, str]:
    """Return the questions over a cohort: name -> the first line of the module.

    Modules are not imported, since that takes long.
    """
    from napari_panoptic import questions

    found = {}
    for path in sorted(path for folder in questions.__path__ for path in Path(folder).glob("*.py")):
        if path.stem not in ("__init__", "answer", "question", *COMMANDS):
            line = path.read_text(encoding="utf-8").lstrip().partition("\n")[0].strip('".')
            found[path.stem.replace("_", "-")] = line[:1].lower() + line[1:]
    return found


def _question(name: str) -> Any:
    from napari_panoptic.cli.question import question_command

    return question_command(name)


class _Output:
    """A stream of text whose reader may end: then the rest is dropped, and the work goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with self._dropping():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._dropping():
            self._stream.flush()

    @contextmanager
    def _dropping(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            # What is still in the buffer goes to the same place when Python ends.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


@contextmanager
def _readers_may_end() -> Iterator[None]:
    """Let a command finish when the program that reads its output has ended, as in ``| head``."""
    streams = [stream and _Output(stream) for stream in (sys.stdout, sys.stderr)]
    out, err = streams  # None without a console, on Windows
    with redirect_stdout(cast(Any, out)), redirect_stderr(cast(Any, err)):
        try:
            yield
        finally:
            for stream in filter(None, streams):
                stream.flush()


if __name__ == "__main__":
    sys.exit(main())
