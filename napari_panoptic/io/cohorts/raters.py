"""A folder becomes a cohort of several raters: cases, structures, raters, teams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from napari_panoptic.common.errors import CohortError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.cohorts.description import DESCRIPTION, description_in
from napari_panoptic.io.cohorts.discovery import (
    IMAGE,
    NO_FORMAT,
    PREDICTIONS,
    REFERENCE,
    FoundFile,
    cohort_name,
    opened_folder,
    unread,
)
from napari_panoptic.io.cohorts.layouts import ONLY_TEAM
from napari_panoptic.io.cohorts.patterns import Listing, missing, natural_key
from napari_panoptic.io.cohorts.raters_layout import (
    QubiqFile,
    RatersLayout,
    qubiq_files,
    read_raters_description,
)
from napari_panoptic.io.formats.labels.label_images import sidecars_beside
from napari_panoptic.values.cohort import MaskFiles, Source
from napari_panoptic.values.raters import RatedCase, RatedCohort, RaterFile

_ALL_CLASSES = ""
_NO_IMAGE = "no image: evaluated, and shown on black"
_EXPECTED = (
    "expected either the folders of QUBIQ, 'CASE/image.nii.gz' with 'CASE/STRUCTURE_seg01.nii.gz' "
    f"and so on and 'TEAM/CASE/STRUCTURE.nii.gz', or a file {DESCRIPTION} that says where the "
    "files lie (see docs/reference/raters.md)"
)


_Place = tuple[str, str, str]
"""Case, structure (of an image: modality), and rater or team."""
_Files = Mapping[str, Mapping[_Place, FoundFile]]
"""The preferred file of each place, by role. Names are compared exactly."""


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
        layout, files, findings = _found_in(listing)
    return _cohort(listing, layout, files, findings)


def _found_in(listing: Listing) -> tuple[RatersLayout, _Files, list[Finding]]:
    root = listing.root
    try:
        description = description_in(listing)
        layout = RatersLayout() if description is None else read_raters_description(description)
        rows, findings = _from_qubiq(listing) if layout.is_qubiq else (_rows(listing, layout), [])
        files: dict[str, dict[_Place, FoundFile]] = {IMAGE: {}, REFERENCE: {}, PREDICTIONS: {}}
        for row in rows:
            files[row.role].setdefault((row.region, row.class_name, row.team), row)
    except OSError as error:
        raise CohortError(f"the folder cannot be read ({error.strerror})", path=root) from error
    if not files[REFERENCE]:
        raise CohortError(f"there is no rater's mask in this folder; {_EXPECTED}", path=root)
    return layout, files, findings


def _cohort(
    listing: Listing, layout: RatersLayout, files: _Files, findings: Sequence[Finding]
) -> RatedCohort:
    structures = _in_order(structure for _, structure, _ in files[REFERENCE])
    if layout.scheme is not None:
        structures = tuple(name for name in layout.scheme.names if name in structures)
    images: dict[str, dict[str, Path]] = defaultdict(dict)
    for (case, modality, _), row in files[IMAGE].items():
        images[case][modality] = row.path
    masks: dict[str, dict[str, dict[str, RaterFile]]] = defaultdict(lambda: defaultdict(dict))
    for case, structure, rater in sorted(files[REFERENCE], key=lambda place: natural_key(place[2])):
        row = files[REFERENCE][case, structure, rater]
        masks[case][structure][rater] = _rater_file(row, listing)
    cases = tuple(
        RatedCase(
            name,
            images.get(name, {}),
            {own: masks[name][own] for own in structures if own in masks[name]},
        )
        for name in _in_order(case for case, _, _ in files[REFERENCE])
    )
    wanted = {(case.name, structure) for case in cases for structure in case.masks}
    maps = {
        (team, case, structure): _rater_file(row, listing)
        for (case, structure, team), row in files[PREDICTIONS].items()
        if (case, structure) in wanted
    }
    teams = _in_order(team for _, _, team in files[PREDICTIONS])
    without = [case.name for case in cases if not case.images]
    return RatedCohort(
        name=cohort_name(layout.name, listing),
        root=listing.root,
        structures=structures,
        raters=_in_order(rater for _, _, rater in files[REFERENCE]),
        teams=teams,
        cases=cases,
        predictions=maps,
        scheme=layout.scheme,
        settings=layout.settings,
        findings=(
            *unread(listing),
            *findings,
            *_rater_findings(cases, files[REFERENCE]),
            *_extra_maps(files[PREDICTIONS], wanted),
            *_missing_maps(teams, cases, maps),
            *([missing("case", without, _NO_IMAGE)] if without else []),
        ),
    )


def _rater_file(row: FoundFile, listing: Listing) -> RaterFile:
    if row.source == NO_FORMAT:
        return RaterFile(row.path)
    paths = {_ALL_CLASSES: (row.path, *row.further)}
    return RaterFile(row.path, MaskFiles(row.source, paths, within=listing.within))


def _in_order(names: Iterator[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names), key=natural_key))


# --- by patterns ---------------------------------------------------------------------------------


def _rows(listing: Listing, layout: RatersLayout) -> Iterator[FoundFile]:
    classes = () if layout.scheme is None else layout.scheme.names
    sides = (
        (IMAGE, {None: layout.image}, "modality", ("",)),
        (REFERENCE, layout.raters, "structure", classes),
        (PREDICTIONS, layout.predictions, "structure", classes),
    )
    for role, forms, key, every in sides:
        for source, patterns in forms.items():
            for match in chain.from_iterable(pattern.files(listing) for pattern in patterns):
                fields, own = match.fields, source or NO_FORMAT
                # A table of classes beside a label image belongs to it.
                beside = tuple(sidecars_beside(match.path))[:1] if own == Source.LABELS else ()
                for table in beside:
                    listing.admits(table)
                team = fields.get("rater", fields.get("team", ONLY_TEAM))
                # A file that names no structure may hold objects of every class.
                for name in (fields[key],) if key in fields else every:
                    yield FoundFile(
                        match.path,
                        role,
                        fields["case"],
                        team=team,
                        source=own,
                        class_name=name,
                        further=beside,
                    )


# --- by the names of QUBIQ -----------------------------------------------------------------------


def _from_qubiq(listing: Listing) -> tuple[list[FoundFile], list[Finding]]:
    files = qubiq_files(listing)
    data_sets = {_last(file) for file, _, _ in files.masks}
    several = len(data_sets) > 1

    def named(file: QubiqFile, name: str) -> str:
        return f"{_last(file)}/{name}" if several and _last(file) else name

    def row(file: QubiqFile, role: str, case: str, name: str, team: str) -> FoundFile:
        return FoundFile(file.path, role, case, team=team, class_name=name)

    masks = [
        row(file, REFERENCE, named(file, file.case), named(file, structure), rater)
        for file, structure, rater in files.masks
    ]
    folders = {file.path.parent for file, _, _ in files.masks}
    images = [
        row(file, IMAGE, named(file, file.case), modality, "")
        for file, modality in files.images
        if file.path.parent in folders
    ]
    known: dict[tuple[str, ...], set[tuple[str, str]]] = defaultdict(set)
    for mask in masks:
        place = mask.region, mask.class_name
        known[tuple(name.rpartition("/")[2] for name in place)].add(place)
    places = {
        file: _map_place(file, structure, data_sets, several, known[file.case, structure])
        for file, structure in files.maps
    }
    maps = [
        row(file, PREDICTIONS, place[1], place[2], place[0])
        for file, place in places.items()
        if place is not None
    ]
    findings = [*_twice(masks), *_twice(maps)]
    if loose := [file.path for file, place in places.items() if place is None]:
        names = english_list([path.relative_to(listing.root).as_posix() for path in loose], limit=5)
        findings.append(
            Finding(
                FindingKind.EXTRA,
                f"{counted(len(loose), 'file')} of no known case and structure, not used: {names}",
                path=loose[0] if len(loose) == 1 else None,
                count=len(loose),
            )
        )
    return [*masks, *images, *maps], findings


def _map_place(
    file: QubiqFile,
    structure: str,
    data_sets: set[str],
    several: bool,
    known: set[tuple[str, str]],
) -> tuple[str, str, str] | None:
    """Return the team, case and structure of a map, or None if it fits none.

    The folders above its case are those of team and data set, if any. ``known`` are the annotated
    cases and structures of these names in all data sets.
    """
    above = list(file.folders)
    data_set = above.pop() if above and above[-1] in data_sets else ""
    team = above[-1] if above else ONLY_TEAM
    fitting = [
        (case, own)
        for case, own in known
        if (case, own) == (f"{data_set}/{file.case}", f"{data_set}/{structure}")
        or (not several and (case, own) == (file.case, structure))
        or (not data_set and "/" in case and "/" in own)
    ]
    # If several data sets have such a case, the folder must name one.
    return (team, *fitting[0]) if len(fitting) == 1 else None


def _last(file: QubiqFile) -> str:
    return file.folders[-1] if file.folders else ""


def _twice(rows: Sequence[FoundFile]) -> Iterator[Finding]:
    """Report files of places that have one already."""
    used: dict[_Place, FoundFile] = {}
    for row in rows:
        first = used.setdefault((row.region, row.class_name, row.team), row)
        if first is not row:
            yield Finding(
                FindingKind.EXTRA,
                f"'{row.path.name}' is there twice for the same case and structure; "
                f"'{first.path}' is used",
                path=row.path,
            )


# --- missing files -------------------------------------------------------------------------------


def _rater_findings(cases: Sequence[RatedCase], masks: Iterable[_Place]) -> Iterator[Finding]:
    """Report cases without a mask of a rater who annotated the structure in other cases."""
    raters: dict[str, set[str]] = defaultdict(set)
    for _, structure, rater in masks:
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


def _extra_maps(maps: Iterable[_Place], wanted: set[tuple[str, str]]) -> Iterator[Finding]:
    by_team: dict[str, list[str]] = defaultdict(list)
    for case, structure, team in maps:
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
