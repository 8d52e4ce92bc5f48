"""A folder becomes a cohort of several raters: cases, structures, raters, teams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from napari_panoptic.common.errors import CohortError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.cohorts.description import DESCRIPTION, description_in
from napari_panoptic.io.cohorts.discovery import cohort_name, opened_folder, unread
from napari_panoptic.io.cohorts.layouts import ONLY_TEAM
from napari_panoptic.io.cohorts.patterns import Listing, missing, natural_key
from napari_panoptic.io.cohorts.raters_layout import (
    QubiqFile,
    RatersLayout,
    RatersPatterns,
    qubiq_files,
    read_raters_description,
)
from napari_panoptic.io.formats.labels.label_images import sidecars_beside
from napari_panoptic.values.cohort import MaskFiles, Source
from napari_panoptic.values.raters import RatedCase, RatedCohort, RaterFile

_ALL_CLASSES = ""
_EXPECTED = (
    "expected either the folders of QUBIQ, 'CASE/image.nii.gz' with 'CASE/STRUCTURE_seg01.nii.gz' "
    f"and so on and 'TEAM/CASE/STRUCTURE.nii.gz', or a file {DESCRIPTION} that says where the "
    "files lie (see docs/reference/raters.md)"
)


@dataclass
class _Found:
    """What was found so far; names as in the files."""

    images: dict[str, dict[str, Path]] = field(default_factory=lambda: defaultdict(dict))
    # (case, structure, rater) and (team, case, structure)
    masks: dict[tuple[str, str, str], RaterFile] = field(default_factory=dict)
    maps: dict[tuple[str, str, str], RaterFile] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def open_raters(folder: str | Path, *, allow_outside: bool = False) -> RatedCohort:
    """Find out which cases, raters and teams a folder holds. No pixels are read.

    Parameters
    ----------
    folder
        The cohort's folder, or its ``cohort.toml``.
    allow_outside
        Whether links that lead out of the folder are followed.

    Returns
    -------
    RatedCohort
        What is missing or extra is in its findings.

    Raises
    ------
    CohortError
        If the folder is missing, is a file, cannot be read, or holds no
        rater's mask; where its ``cohort.toml`` cannot be understood.
    OutsideLinksError
        If that may be so because links out of it were not followed.
    """
    with opened_folder(folder, _EXPECTED, allow_outside=allow_outside) as listing:
        layout, found = _found_in(listing)
    return _cohort(listing, layout, found)


def _found_in(listing: Listing) -> tuple[RatersLayout, _Found]:
    root = listing.root
    try:
        description = description_in(listing)
        layout = RatersLayout() if description is None else read_raters_description(description)
        found = _from_qubiq(listing) if layout.is_qubiq else _from_patterns(listing, layout)
    except OSError as error:
        raise CohortError(f"the folder cannot be read ({error.strerror})", path=root) from error
    if not found.masks:
        raise CohortError(f"there is no rater's mask in this folder; {_EXPECTED}", path=root)
    return layout, found


def _cohort(listing: Listing, layout: RatersLayout, found: _Found) -> RatedCohort:
    structures = _in_order(structure for _, structure, _ in found.masks)
    if layout.scheme is not None:
        structures = tuple(name for name in layout.scheme.names if name in structures)
    names = _in_order(case for case, _, _ in found.masks)
    cases = tuple(_case(name, structures, found) for name in names)
    raters = _in_order(rater for _, _, rater in found.masks)
    teams = _in_order(team for team, _, _ in found.maps)
    wanted = {(case.name, structure) for case in cases for structure in case.masks}
    maps = {key: files for key, files in found.maps.items() if key[1:] in wanted}
    findings = [
        *unread(listing),
        *found.findings,
        *_rater_findings(cases, found),
        *_extra_maps(found, wanted),
        *_missing_maps(teams, cases, maps),
        *_image_findings(cases),
    ]
    return RatedCohort(
        name=cohort_name(layout.name, listing),
        root=listing.root,
        structures=structures,
        raters=raters,
        teams=teams,
        cases=cases,
        predictions=maps,
        scheme=layout.scheme,
        settings=layout.settings,
        findings=tuple(findings),
    )


def _case(name: str, structures: Sequence[str], found: _Found) -> RatedCase:
    masks: dict[str, dict[str, RaterFile]] = {}
    for structure in structures:
        raters = _in_order(r for case, own, r in found.masks if (case, own) == (name, structure))
        if raters:
            masks[structure] = {rater: found.masks[name, structure, rater] for rater in raters}
    return RatedCase(name, dict(found.images.get(name, {})), masks)


def _in_order(names: Iterator[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names), key=natural_key))


# --- by patterns ---------------------------------------------------------------------------------


def _from_patterns(listing: Listing, layout: RatersLayout) -> _Found:
    found = _Found()
    for pattern in layout.image:
        for match in pattern.files(listing):
            own = found.images[match.fields["case"]]
            own.setdefault(match.fields.get("modality", ""), match.path)
    classes = () if layout.scheme is None else layout.scheme.names
    for fields, files in _matched(listing, layout.raters):
        for structure in _structures_in(fields, classes):
            found.masks.setdefault((fields["case"], structure, fields["rater"]), files)
    for fields, files in _matched(listing, layout.predictions):
        team = fields.get("team", ONLY_TEAM)
        for structure in _structures_in(fields, classes):
            found.maps.setdefault((team, fields["case"], structure), files)
    return found


def _structures_in(fields: Mapping[str, str], classes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the one structure that a file names, or every class that it may hold objects of."""
    return (fields["structure"],) if "structure" in fields else classes


