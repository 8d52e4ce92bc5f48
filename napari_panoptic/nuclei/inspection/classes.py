"""Doubts about classes that files name and the cohort does not have."""

from __future__ import annotations

import difflib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import english_list
from napari_panoptic.io.cohorts.description import IGNORED
from napari_panoptic.nuclei.inspection.values import REFERENCE, Doubt, Fix
from napari_panoptic.nuclei.values.cohort import MOST_CLASSES, ClassScheme, Rgb

ALIKE = 0.6
"""Least similarity at which one name counts as a spelling of the other."""
IGNORE, NEW = "ignore", "new"
"""Choices beside the names of classes."""
_COLOURS: tuple[Rgb, ...] = (
    *((255, 128, 0), (128, 0, 255), (0, 255, 255), (255, 0, 255)),
    *((128, 255, 0), (0, 128, 255), (255, 0, 128), (128, 128, 128)),
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
        yield _doubt(scheme, name, count, list(sides[name]))


def _doubt(scheme: ClassScheme, name: str, count: int, sides: Sequence[str]) -> Doubt:
    known = [*scheme.names, *([scheme.ambiguous] if scheme.ambiguous else [])]
    alias = {each: Fix(each, f"is {each}", ((("aliases", name), each),)) for each in known}
    called = f"of the class '{name}', which the cohort does not have," if name else "without class"
    message = f"{count} object(s) or file(s) {called} are left out, in {english_list(sides)}."
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
