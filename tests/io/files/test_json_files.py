"""Contents of files are parsed once, until the file changes or others need the room."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from napari_panoptic.common.cache import ByteCache
from napari_panoptic.io.files import json_files
from napari_panoptic.io.files.json_files import kept_until_changed


@pytest.fixture
def parsed() -> list[str]:
    return []


def test_many_small_files_are_parsed_once_each(tmp_path: Path, parsed: list[str]) -> None:
    """With a fifth COCO file, each region parsed every file again."""

    @kept_until_changed
    def content(path: Path, more: int = 0) -> str:
        parsed.append(path.name)
        return path.read_text() + str(more)

    paths = [tmp_path / f"{n}.json" for n in range(20)]
    for path in paths:
        path.write_text(path.stem)
    for _ in range(3):
        assert [content(path) for path in paths] == [f"{path.stem}0" for path in paths]
    assert len(parsed) == 20
    assert content(paths[0], more=1) == "01"
    assert content(paths[0], 2) == "02"


def test_a_file_that_changed_is_parsed_again(tmp_path: Path, parsed: list[str]) -> None:
    @kept_until_changed
    def content(path: Path) -> str:
        parsed.append(path.read_text())
        return parsed[-1]

    path = tmp_path / "a.json"
    path.write_text("a")
    assert content(path) == "a"
    path.write_text("b")
    os.utime(path, ns=(1, 1))
    assert [content(path), content(path)] == ["b", "b"]
    assert parsed == ["a", "b"]


def test_the_least_recently_used_are_dropped(
    tmp_path: Path, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_files, "PARSED", ByteCache(25, keeps_last=True))

    @kept_until_changed
    def content(path: Path) -> int:
        parsed.append(path.name)
        return path.stat().st_size

    paths = {name: tmp_path / name for name in "abcd"}
    for name, path in paths.items():
        path.write_text("x" * (100 if name == "d" else 10))
    for name in "ababcad":
        content(paths[name])
    assert parsed == list("abcad")
    content(paths["d"])  # kept, however large it is
    assert parsed == list("abcad")
    content(paths["a"])
    assert parsed == list("abcada")


def test_errors_are_not_kept(tmp_path: Path, parsed: list[str]) -> None:
    @kept_until_changed
    def content(path: Path) -> str:
        parsed.append(path.name)
        raise ValueError("damaged")

    (tmp_path / "a").touch()
    for _ in range(2):
        with pytest.raises(ValueError, match="damaged"):
            content(tmp_path / "a")
    assert len(parsed) == 2