def _matched(
    listing: Listing, forms: Mapping[Source | None, RatersPatterns]
) -> Iterator[tuple[Mapping[str, str], RaterFile]]:
    for source, patterns in forms.items():
        for pattern in patterns:
            for match in pattern.files(listing):
                yield match.fields, _one_file(match.path, source, listing)


def _one_file(path: Path, source: Source | None, listing: Listing) -> RaterFile:
    """Name a file; a table of classes beside a label image belongs to it."""
    if source is None:
        return RaterFile(path)
    beside = tuple(sidecars_beside(path))[:1] if source == Source.LABELS else ()
    for table in beside:
        listing.admits(table)
    paths = {_ALL_CLASSES: (path, *beside)}
    return RaterFile(path, MaskFiles(source, paths, within=listing.within))


# --- by the names of QUBIQ -----------------------------------------------------------------------


def _from_qubiq(listing: Listing) -> _Found:
    files, found = qubiq_files(listing), _Found()
    data_sets = {_last(file) for file, _, _ in files.masks}
    several = len(data_sets) > 1

    def named(file: QubiqFile, name: str) -> str:
        return f"{_last(file)}/{name}" if several and _last(file) else name

    for file, structure, rater in files.masks:
        key = (named(file, file.case), named(file, structure), rater)
        if key in found.masks:
            found.findings.append(_twice(file.path, found.masks[key].path))
            continue
        found.masks[key] = _one_file(file.path, None, listing)
    folders = {files.path.parent for files, _, _ in files.masks}
    for file, modality in files.images:
        if file.path.parent in folders:
            found.images[named(file, file.case)].setdefault(modality, file.path)
    known = {(case, structure) for case, structure, _ in found.masks}
    loose: list[Path] = []
    for file, structure in files.maps:
        place = _map_place(file, structure, data_sets, several, known)
        if place is None:
            loose.append(file.path)
        elif place in found.maps:
            found.findings.append(_twice(file.path, found.maps[place].path))
        else:
            found.maps[place] = _one_file(file.path, None, listing)
    if loose:
        names = english_list([path.relative_to(listing.root).as_posix() for path in loose], limit=5)
        found.findings.append(
            Finding(
                FindingKind.EXTRA,
                f"{counted(len(loose), 'file')} of no known case and structure, not used: {names}",
                path=loose[0] if len(loose) == 1 else None,
                count=len(loose),
            )
        )
    return found


