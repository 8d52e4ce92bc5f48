"""What the commands share: what they tell people, and folders for their tables."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TextIO, TypeVar, cast

from napari_panoptic.common.errors import (
    FINDING_TITLES,
    Finding,
    FindingKind,
    PanopticError,
    SettingsError,
    checked_name,
)
from napari_panoptic.common.visible import visible
from napari_panoptic.io.file_sets import finish_replacing
from napari_panoptic.io.formats.saving import check_not_in_cohort
from napari_panoptic.io.locking import held_alone
from napari_panoptic.report.writing import check_writable, is_own_page, own_tables

_EvaluationT = TypeVar("_EvaluationT")

_LOCK = ".lock"
_SHOWN_FINDINGS = 20
_IN_THE_WAY = (
    FindingKind.MISSING,
    FindingKind.UNREADABLE,
    FindingKind.CHANGED,
    FindingKind.OUTSIDE_FOLDER,
    FindingKind.BROKEN_PLUGIN,
)


def report_findings(findings: Sequence[Finding], listed_in: str | None = "evaluation.json") -> None:
    """Tell what stood in the way in full, of all else how often it was met, and where all is.

    Parameters
    ----------
    findings
        What was odd.
    listed_in
        The file that has all of it; None where none has.
    """
    in_the_way = [f for f in findings if f.kind in _IN_THE_WAY]
    for finding in in_the_way[:_SHOWN_FINDINGS]:
        _say(f"{finding.message}{_place(finding)}")
    handled = Counter(f.kind for f in findings if f.kind not in _IN_THE_WAY)
    rest = Counter(f.kind for f in in_the_way[_SHOWN_FINDINGS:])
    for kind, count in (rest + handled).items():
        example = next(f for f in reversed(findings) if f.kind is kind)
        number = f"{count} more, such as: " if kind in rest else f"found {count} times, such as: "
        if kind in handled and count == 1:
            number = ""
        _say(f"{FINDING_TITLES[kind]}: {number}{example.message}{_place(example)}")
    if findings and listed_in:
        print(f"napari-panoptic: all of them are listed in {listed_in}", file=sys.stderr)


def _say(text: str) -> None:
    print(visible(f"napari-panoptic: {text}"), file=sys.stderr)


def _place(finding: Finding) -> str:
    """Describe where something was met, as far as its message does not."""
    parts = []
    if finding.path is not None and finding.path.name not in finding.message:
        parts.append(str(finding.path))
    for what, name in {"region": finding.region, "team": finding.team}.items():
        if name and name not in "".join([finding.message, *parts]):
            parts.append(f"{what} {name}")
    return f" ({', '.join(parts)})" if parts else ""


def words(text: str) -> list[str]:
    """Split at commas; each word once."""
    return list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def chosen_teams(
    wanted: str | None, usual: Sequence[str], name_of: Callable[[str], str]
) -> tuple[str, ...]:
    """Read which teams are wanted.

    Parameters
    ----------
    wanted
        Names separated by commas; None where nobody said.
    usual
        The teams in that case.
    name_of
        Gives the name of a team that the cohort has, or raises.

    Raises
    ------
    SettingsError
        Where no name is given, or one that the cohort does not have.
    """
    if wanted is None:
        return tuple(usual)
    names = words(wanted)
    if not names:
        raise SettingsError(f"--teams: expected names separated by commas, found '{wanted}'")
    return tuple(checked_name("--teams", name, name_of) for name in names)


def check_report(path: Path, cohort: Path) -> None:
    """Check before long work that a report can be written, where a browser will open it.

    Parameters
    ----------
    path
        Where to.
    cohort
        The folder of the cohort, in which only reports of this program are replaced.

    Raises
    ------
    SettingsError
        For another ending than that of HTML files.
    PanopticError
        Where nothing can be written, or another file is in the way.
    """
    if path.suffix.casefold() not in (".html", ".htm") and not path.is_dir():
        raise SettingsError(
            f"--output: a report is an HTML file, whose name ends in .html; found '{path}', give "
            f"'{path.with_suffix('.html') if path.name else 'report.html'}'"
        )
    check_writable(path)
    if not is_own_page(path):
        check_not_in_cohort([path], cohort)


def report_date(*, is_wanted: bool) -> str:
    """Return the date that a report bears; nothing where none is wanted."""
    return datetime.date.today().isoformat() if is_wanted else ""


def write_report(
    options: argparse.Namespace,
    evaluate: Callable[[], _EvaluationT],
    write: Callable[[_EvaluationT, Path, str], object],
) -> int:
    """Evaluate a cohort, and write all about it as one HTML file.

    Parameters
    ----------
    options
        Of the command line.
    evaluate
        Evaluates; raises where nothing could be.
    write
        Writes what was evaluated, to a path, with a date.

    Returns
    -------
    int
        The status to exit with.
    """
    check_report(options.output, options.cohort)
    write(evaluate(), options.output, report_date(is_wanted=options.date))
    print(visible(f"report written to {options.output}"))
    return 0


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
def readers_may_end() -> Iterator[None]:
    """Let a command finish when the program that reads its output has ended, as in ``| head``."""
    streams = [stream and _Output(stream) for stream in (sys.stdout, sys.stderr)]
    out, err = streams  # None without a console, on Windows
    with redirect_stdout(cast(Any, out)), redirect_stderr(cast(Any, err)):
        try:
            yield
        finally:
            for stream in filter(None, streams):
                stream.flush()


@contextmanager
def tables_in(folder: Path, names: Sequence[str], cohort: Path | None = None) -> Iterator[None]:
    """Prepare the folder for a set of tables before the work; leave no new folder empty.

    Keeps other programs from writing there meanwhile, and completes a set that a killed program
    was putting in place.

    Parameters
    ----------
    folder
        Where the tables will be written.
    names
        Their files, the record last.
    cohort
        The folder of the cohort, in which only tables of this program are replaced.

    Raises
    ------
    PanopticError
        Where the folder cannot be made or written to, or holds other files of these names.
    """
    if folder.exists() and not folder.is_dir():
        raise PanopticError(
            "the tables cannot be written: expected a folder, found a file; choose another "
            "--output",
            path=folder,
        )
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with held_alone(folder / _LOCK, "an evaluation", "choose another --output"):
            finish_replacing(folder, names[-1])
            if cohort is not None:
                own = own_tables(folder, names)
                check_not_in_cohort([folder / name for name in names if name not in own], cohort)
            yield
    except OSError as error:
        raise PanopticError(
            f"the tables cannot be written: {error.strerror}; choose another --output", path=folder
        ) from error
    finally:
        if is_new and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
