"""Import of verdicts by the identity of their objects, and the table for estimates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.text import english_list
from napari_panoptic.io.files.fingerprints import file_fingerprints
from napari_panoptic.nuclei.regions.region import HeldRegion
from napari_panoptic.review.export import write_table
from napari_panoptic.review.identity import ObjectKey, Subject, matched, object_key
from napari_panoptic.review.judged import Subjects
from napari_panoptic.review.package.answers import AnsweredItem, Answers
from napari_panoptic.review.package.contents import Contents
from napari_panoptic.review.plan.tables import ITEM_VERDICTS, verdicts_frame
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.review.verdicts import Judgement, Receipt
from napari_panoptic.values.cohort import Cohort, Region, Source
from napari_panoptic.values.reading import HELD_UP_TO_PX
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side

SETTINGS = EvaluationSettings().replaced(distances=False)
"""The settings under which objects are looked up; their identity does not depend on them."""
MOST_MISSING = 0.5
"""If more of a file's objects than this share are not in a cohort, it is another cohort."""


@dataclass(frozen=True)
class Imported:
    """The result of an import."""

    #: Number of verdicts that were written into the review file.
    saved: int
    #: Number of verdicts that the review file had from an earlier import.
    known: int
    #: Items for which the review file has a newer verdict of the same reviewer, which stays.
    older: tuple[str, ...]
    #: Items whose objects are not in the cohort any more; their verdicts are saved with the places
    #: of the objects.
    missing: tuple[str, ...]
    #: Items whose verdicts replaced one on an object with other pixels.
    replaced: tuple[str, ...]
    #: The name in the review file.
    reviewer: str


def fingerprints_of(regions: Iterable[Region], root: Path) -> dict[str, str]:
    """Return a fingerprint of each region's image; empty where copies of it can differ."""
    result = {}
    for region in regions:
        paths = [] if region.image is None else [region.image]
        (text,) = file_fingerprints(paths, root).values() or ("",)
        result[region.name] = text if text.startswith("sha256:") else ""
    return result


def import_answers(cohort: Cohort, answers: Answers, place: Path, reviewer: str) -> Imported:
    """Write the verdicts on objects into a review file: all of them or, after an error, none.

    A verdict is left out where the reviewer gave a later one, by an earlier import or in the
    window. A review file is created only for verdicts that belong to the cohort.

    Raises
    ------
    PanopticError
        If the verdicts are about another cohort, were imported before, or cannot be saved.
    """
    check_cohort(cohort, answers.contents)
    judged = _judged(answers)
    found = _found_in(cohort, answers.contents, [judgement.subject for _, judgement in judged])
    missing = [
        answer.item.item for (answer, _), at in zip(judged, found, strict=True) if at is None
    ]
    if len(missing) > MOST_MISSING * len(judged):
        raise _foreign(
            f"{len(missing)} of the {len(judged)} judged objects are not in it", answers.contents
        )
    receipt = Receipt(answers.digest, answers.package)
    new, older, known = [], [], 0
    with ReviewStore(place, reviewer=reviewer) as store:
        store.check_not_received(receipt)
        for (answer, judgement), subject in zip(judged, found, strict=True):
            wanted = judgement._replace(subject=subject or judgement.subject)
            given_at = answer.given_at
            history = store.history(wanted.subject)
            if any(entry.record.given_at == given_at for entry in history):
                known += 1
            elif any(entry.standing and entry.record.given_at > given_at for entry in history):
                older.append(answer.item.item)
            else:
                new.append((given_at, wanted, answer.item.item))
        # Of two items about one object, the verdict that was given last stands.
        new.sort(key=itemgetter(0))
        saved = store.give_all([judgement for _, judgement, _ in new], receipt=receipt)
        replaced = [
            item
            for (_, _, item), record in zip(new, saved, strict=True)
            if record.replaced_elsewhere is not None
        ]
        return Imported(
            len(new), known, tuple(older), tuple(missing), tuple(replaced), store.reviewer
        )


def check_cohort(cohort: Cohort, contents: Contents) -> None:
    """Check that a package was made of a cohort, by its names and images.

    Raises
    ------
    PanopticError
        If it was made of another one.
    """
    _check_names(cohort, contents)
    _check_images(cohort, contents)


def write_verdicts(path: Path, answers: Answers) -> int:
    """Write the verdicts on the items of a plan as the table that ``estimate`` reads.

    Returns
    -------
    int
        The number of verdicts.

    Raises
    ------
    ReviewError
        If the table cannot be written.
    """
    rows = (({"item": answer.item.item}, answer) for answer in answers.answers)
    return write_table(path, ITEM_VERDICTS, verdicts_frame(rows))


def _judged(answers: Answers) -> list[tuple[AnsweredItem, Judgement]]:
    """Return the items about objects, with their verdicts."""
    return [
        (answer, Judgement(subject, answer.verdict, note=answer.note, given_at=answer.given_at))
        for answer in answers.answers
        if (subject := answer.item.subject) is not None and answer.verdict is not None
    ]


def _found_in(
    cohort: Cohort, contents: Contents, subjects: Sequence[Subject]
) -> list[Subject | None]:
    """Find objects in a cohort by their identity; None for those that are not there any more."""
    source = None if contents.source is None else Source(contents.source)
    keys = dict.fromkeys(map(object_key, subjects))
    found: dict[ObjectKey, Subject] = {}
    for region in dict.fromkeys(key.region for key in keys):
        held = HeldRegion(cohort, cohort.region(region), SETTINGS, held_up_to_px=HELD_UP_TO_PX)
        for team in dict.fromkeys(key.team for key in keys if key.region == region):
            evaluation = held.evaluate(team, SETTINGS, source).evaluation
            if evaluation is None:
                continue
            here = Subjects(evaluation, region=region, team=team)
            outcomes = evaluation.outcomes
            there = [(side, row) for side in Side for row in range(len(outcomes.side(side)))]
            wanted = [key for key in keys if (key.region, key.team) == (region, team)]
            numbers = matched(wanted, [here.key(*at) for at in there])
            for key, number in zip(wanted, numbers, strict=True):
                if number is not None:
                    found[key] = here.of(*there[number])
    return [found.get(object_key(subject)) for subject in subjects]


def _check_names(cohort: Cohort, contents: Contents) -> None:
    regions = {region.name for region in cohort.regions}
    wanted = dict.fromkeys(item.region for item in contents.items)
    teams = dict.fromkeys(item.team for item in contents.items)
    unknown = [f"region {name}" for name in wanted if name not in regions]
    unknown += [f"team {name}" for name in teams if name not in cohort.team_names]
    if unknown:
        raise _foreign(f"it has no {english_list(unknown, limit=3)}", contents)


def _check_images(cohort: Cohort, contents: Contents) -> None:
    names = dict.fromkeys(item.region for item in contents.items)
    found = fingerprints_of([cohort.region(name) for name in names], cohort.root)
    other = [
        name
        for name in names
        if contents.images.get(name) and found[name] and contents.images[name] != found[name]
    ]
    if other:
        raise _foreign(f"its image of region {english_list(other, limit=3)} differs", contents)


def _foreign(why: str, contents: Contents) -> PanopticError:
    return PanopticError(
        f"the verdicts are about another cohort ('{contents.cohort}') than this one: {why}. "
        f"Nothing was imported; choose the cohort that the package was made of"
    )