def _map_place(
    file: QubiqFile,
    structure: str,
    data_sets: set[str],
    several: bool,
    known: set[tuple[str, str]],
) -> tuple[str, str, str] | None:
    """Return the team, case and structure of a map, or None if it fits none.

    The folders above its case are those of team and data set, if any.
    """
    above = list(file.folders)
    data_set = above.pop() if above and above[-1] in data_sets else ""
    team = above[-1] if above else ONLY_TEAM
    fitting = [
        (case, own)
        for case, own in known
        if (case, own) == (f"{data_set}/{file.case}", f"{data_set}/{structure}")
        or (not several and (case, own) == (file.case, structure))
        or (not data_set and case.endswith(f"/{file.case}") and own.endswith(f"/{structure}"))
    ]
    # If several data sets have such a case, the folder must name one.
    return (team, *fitting[0]) if len(fitting) == 1 else None


def _last(file: QubiqFile) -> str:
    return file.folders[-1] if file.folders else ""


def _twice(path: Path, used: Path) -> Finding:
    return Finding(
        FindingKind.EXTRA,
        f"'{path.name}' is there twice for the same case and structure; '{used}' is used",
        path=path,
    )


# --- missing files -------------------------------------------------------------------------------


def _rater_findings(cases: Sequence[RatedCase], found: _Found) -> Iterator[Finding]:
    """Report cases without a mask of a rater who annotated the structure in other cases."""
    raters: dict[str, set[str]] = defaultdict(set)
    for _, structure, rater in found.masks:
        raters[structure].add(rater)
    for case in cases:
        for structure, own in case.masks.items():
            if lacking := sorted(raters[structure] - set(own), key=natural_key):
                plural = "s" if len(lacking) > 1 else ""
                yield Finding(
                    FindingKind.MISSING,
                    f"case '{case.name}' has no mask of '{structure}' by rater{plural} "
                    f"{english_list(lacking)}: the reference is the mean of the other {len(own)}",
                    region=case.name,
                    class_name=structure,
                    count=len(lacking),
                )
            if len(own) == 1:
                yield Finding(
                    FindingKind.MISSING,
                    f"case '{case.name}' has a mask of '{structure}' by one rater only: there is "
                    f"no spread of raters to compare with",
                    region=case.name,
                    class_name=structure,
                )


def _extra_maps(found: _Found, wanted: set[tuple[str, str]]) -> Iterator[Finding]:
    by_team: dict[str, list[str]] = defaultdict(list)
    for team, case, structure in found.maps:
        if (case, structure) not in wanted:
            by_team[team].append(f"{case}, {structure}")
    for team, places in by_team.items():
        yield Finding(
            FindingKind.EXTRA,
            f"{counted(len(places), 'prediction')} of team '{team}' for what no rater annotated, "
            f"not used: {english_list(places)}",
            team=team,
            count=len(places),
        )


def _missing_maps(
    teams: Sequence[str],
    cases: Sequence[RatedCase],
    maps: Mapping[tuple[str, str, str], RaterFile],
) -> Iterator[Finding]:
    for team in teams:
        lacking = [
            f"{case.name}, {structure}"
            for case in cases
            for structure in case.masks
            if (team, case.name, structure) not in maps
        ]
        if lacking:
            yield Finding(
                FindingKind.MISSING,
                f"team '{team}' has no prediction for {counted(len(lacking), 'structure')}, "
                f"treated as background everywhere: {english_list(lacking)}",
                team=team,
                count=len(lacking),
            )


def _image_findings(cases: Sequence[RatedCase]) -> Iterator[Finding]:
    without = [case.name for case in cases if not case.images]
    if without:
        text = "no image: evaluated, and shown on black"
        yield missing("case", without, text)
