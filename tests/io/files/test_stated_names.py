"""Names of regions and patients in files: none is empty or leads out of a folder."""

from __future__ import annotations

import pytest

from napari_panoptic.io.files.stated_names import checked_name


@pytest.mark.parametrize("name", ["a", "0001", "a b", "a/b", "a\\b", "..a", "染色", "a.", ".a"])
def test_names_stay_as_they_are(name: str) -> None:
    assert checked_name(name, "a region") == name


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", "\u2003", ".", "/", "..", "a/..", "../a", "/a", "a\0", "\ud800"),
        *("..\\a", "\\a", "C:a", "C:\\a", "\\\\server\\share\\a"),
    ],
)
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(ValueError, match="expected the name of a region, found '") as caught:
        checked_name(name, "a region")
    assert str(caught.value).isprintable()
