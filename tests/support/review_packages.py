"""Review packages of the small cohort, and files of verdicts on them, made without a browser."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from napari_panoptic.report.package.page import write_package
from napari_panoptic.review.package.choosing import failures_of, numbered, worst
from napari_panoptic.review.package.contents import Contents, package_id, seal, unseal
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Verdict

READING = Reading(EvaluationSettings().replaced(distances=False), None)
AT = "2026-03-01T10:00:{:02d}.125Z"


def write_small_package(path: Path, cohort: Cohort, number: int, **options: Any) -> Path:
    """Write the worst failures of a cohort as a package."""
    teams = tuple(team.name for team in cohort.competing_teams)
    failures, _ = failures_of(cohort, replace(READING, teams=teams))
    groups = numbered([(question,) for question in worst(failures, number)])
    return write_package(path, cohort, groups, READING, **options)


def data_of(page: Path) -> dict[str, Any]:
    """Give the data that a page holds for its script."""
    text = page.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def contents_of(page: Path) -> Contents:
    return unseal(data_of(page)["sealed"])


def saved(
    contents: Contents,
    verdicts: Mapping[str, Verdict | int | None],
    *,
    reviewer: str = "Ada",
    note: str = "",
    second: int = 0,
) -> dict[str, Any]:
    """Give what the page saves: item -> verdict, number of nuclei, or None for an untellable tile.

    `second` is when the first verdict was given; each next one is a second later.
    """
    items = seal(contents)
    lines = []
    for at, (item, answer) in enumerate(verdicts.items(), start=second):
        line = {"item": item, "verdict": "", "count": None, "note": note, "given_at": AT.format(at)}
        if isinstance(answer, int):
            line["count"] = answer
        else:
            line["verdict"] = str(answer or Verdict.CANNOT_TELL)
        lines.append(line)
    file: dict[str, Any] = {
        "format": "napari-panoptic verdicts",
        "version": 1,
        "package": package_id(items),
        "items": items,
        "reviewer": reviewer,
        "saved_at": AT.format(59),
        "verdicts": lines,
    }
    return signed(file)


def signed(file: dict[str, Any]) -> dict[str, Any]:
    """Give a file the digest that its content has."""
    head = ("format", "version", "package", "items", "reviewer", "saved_at")
    parts = [str(file[name]) for name in head]
    for line in file["verdicts"]:
        count = "" if line["count"] is None else str(line["count"])
        parts += [line["item"], line["verdict"], count, line["note"], line["given_at"]]
    text = b"".join(b"%d:" % len(part.encode()) + part.encode() for part in parts)
    return {**file, "digest": f"sha256:{hashlib.sha256(text).hexdigest()}"}


def write_file(path: Path, file: Mapping[str, Any]) -> Path:
    path.write_text(json.dumps(file), encoding="utf-8")
    return path
