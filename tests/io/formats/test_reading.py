"""Tests of the place of what readers refuse and note."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.io.formats.reading import here, note, reading, refuse

A, B = Path("a.mat"), Path("b.png")


def odd(path: Path | None = None) -> Finding:
    return Finding(FindingKind.FALLBACK, "odd", path=path)


def test_what_lacks_a_place_gets_it() -> None:
    with reading(A, region="R_1", team="T") as found:
        note(odd())
        with reading(B):
            note(odd(), odd(A))
    assert [(f.path, f.region, f.team) for f in found] == [(path, "R_1", "T") for path in (A, B, A)]


def test_a_refusal_names_the_innermost_file_and_the_region() -> None:
    with (
        pytest.raises(UnreadableFileError) as caught,
        reading(A, region="R_1"),
        reading(B),
    ):
        raise refuse("wrong", 5)
    assert (caught.value.path, caught.value.region, caught.value.object_id) == (B, "R_1", 5)


def test_a_file_is_checked_and_errors_of_decoders_are_refusals(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    missing = "expected a mask, but there is no such file"
    with pytest.raises(UnreadableFileError, match=missing), reading(path, "a mask"):
        pytest.fail("read in spite of that")
    path.write_bytes(b"1")
    with (
        pytest.raises(UnreadableFileError, match="expected a mask") as caught,
        reading(path, "a mask", region="R_1"),
    ):
        raise ValueError("bad header")
    assert (caught.value.path, caught.value.region) == (path, "R_1")


def test_windows_that_other_threads_read_later_have_the_place() -> None:
    with reading(A, region="R_1"):
        place = here()

    def later() -> None:
        with place.again():
            raise refuse("wrong")

    with ThreadPoolExecutor(1) as pool:
        error = pool.submit(later).exception()
    assert isinstance(error, UnreadableFileError)
    assert (error.path, error.region) == (A, "R_1")


def test_nothing_is_noted_where_nothing_is_read() -> None:
    with pytest.raises(LookupError):
        note(odd())
