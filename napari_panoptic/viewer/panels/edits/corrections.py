"""The corrected annotation of all regions, written to a folder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.io.files.fingerprints import file_fingerprints
from napari_panoptic.io.formats.own_format import why_not_writable
from napari_panoptic.io.formats.registry import form_of
from napari_panoptic.live.autosaves import EditedPart
from napari_panoptic.live.session import Session
from napari_panoptic.live.working_copies import EditedAnnotation
from napari_panoptic.report.writing import provenance, write_set
from napari_panoptic.review.corrected_files import (
    CORRECTIONS,
    CORRECTIONS_RECORD,
    CorrectionsWriter,
    check_folder,
    complete_folder,
    places_to_draw,
    written_files,
)
from napari_panoptic.review.mended_annotation import (
    DoneMend,
    mended_annotation,
    noted_places,
    pixels_lost,
)
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.editing.live_edits import LiveEdits
from napari_panoptic.viewer.editing.object_actions import ObjectActions
from napari_panoptic.viewer.kit.questions import folder_from
from napari_panoptic.viewer.kit.shown import show_error, show_info, show_warning
from napari_panoptic.viewer.panels.edits.files import STILL_UNSAVED, EditsFiles
from napari_panoptic.viewer.panels.edits.panel import OWN

NOTHING_TO_SAVE = "The annotation is as in the files: nothing to save."

PREDICTIONS_LEFT_OUT = "Edits of predictions are not part of it: save them by “Save as…” in Edits"


class CorrectedAnnotations:
    """Saves the annotations of all regions in which something was mended or drawn.

    Parameters
    ----------
    session
        The live state.
    edits
        The edits.
    mending
        The mends, and who made them.
    files
        Runs what writes.
    """

    def __init__(
        self, session: Session, edits: LiveEdits, mending: ObjectActions, files: EditsFiles
    ) -> None:
        self._session, self._edits, self._mending = session, edits, mending
        self._files = files

    def save(self, form: str = OWN) -> None:
        """Ask for a folder, and write the corrected annotation there."""
        problem = self._problem(form)
        if problem:
            show_info(problem)
            return
        folder = folder_from(self._files.panel, "Corrected annotation: a new or empty folder")
        if folder is not None:
            self.save_to(folder, form)

    def save_to(self, folder: Path, form: str = OWN) -> None:
        """Write the corrected annotation to a folder, and say when it is saved."""
        session = self._session
        try:
            check_folder(folder)
        except PanopticError as error:
            show_error(str(error))
            return
        found, done = session.drawn_annotations(), tuple(self._mending.done)
        reading = session.settings, session.source
        write = partial(_write, folder, session.cohort, *reading, form, found, done)
        regions = [edited.region.name for edited in found]
        take = partial(self._take, folder, regions, self._edits.revision)
        self._files.start(write, take, f"Saving {folder.name}…")

    def _problem(self, form: str) -> str:
        """Return why nothing can be saved; empty if it can."""
        if not self._session.has_drawn_annotations:
            return NOTHING_TO_SAVE
        root = self._session.cohort.root
        for edited in self._session.drawn_annotations() if form == OWN else ():
            files = edited.region.reference
            reason = "" if files is None else why_not_writable(files, root)
            if reason:
                return (
                    f"The annotation of {edited.region.name} cannot be written in its own format: "
                    f"{reason}. Choose another format."
                )
        return ""

    def _take(
        self, folder: Path, regions: Sequence[str], before: int, written: CorrectionsWriter
    ) -> None:
        """Report written files; parts not edited since the revision `before` are saved."""
        n, of = len(written.rows), len(written.differences)
        said = f"{counted(n, 'correction')} in {counted(of, 'region')} saved in {folder}"
        inexact = {each["region"] for each in written.differences if each["differing_px"]}
        if inexact:
            names = english_list(sorted(inexact))
            show_warning(f"{said}, but not all pixels of {names} are as drawn. {STILL_UNSAVED}")
        elif any(part.side is Side.PREDICTION for part in self._edits.unsaved):
            show_info(f"{said}. {PREDICTIONS_LEFT_OUT}")
        else:
            show_info(said)
        if self._files.is_closed:
            return
        parts = [
            EditedPart(region, side)
            for region in regions
            if region not in inexact
            for side in (Side.REFERENCE, None)
        ]
        self._edits.note_saved(at for at in parts if self._edits.last_change(at) <= before)


def _write(
    folder: Path,
    cohort: Cohort,
    settings: EvaluationSettings,
    source: Source | None,
    form: str,
    edited_annotations: Sequence[EditedAnnotation],
    done: Sequence[DoneMend],
) -> CorrectionsWriter:
    """Write the annotations of regions, with the table and the record."""
    form_to_write = None if form == OWN else form_of(form)
    places, pixels = [], []
    with complete_folder(folder) as part:
        writer = CorrectionsWriter(cohort, settings, source, form_to_write, part)
        for edited in edited_annotations:
            mends = [each for each in done if each.region == edited.region.name]
            annotation = mended_annotation(edited, mends)
            writer.add(annotation)
            places += places_to_draw(edited.region, annotation.corrections)
            pixels += pixels_lost(edited.region.name, mends)
        written = {edited.region.name for edited in edited_annotations}
        for name in dict.fromkeys(each.region for each in done if each.region not in written):
            noted = noted_places(cohort.region(name), done)
            writer.add(noted)
            places += places_to_draw(noted.region, noted.corrections)
        writer.describe()
        paths = [
            path
            for edited in edited_annotations
            if edited.region.reference is not None
            for path in edited.region.reference.all_paths
        ]
        record = {
            "settings": {"to": form or "own"},
            "counts": {
                "corrections": len(writer.rows),
                "files": len(writer.files),
                "differing_px": sum(each["differing_px"] for each in writer.differences),
            },
            "to_draw": places,
            "shared_pixels": pixels,
            "files": writer.differences,
            **provenance((), file_fingerprints(paths, cohort.root)),
            "written": written_files(part),
        }
        frame = CORRECTIONS.frame(writer.rows)
        write_set(part, {CORRECTIONS.file: frame}, (CORRECTIONS_RECORD, record))
    return writer
