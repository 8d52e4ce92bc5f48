"""Doubts about names: of files that fit no region, of unknown classes, of numbers of classes."""

from __future__ import annotations

import difflib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.inspection.looking import SampledRegion, sides_of
from napari_panoptic.inspection.values import REFERENCE, Doubt, Fix, InspectedSide
from napari_panoptic.io.cohorts.description import IGNORED
from napari_panoptic.io.cohorts.folder_scan import affixes_of
from napari_panoptic.io.cohorts.layouts import ONLY_TEAM, Layout, Patterns
from napari_panoptic.io.cohorts.patterns import Listing, Pattern
from napari_panoptic.nuclei.overlap import overlap_table
from napari_panoptic.values.cohort import MOST_CLASSES, ClassScheme, Cohort, Rgb, Source
from napari_panoptic.values.labels import LabelPair

ALIKE = 0.6
"""Least similarity at which one name counts as a spelling of the other."""
LEAST_GAIN = 0.05
"""Share of the matched pairs that must agree more for another order of classes to be proposed."""
IGNORE, NEW = "ignore", "new"
"""Choices beside the names of classes."""
_COLOURS: tuple[Rgb, ...] = (
    *((255, 128, 0), (128, 0, 255), (0, 255, 255), (255, 0, 255)),
    *((128, 255, 0), (0, 128, 255), (255, 0, 128), (128, 128, 128)),
)


def name_doubts(cohort: Cohort, layout: Layout, listing: Listing) -> Iterator[Doubt]:
    """Report files of the annotation and of teams whose names have more than the region."""
    alone = {r.name for r in cohort.regions if r.reference is not None and r.image is None}
    bare = [r.name for r in cohort.regions if r.reference is None]
    for form, patterns in layout.reference.forms.items():
        for pattern in patterns:
            strangers = [n for _, n in _named(pattern, listing, frozenset()) if n in alone]
            yield from _name_doubt(
                f"reference.{form}", REFERENCE, patterns, pattern, strangers, bare
            )
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
                yield from _name_doubt(
                    f"predictions.{form}", team, patterns, pattern, strangers, lacking
                )


def class_doubts(scheme: ClassScheme, findings: Iterable[Finding]) -> Iterator[Doubt]:
    """Report each unknown class once, with the classes of the cohort to choose from.

    Parameters
    ----------
    scheme
        The classes of the cohort.
    findings
        Of the files that were read, and of the cohort's folders.
    """
    counts: Counter[str] = Counter()
    sides: dict[str, dict[str, None]] = defaultdict(dict)
    ignored = {name.casefold() for name in scheme.ignored}
    for finding in findings:
        is_folder = finding.kind is FindingKind.EXTRA and finding.class_name is not None
        if finding.kind is not FindingKind.UNKNOWN_CLASS and not is_folder:
            continue
        name = (finding.class_name or "").strip()
        if name.casefold() not in ignored:
            counts[name] += finding.count
            sides[name][finding.team or REFERENCE] = None
    free = [colour for colour in _COLOURS if colour not in scheme.colours] or [*_COLOURS]
    for number, (name, count) in enumerate(counts.items()):
        colour = free[number % len(free)]
        yield _class_doubt(scheme, name, count, list(sides[name]), colour)


def number_doubts(
    regions: Sequence[SampledRegion], scheme: ClassScheme, targets: Sequence[InspectedSide]
) -> Iterator[Doubt]:
    """Report numbers of classes that no file names, with the order that fits the annotation best.

    Parameters
    ----------
    regions
        What was read.
    scheme
        The classes of the cohort, in the order in which the numbers were taken.
    targets
        The sides.
    """
    found = {}
    for target in targets:
        odd = [s for s in sides_of(regions, target.name) if any(map(_has_order, s.findings))]
        if odd:
            first = 0 if odd[0].files.source == Source.YOLO else 1
            confusion = _confusion(regions, target.name, len(scheme.names))
            found[target] = first, confusion, _best_order(confusion)
    orders = {(first, *order) for first, _, order in found.values()}
    for target, (first, confusion, order) in found.items():
        usual = range(len(scheme.names))
        as_taken, best = (
            {str(n): scheme.names[place] for n, place in enumerate(places, first)}
            for places in (usual, order)
        )
        message = (
            f"Classes of {target.in_words} are numbers that no file names, taken in the order of "
            f"the cohort's classes: {_listed(as_taken)}."
        )
        n_pairs = int(confusion.sum())
        shares = [int(confusion[usual, own].sum()) / max(n_pairs, 1) for own in (usual, order)]
        fixes = [_order_fix("order", as_taken)]
        if best != as_taken:
            fixes.insert(0, _order_fix("best", best))
            message += (
                f" With {_listed(best)}, {shares[1]:.0%} of {counted(n_pairs, 'matched pair')} "
                f"have one class, instead of {shares[0]:.0%}."
            )
        if len(orders) > 1:
            fixes = []
            message += " Sides differ: state the names of each in a type_info.json or data.yaml."
        yield Doubt(f"numbers:{target.name}", message, tuple(fixes), is_clear=n_pairs > 0)


