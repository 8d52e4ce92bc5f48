"""What the commands share: what they tell people, and folders for their tables."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from napari_panoptic.errors import Finding, FindingKind, PanopticError
from napari_panoptic.visible import visible

_SHOWN_FINDINGS = 20
_IN_THE_WAY = (
    FindingKind.MISSING,
    FindingKind.UNREADABLE,
    FindingKind.CHANGED,
    FindingKind.OUTSIDE_FOLDER,
    FindingKind.BROKEN_PLUGIN,
)


def report_findings(findings: Sequence[Finding], listed_in: str = "evaluation.json") -> None:
    """Tell what stood in the way in full, of all else how often it was met, and where all is."""
    in_the_way = [f for f in findings if f.kind in _IN_THE_WAY]
    for finding in in_the_way[:_SHOWN_FINDINGS]:
        print(visible(f"napari-panoptic: {finding.kind}: {finding.message}"), file=sys.stderr)
    handled = Counter(f.kind for f in findings if f.kind not in _IN_THE_WAY)
    rest = Counter(f.kind for f in in_the_way[_SHOWN_FINDINGS:])
    for kind, count in (rest + handled).items():
        example = next(f for f in reversed(findings) if f.kind is kind)
        place = f" (region {example.region})" if example.region else ""
        print(
            visible(
                f"napari-panoptic: {kind}: {count} {'more' if kind in rest else 'x'}, such as: "
                f"{example.message}{place}"
            ),
            file=sys.stderr,
        )
    if findings and listed_in:
        print(f"napari-panoptic: all of them are listed in {listed_in}", file=sys.stderr)


def words(text: str) -> list[str]:
    """Split at commas; each word once."""
    return list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def make_folder(folder: Path) -> None:
    """Make the folder for tables, before the work and not after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_writable(folder, error) from error


def remove_if_empty(folder: Path) -> None:
    """Leave no empty folder behind."""
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def not_writable(folder: Path, error: OSError) -> PanopticError:
    """Say that tables cannot be written, and why."""
    return PanopticError(
        f"the tables cannot be written: {error.strerror}; choose another --output", path=folder
    )
