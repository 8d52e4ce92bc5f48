"""Formats made from a function that reads outlines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from napari_panoptic.common.progress import StoppedError
from napari_panoptic.io.formats.polygons import polygon_format as tested
from napari_panoptic.io.formats.polygons.outline import Outline, OutlineFile
from napari_panoptic.io.formats.polygons.polygon_format import OutlineReader, polygon_format
from napari_panoptic.values.cohort import MONUSAC_CLASSES

SQUARE = [(1.0, 1.0), (3.0, 1.0), (3.0, 3.0), (1.0, 3.0)]


def test_a_file_can_be_cancelled_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tested, "BATCH", 2)
    path = tmp_path / "a.squares"
    path.write_text("squares")
    yielded: list[int] = []

    def read(_file: OutlineFile) -> Iterator[Outline]:
        for number in range(1, 8):
            yielded.append(number)
            yield Outline([SQUARE], "Epithelial", number)

    form = polygon_format(
        OutlineReader(read), name="squares", title="squares", endings=(".squares",)
    )
    assert form.outlines is not None
    told: list[tuple[int, int]] = []

    def stop_at_the_third(done: int, total: int) -> None:
        told.append((done, total))
        if len(told) == 3:
            raise StoppedError("stopped")

    with pytest.raises(StoppedError):
        form.outlines(path, MONUSAC_CLASSES, progress=stop_at_the_third)
    assert yielded == [1, 2, 3, 4, 5]  # objects 1, 3 and 5 begin a batch
    told.clear()
    file = form.outlines(path, MONUSAC_CLASSES, progress=lambda *amounts: told.append(amounts))
    assert len(file.polygons) == 7
    assert told == [(0, 1)] * 4
