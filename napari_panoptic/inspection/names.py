"""Doubts about names: of files that fit no region, of unknown classes, of numbers of classes."""

from __future__ import annotations

import difflib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.inspection.looking import SampledRegion, SampledSide, sides_of
from napari_panoptic.inspection.values import REFERENCE, Doubt, Fix, InspectedSide
from napari_panoptic.io.cohorts.description import IGNORED
from napari_panoptic.io.cohorts.file_groups import affixes_of
from napari_panoptic.io.cohorts.layouts import ONLY_TEAM, Layout, Patterns
from napari_panoptic.io.cohorts.patterns import Listing, Pattern
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.nuclei.overlap import overlap_table
from napari_panoptic.values.cohort import MOST_CLASSES, ClassScheme, Cohort, Rgb, Source
from napari_panoptic.values.labels import LabelPair

ALIKE = 0.6
"""Least similarity at which one name counts as a spelling of the other."""
LEAST_GAIN = 0.05
"""Share of the matched pairs that must agree more for another order of classes to be proposed."""
IGNORE, NEW = "ignore", "new"
"""Choices beside the names of classes."""
_DIFFER = "Sides differ: state the names of each in a type_info.json or data.yaml."
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
    numbered = [_numbered(regions, scheme, target) for target in targets]
    found = [each for each in numbered if each is not None]
    have_one_order = all(each.best == found[0].best for each in found)
    for each in found:
        if each.is_assumed or each.best != each.taken:
            yield Doubt(
                f"numbers:{each.target.name}",
                each.message if have_one_order else f"{each.message} {_DIFFER}",
                each.fixes if have_one_order else (),
                is_clear=bool(each.n_pairs),
            )


@dataclass(frozen=True, eq=False)
class _Numbered:
    """A side whose classes are numbers that no file names."""

    target: InspectedSide
    #: Whether they were taken in the order of the classes; else the cohort's aliases name them.
    is_assumed: bool
    #: Number -> class: as they were taken, and as most pairs have one class.
    taken: Mapping[str, str]
    best: Mapping[str, str]
    #: The number of matched pairs, and of those with one class, as they were taken and at best.
    n_pairs: int
    agreeing: tuple[int, int]

    @property
    def fixes(self) -> tuple[Fix, ...]:
        """The orders to choose from, the best first."""
        best = (_order_fix("best", self.best),) if self.best != self.taken else ()
        return (*best, *((_order_fix("order", self.taken),) if self.is_assumed else ()))

    @property
    def message(self) -> str:
        """How the numbers were taken, and which order fits better."""
        how = (
            "in the order of the cohort's classes" if self.is_assumed else "as [aliases] name them"
        )
        message = (
            f"Classes of {self.target.in_words} are numbers that no file names, taken {how}: "
            f"{_listed(self.taken)}."
        )
        if self.best == self.taken:
            return message
        now, then = (n / max(self.n_pairs, 1) for n in self.agreeing)
        return (
            f"{message} With {_listed(self.best)}, {then:.0%} of "
            f"{counted(self.n_pairs, 'matched pair')} have one class, instead of {now:.0%}."
        )


def _numbered(
    regions: Sequence[SampledRegion], scheme: ClassScheme, target: InspectedSide
) -> _Numbered | None:
    """Return how the numbers of a side were taken; None if its files name the classes."""
    stated = {n: name for n, name in scheme.aliases.items() if n.isdecimal()}
    others = {n: name for n, name in scheme.aliases.items() if n not in stated}
    unnamed = replace(scheme, aliases=others) if stated else None
    sides = [side for side in sides_of(regions, target.name) if _takes_numbers(side, unnamed)]
    if not sides:
        return None
    confusion = _confusion(regions, target.name, len(scheme.names))
    usual, order = range(len(scheme.names)), _best_order(confusion)
    is_assumed = any(_has_order(finding) for side in sides for finding in side.findings)
    first = 0 if sides[0].files.source == Source.YOLO else 1
    taken = {str(n): name for n, name in enumerate(scheme.names, first)} if is_assumed else {}
    taken |= {n: name for n, name in stated.items() if name in scheme.names}
    best = {n: scheme.names[order[scheme.names.index(name)]] for n, name in taken.items()}
    agreeing = int(confusion[usual, usual].sum()), int(confusion[usual, order].sum())
    return _Numbered(target, is_assumed, taken, best, int(confusion.sum()), agreeing)


def _has_order(finding: Finding) -> bool:
    return finding.kind is FindingKind.CLASS_ORDER


def _takes_numbers(side: SampledSide, unnamed: ClassScheme | None) -> bool:
    """Return whether classes of a side are numbers that at most the aliases of the cohort name.

    ``unnamed`` are the classes without these aliases, None if there are none.
    """
    if any(map(_has_order, side.findings)):
        return True
    if unnamed is None or side.masks is None:
        return False
    try:
        masks = load_masks(side.files, unnamed, shape=side.shape, team=side.team)
    except (PanopticError, OSError):
        return False
    return any(map(_has_order, masks.findings))


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
