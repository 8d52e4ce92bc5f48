"""All regions of one side of a cohort, written in another format."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from napari_panoptic.common.errors import PanopticError, SettingsError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import encodable, english_list
from napari_panoptic.io.files.replacing import set_usual_mode, writing
from napari_panoptic.io.formats.format import Format, LoadedMasks, Objects
from napari_panoptic.io.formats.registry import form_of, known_forms
from napari_panoptic.io.formats.saving import check_not_in_cohort, without_erased
from napari_panoptic.nuclei.regions.doubts import (
    no_prediction,
)
from napari_panoptic.nuclei.regions.reading import (
    load_prediction,
    load_reference,
    prediction_files,
)
from napari_panoptic.values.cohort import Cohort, Region, Source
from napari_panoptic.values.reading import HELD_UP_TO_PX
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side


@dataclass(frozen=True)
class Conversion:
    """The objects to convert, and the format to write."""

    #: The cohort.
    cohort: Cohort
    #: Whose predictions; None for the annotation.
    team: str | None
    #: The format to write.
    form: Format
    #: How objects are recovered from colour-coded masks.
    settings: EvaluationSettings
    #: Which format of the predictions to read; None for the usual one.
    source: Source | None = None
    #: Whether the folder may contain files; those with the names of new ones are replaced.
    replace_files: bool = False


def form_to_write(name: str) -> Format:
    """Return a format that can be written.

    Raises
    ------
    SettingsError
        Naming those that can.
    """
    form = form_of(name)
    if form is None or (form.write is None and form.write_all is None):
        known = [f.name for f in known_forms().values() if f.write or f.write_all]
        raise SettingsError(
            f"there is no format '{name}' that can be written; there are {english_list(known)}"
        )
    return form


def convert(work: Conversion, output: Path) -> list[Finding]:
    """Write every region of a team, or of the annotation, into a folder.

    Either all is written or, after an error, nothing; files of the cohort are
    never replaced.

    Parameters
    ----------
    work
        What to write.
    output
        The folder, created if need be; new or empty unless files are replaced.

    Returns
    -------
    list of Finding
        The regions left out, what was odd in the files that were read, and what
        the format cannot express.

    Raises
    ------
    PanopticError
        If a region cannot be read or written, if there is nothing to write, or
        if existing files are in the way.
    """
    _check_free(output, work.replace_files)
    findings: list[Finding] = []
    regions = _regions(work, findings)
    if not regions:
        raise PanopticError(_why_nothing(work), path=work.cohort.root)
    with writing(output, "the files"):
        output.parent.mkdir(parents=True, exist_ok=True)
        part = Path(mkdtemp(dir=output.parent, prefix=f".{output.name[:40]}.", suffix=".part"))
        try:
            findings += _write(work, regions, part, findings)
            _move(part, output, work.cohort)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return findings


def _why_nothing(work: Conversion) -> str:
    if work.team is not None:
        return f"there is nothing of team '{work.team}' to convert"
    why = "there is nothing of the annotation to convert"
    if teams := work.cohort.team_names:
        why += f"; name a team for its predictions: {english_list(teams)}"
    return why


def _check_free(output: Path, replace_files: bool) -> None:
    if output.is_file():
        raise PanopticError("this is a file; choose a folder", path=output)
    if not replace_files and output.is_dir() and any(output.iterdir()):
        raise PanopticError(
            "the folder is not empty, and nothing was written; choose another, or --force to "
            "replace files of the same names",
            path=output,
        )


def _regions(work: Conversion, findings: list[Finding]) -> list[Region]:
    """Return the regions that have something to convert; report the others."""
    regions = []
    for region in work.cohort.regions:
        if work.team is None:
            if region.reference is not None:
                regions.append(region)
            continue
        if prediction_files(work.cohort, region.name, work.team, work.source) is None:
            findings.append(no_prediction(region, work.team, work.source))
        else:
            regions.append(region)
    return regions


def _write(
    work: Conversion, regions: list[Region], folder: Path, findings: list[Finding]
) -> tuple[Finding, ...]:
    everything = (_objects(work, region, findings) for region in regions)
    if work.form.write_all is not None:
        return work.form.write_all(folder, len(regions), everything)
    for objects in everything:
        if work.form.write is not None:
            work.form.write(folder / f"{objects.region}{work.form.endings[0]}", objects)
            findings.extend(work.form.losses(objects))
    return ()


def _objects(work: Conversion, region: Region, findings: list[Finding]) -> Objects:
    """Read a region; raise if it cannot be read, lest it be written as empty."""
    cohort, team = work.cohort, work.team
    reference = load_reference(cohort, region, work.settings, held_up_to_px=HELD_UP_TO_PX)
    masks: LoadedMasks | None
    if team is None:
        masks, found = reference.masks, reference.findings
    else:
        masks, found = load_prediction(
            cohort, region, team, reference.shape, work.settings, work.source
        )
    if masks is None:
        reason = next((f.message for f in found if f.kind is FindingKind.UNREADABLE), "unreadable")
        raise PanopticError(
            f"the region cannot be read, and nothing was written: {reason}", region=region.name
        )
    findings.extend(found)
    ambiguous = masks.ambiguous if team is None else None
    if ambiguous is None and team is None and work.replace_files:
        # Overwrite the area of an earlier conversion.
        ambiguous = np.zeros(masks.labels.shape, np.bool_)
    return Objects(
        labels=without_erased(masks.labels),
        side=Side.REFERENCE if team is None else Side.PREDICTION,
        region=encodable(region.name),
        team=encodable(team or ""),
        ambiguous=ambiguous,
        scheme=cohort.scheme,
        mpp=reference.mpp,
        patient=encodable(region.patient),
    )


def _move(part: Path, output: Path, cohort: Cohort) -> None:
    """Move the complete files to their place."""
    written = sorted(part.iterdir())
    targets = {output.resolve() / path.name for path in written}
    for path in cohort.files:
        if targets & {path, *path.parents}:
            raise PanopticError(
                f"{path.name} is a file of the cohort, which stays as it is; choose another folder",
                path=output,
            )
    check_not_in_cohort(sorted(targets), cohort.root)
    set_usual_mode(part)
    if not output.is_dir() or not any(output.iterdir()):
        part.replace(output)
        return
    for path in written:
        target = output / path.name
        if target.is_dir():
            shutil.rmtree(target)
        path.replace(target)