def _has_order(finding: Finding) -> bool:
    return finding.kind is FindingKind.CLASS_ORDER


def _listed(names: Mapping[str, str]) -> str:
    return english_list([f"{n} = {name}" for n, name in names.items()], limit=MOST_CLASSES)


def _order_fix(name: str, names: Mapping[str, str]) -> Fix:
    settings = tuple((("aliases", number), own) for number, own in names.items())
    return Fix(name, _listed(names), settings)


def _confusion(regions: Sequence[SampledRegion], team: str, n: int) -> NDArray[np.int64]:
    """Count matched pairs by predicted and annotated class, int64 (n, n)."""
    counts = np.zeros((n, n), np.int64)
    for region in regions:
        sides = (region.reference, region.predictions.get(team))
        one, other = (None if side is None else side.masks for side in sides)
        if one is None or other is None or one.labels.shape != other.labels.shape:
            continue
        table = overlap_table(LabelPair(one.labels, other.labels, None, None))
        rows, columns = table.pair_reference, table.pair_prediction
        areas = table.reference.area[rows] + table.prediction.area[columns]
        is_pair = 3 * table.intersection > areas  # an IoU above 0.5
        classes = (
            own.labels.class_index[at[is_pair]] for own, at in ((other, columns), (one, rows))
        )
        predicted, annotated = classes
        np.add.at(counts, (predicted - 1, annotated - 1), 1)
    return counts


def _best_order(confusion: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the class of each number by which most pairs agree, as taken unless it is clear."""
    from scipy.optimize import linear_sum_assignment

    n = len(confusion)
    usual = np.arange(n)
    # Classes without a pair keep their numbers where they can.
    _, best = linear_sum_assignment((n + 1) * confusion + np.eye(n, dtype=np.int64), maximize=True)
    gain = confusion[usual, best].sum() - confusion[usual, usual].sum()
    is_clear = gain > LEAST_GAIN * confusion.sum()
    return tuple((best if is_clear else usual).tolist())


def _named(pattern: Pattern, listing: Listing, taken: frozenset[Path]) -> Iterator[tuple[str, str]]:
    """Yield team and region of each file that fits a pattern."""
    if "region" in pattern.fields:
        for match in pattern.files(listing):
            if match.path not in taken:
                yield match.fields.get("team", ONLY_TEAM), match.fields["region"]


def _name_doubt(
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
        f"{counted(count, 'file')} of {name} without a region, such as "
        f"{english_list(strangers[:1])}; '{before}{{region}}{behind}' would find one.",
        (Fix("longer", f"Names are {before}REGION{behind}", ((("files", side, form), texts),)),),
    )


def _class_doubt(
    scheme: ClassScheme, name: str, count: int, sides: Sequence[str], colour: Rgb
) -> Doubt:
    known = [*scheme.names, *([scheme.ambiguous] if scheme.ambiguous else [])]
    alias = {each: Fix(each, f"is {each}", ((("aliases", name), each),)) for each in known}
    called = f"of the class '{name}', which the cohort does not have" if name else "without class"
    what = counted(count, "object or file", "objects or files")
    message = f"{what} {called}, left out, in {english_list(sides)}."
    if not name:
        return Doubt("class:", message, tuple(alias.values()), is_clear=len(scheme.names) == 1)
    ignore = Fix(IGNORE, "Leave out", ((("aliases", name), IGNORED),))
    new: tuple[Fix, ...] = ()
    if len(scheme.names) < MOST_CLASSES:
        new = (Fix(NEW, "Add as a class", ((("classes", name), list(colour)),)),)
    near = _nearest(name, known)
    # A class of one side only has no partner on the other, and costs both sides.
    others = (ignore, *new) if len(sides) == 1 else (*new, ignore)
    first = (alias.pop(near),) if near else ()
    return Doubt(f"class:{name}", message, (*first, *others, *alias.values()))


def _nearest(name: str, known: Sequence[str]) -> str | None:
    """Return the class whose name is most alike; None if none is."""

    def likeness(each: str) -> float:
        one, other = name.casefold(), each.casefold()
        is_part = min(len(one), len(other)) >= 3 and (one in other or other in one)
        return 1.0 if is_part else difflib.SequenceMatcher(None, one, other).ratio()

    best = max(known, key=likeness)
    return best if likeness(best) >= ALIKE else None
