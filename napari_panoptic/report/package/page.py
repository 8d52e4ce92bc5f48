"""The page of a review package: one file that needs nothing but a browser."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from napari_panoptic.common.text import visible
from napari_panoptic.display.crops import LINE_PX
from napari_panoptic.display.glossary import VERDICT_MEANINGS, VERDICT_WORDS
from napari_panoptic.display.outlines import CASING_PX, SELECTED_MORE_PX, WIDEST_SHARE
from napari_panoptic.display.palette import STATUS_COLOURS, hex_colour
from napari_panoptic.report.package.drawing import DrawnItem, drawn
from napari_panoptic.report.page import TEMPLATES, content_hash, rendered, write_page
from napari_panoptic.report.writing import MADE_WITH
from napari_panoptic.review.package.answers import FORMAT, VERSION
from napari_panoptic.review.package.choosing import ItemQuestion
from napari_panoptic.review.package.contents import Contents, package_id, seal
from napari_panoptic.review.package.importing import fingerprints_of
from napari_panoptic.review.plan.units import MOST_COUNTED
from napari_panoptic.tables.figures import ratio
from napari_panoptic.tables.markup import trusted
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.vocabulary import Cause, Side, Status, Verdict

COLOURS = {
    Side.REFERENCE: hex_colour(STATUS_COLOURS[Status.FN]),
    Side.PREDICTION: hex_colour(STATUS_COLOURS[Status.FP]),
}
"""Colours of the two sides: they do not depend on the outcome, which may be hidden."""
_SIDE_WORDS = {Side.REFERENCE: "annotation", Side.PREDICTION: "prediction"}


def package_page(
    contents: Contents, groups: Sequence[Sequence[DrawnItem]], *, is_blind: bool, reviewer: str = ""
) -> str:
    """Return the page.

    Parameters
    ----------
    contents
        The package.
    groups
        What is shown together: one item, or the same object for two teams in the order in
        which they are to be shown.
    is_blind
        Whether to show neither teams nor outcomes.
    reviewer
        The name to begin with; the reviewer can change it.
    """
    sealed = seal(contents)
    title = f"Review: {visible(contents.cohort)}"
    data = {
        "format": FORMAT,
        "version": VERSION,
        "package": package_id(sealed),
        "sealed": sealed,
        "reviewer": reviewer,
        "most": MOST_COUNTED,
        "colours": {_SIDE_WORDS[side]: colour for side, colour in COLOURS.items()},
        "lines": {
            "widths": {_SIDE_WORDS[side]: width for side, width in LINE_PX.items()},
            "more": SELECTED_MORE_PX,
            "casing": CASING_PX,
            "share": WIDEST_SHARE,
        },
        "verdicts": [
            {"verdict": str(v), "words": _sentence(VERDICT_WORDS[v]), "meaning": _meaning(v)}
            for v in Verdict
        ],
        **_questions(groups, is_blind=is_blind),
    }
    style = (TEMPLATES / "package.css").read_text(encoding="utf-8")
    script = (TEMPLATES / "package.js").read_text(encoding="utf-8")
    # Neither styles nor scripts but these two run, and nothing is fetched or sent.
    policy = (
        f"default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src '{content_hash(style)}'; script-src '{content_hash(script)}'"
    )
    return rendered(
        "package.html.j2",
        title=title,
        policy=policy,
        style=trusted(style),
        script=trusted(script),
        data=trusted(_inert_json(data)),
        foot=MADE_WITH,
    )


def write_package(
    path: Path,
    cohort: Cohort,
    groups: Sequence[Sequence[ItemQuestion]],
    reading: Reading,
    *,
    plan: str | None = None,
    is_blind: bool = False,
    reviewer: str = "",
) -> Path:
    """Write a package completely or not at all.

    Parameters
    ----------
    path
        The file.
    cohort, reading
        The cohort, and how its objects are read.
    groups
        The items; those of one group are shown together, in this order.
    plan
        SHA-256 of the plan that the items are from, if there is one.
    is_blind, reviewer
        As for `package_page`.

    Raises
    ------
    PanopticError
        If an item cannot be drawn, or the file cannot be written.
    """
    questions = [question for group in groups for question in group]
    found = {each.item.item: each for each in drawn(cohort, questions, reading)}
    regions = dict.fromkeys(question.region for question in questions)
    contents = Contents(
        cohort=visible(cohort.name, longest=200),
        source=None if reading.source is None else str(reading.source),
        plan=plan,
        images=fingerprints_of([cohort.region(name) for name in regions], cohort.root),
        items=tuple(found[question.item].item for question in questions),
    )
    pictures = [[found[question.item] for question in group] for group in groups]
    page = package_page(contents, pictures, is_blind=is_blind, reviewer=reviewer)
    return write_page(path, page)


def _questions(groups: Sequence[Sequence[DrawnItem]], *, is_blind: bool) -> dict[str, Any]:
    """Return pictures, items and what is shown together; equal pictures are written once."""
    pictures: dict[bytes, int] = {}
    items: list[dict[str, Any]] = []
    questions: list[list[int]] = []
    for group in groups:
        questions.append(list(range(len(items), len(items) + len(group))))
        for each in group:
            picture = pictures.setdefault(each.jpeg, len(pictures))
            items.append(_item(each, picture, is_blind=is_blind))
    written = [base64.b64encode(picture).decode() for picture in pictures]
    return {"pictures": written, "items": items, "questions": questions}


def _item(drawn: DrawnItem, picture: int, *, is_blind: bool) -> dict[str, Any]:
    target = drawn.item.target
    return {
        "item": drawn.item.item,
        "side": "" if target is None else _SIDE_WORDS[target.side],
        "picture": picture,
        "field": drawn.field_px,
        "close": drawn.close_up,
        "mpp": drawn.mpp,
        "facts": _facts(drawn, is_blind=is_blind),
        "paths": {
            _SIDE_WORDS[side]: {
                "concerned": list(own.concerned.items()),
                "beside": list(own.beside.items()),
            }
            for side, own in drawn.outlines.items()
        },
    }


def _facts(drawn: DrawnItem, *, is_blind: bool) -> list[tuple[str, str]]:
    facts = [("Region", visible(drawn.item.region))]
    facts += [
        (_sentence(_SIDE_WORDS[side]), visible(", ".join(names)) or "nothing here")
        for side, names in drawn.classes.items()
    ]
    if drawn.status is not None and not is_blind:
        cause = "" if drawn.cause is Cause.NONE else f" ({drawn.cause})"
        iou = "" if math.isnan(drawn.iou) else f", IoU {ratio(drawn.iou, 2)}"
        facts += [
            ("Team", visible(drawn.item.team)),
            ("Outcome", f"{drawn.status}{cause}{iou}"),
        ]
    return facts


def _meaning(verdict: Verdict) -> str:
    if verdict is Verdict.ANNOTATION_RIGHT:
        return "The annotation is correct; choose this also if both are."
    return VERDICT_MEANINGS[verdict]


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _inert_json(data: Mapping[str, Any]) -> str:
    """Return JSON that ends no element of the page, whatever names it holds."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
