"""Doubts about names of files that fit no region, but would with something before or behind it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from napari_panoptic.common.text import english_list
from napari_panoptic.io.cohorts.folder_scan import affixes_of
from napari_panoptic.io.cohorts.layouts import ONLY_TEAM, Layout, Patterns
from napari_panoptic.io.cohorts.patterns import Listing, Pattern
from napari_panoptic.nuclei.inspection.values import REFERENCE, Doubt, Fix
from napari_panoptic.nuclei.values.cohort import Cohort


def name_doubts(cohort: Cohort, layout: Layout, listing: Listing) -> Iterator[Doubt]:
    """Report files of the annotation and of teams whose names have more than the region."""
    alone = {r.name for r in cohort.regions if r.reference is not None and r.image is None}
    bare = [r.name for r in cohort.regions if r.reference is None]
    for form, patterns in layout.reference.forms.items():
        for pattern in patterns:
            strangers = [n for _, n in _named(pattern, listing, frozenset()) if n in alone]
            yield from _doubt(f"reference.{form}", REFERENCE, patterns, pattern, strangers, bare)
    taken = frozenset(
        path
        for region in cohort.regions
        for path in ([] if region.image is None else [region.image])
        + ([] if region.reference is None else [*region.reference.all_paths])
    )
    known = {region.name.casefold() for region in cohort.regions}
    for form, patterns in layout.predictions.forms.items():
        for pattern in patterns:
            unknown: dict[str, list[str]] = defaultdict(list)
            for team, name in _named(pattern, listing, taken):
                if name.casefold() not in known:
                    unknown[team].append(name)
            for team, strangers in unknown.items():
                lacking = [
                    r.name for r in cohort.regions if (team, r.name) not in cohort.predictions
                ]
                yield from _doubt(
                    f"predictions.{form}", team, patterns, pattern, strangers, lacking
                )


def _named(pattern: Pattern, listing: Listing, taken: frozenset[Path]) -> Iterator[tuple[str, str]]:
    """Yield team and region of each file that fits a pattern."""
    if "region" in pattern.fields:
        for match in pattern.files(listing):
            if match.path not in taken:
                yield match.fields.get("team", ONLY_TEAM), match.fields["region"]


def _doubt(
    key: str,
    name: str,
    patterns: Patterns,
    pattern: Pattern,
    strangers: Sequence[str],
    lacking: Iterable[str],
) -> Iterator[Doubt]:
    found: Counter[tuple[str, str]] = affixes_of(strangers, lacking)
    if not found:
        return
    (before, behind), count = found.most_common(1)[0]
    longer = pattern.text.replace("{region}", f"{before}{{region}}{behind}")
    # The longer one goes first: what an earlier pattern finds is left to it.
    texts = [longer, *(each.text for each in patterns)]
    side, _, form = key.partition(".")
    yield Doubt(
        f"names:{name}",
        f"{count} file(s) of {name} belong to no region, such as {english_list(strangers[:1])}; "
        f"with '{before}{{region}}{behind}' they would.",
        (Fix("longer", f"Names are {before}REGION{behind}", ((("files", side, form), texts),)),),
    )
