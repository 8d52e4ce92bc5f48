"""Doubts about names: files that fit no region, and classes that the cohort does not have."""

from __future__ import annotations

import difflib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.inspection.values import REFERENCE, Doubt, Fix
from napari_panoptic.io.cohorts.description import IGNORED
from napari_panoptic.io.cohorts.folder_scan import affixes_of
from napari_panoptic.io.cohorts.layouts import ONLY_TEAM, Layout, Patterns
from napari_panoptic.io.cohorts.patterns import Listing, Pattern
from napari_panoptic.values.cohort import MOST_CLASSES, ClassScheme, Cohort, Rgb

ALIKE = 0.6
"""Least similarity at which one name counts as a spelling of the other."""
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
    for name, count in counts.items():
        yield _class_doubt(scheme, name, count, list(sides[name]))


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


def _class_doubt(scheme: ClassScheme, name: str, count: int, sides: Sequence[str]) -> Doubt:
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
        colour = next((c for c in _COLOURS if c not in scheme.colours), _COLOURS[0])
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
