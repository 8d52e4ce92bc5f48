"""Single settings are written into a cohort.toml, and all else stays as the user wrote it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from napari_panoptic.common.errors import CohortError
from napari_panoptic.io.cohorts.description_edits import save_description, with_setting

TEXT = """# mine
name = "x"  # a name

[classes]
"A b" = [1, 2, 3]

[aliases]  # spellings

# where
[files]
image = "{region}.png"
reference.labels = [
    "a/{region}.tif",  # first
    "b/{region}.tif",
]
predictions.geojson = "{team}/{region}.geojson"
predictions.vertices = "pixel-edges"
"""

Key = tuple[str, ...]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("key", "value", "result", "lost"),
    [
        (("aliases", "T: +"), "A b", "A b", 0),
        (("classes", "New"), [9, 9, 9], [9, 9, 9], 0),
        (("masks", "border"), [[0, 0, 1]], [[0, 0, 1]], 0),
        (("files", "mpp"), 0.25, 0.25, 0),
        (("files", "predictions", "scale"), {"a.b": 2}, {"a.b": 2}, 0),
        (("files", "reference", "labels"), ["c/{region}.tif"], ["c/{region}.tif"], 4),
        (
            ("files", "predictions", "vertices"),
            {"cv": "pixel-centres"},
            {"": "pixel-edges", "cv": "pixel-centres"},
            1,
        ),
        (("name",), 'y "z" ü', 'y "z" ü', 1),
    ],
)
def test_a_setting_is_changed_and_every_other_line_stays(
    key: Key, value: Any, result: Any, lost: int, ending: str
) -> None:
    before = TEXT.replace("\n", ending)
    after = with_setting(before, key, value)
    expected = tomllib.loads(before)
    table = expected
    for name in key[:-1]:
        table = table.setdefault(name, {})
    table[key[-1]] = result
    assert tomllib.loads(after) == expected
    kept = set(after.splitlines(keepends=True))
    assert sum(line not in kept for line in before.splitlines(keepends=True)) == lost
    assert with_setting(after, key, value) == after


def test_a_team_is_set_once_however_it_is_spelt() -> None:
    key = ("files", "predictions", "vertices")
    text = with_setting(TEXT, key, {"CV": "pixel-centres"})
    table = tomllib.loads(with_setting(text, key, {"cv": "pixel-edges"}))
    assert table["files"]["predictions"]["vertices"] == {"": "pixel-edges", "cv": "pixel-edges"}


def test_a_setting_can_go_into_a_table_on_one_line() -> None:
    text = with_setting('files = { image = "a" }\n', ("files", "reference", "labels"), "b")
    assert tomllib.loads(text) == {"files": {"image": "a", "reference": {"labels": "b"}}}


def test_a_value_in_place_of_a_table_is_refused() -> None:
    with pytest.raises(CohortError, match="must be a table"):
        with_setting("files = 1\n", ("files", "reference", "labels"), "b")


def test_a_new_line_leaves_the_comment_of_the_next_table_where_it_is() -> None:
    text = with_setting(TEXT, ("aliases", "New"), "A b")
    assert 'spellings\nNew = "A b"\n\n# where\n[files]\n' in text


def test_one_team_of_several_lines_is_set_where_it_stands() -> None:
    lines = '[files]\nimage = "a"\npredictions.scale.{} = {}  # mine\n[classes]\n'
    key = ("files", "predictions", "scale")
    assert with_setting(lines.format("One", 2), key, {"One": 4}) == lines.format("One", 4)
    table = tomllib.loads(with_setting(lines.format("One", 2), key, {"one": 4}))
    assert table["files"]["predictions"]["scale"] == {"one": 4}


def test_many_sections_with_the_same_setting_stay() -> None:
    """A search for the line among all of them was cubic: hundreds never ended."""
    patches = "".join(f'[patches.r{n}]\nslide = "s"\nscale = 2.0\n' for n in range(300))
    after = with_setting(f'[files]\nimage = "a"\n{patches}', ("files", "mpp"), 0.5)
    assert after == f'[files]\nimage = "a"\nmpp = 0.5\n{patches}'
    scaled = tomllib.loads(with_setting(after, ("files", "reference", "scale"), 2.0))
    assert scaled["files"]["reference"] == {"scale": 2.0}
    assert scaled["patches"] == tomllib.loads(after)["patches"]


def test_each_replaced_description_is_kept(tmp_path: Path) -> None:
    assert save_description(tmp_path, "a = 1\n") is None
    assert save_description(tmp_path, "a = 1\n") is None
    kept = [save_description(tmp_path, text) for text in ("a = 2\n", "a = 3\n")]
    texts = [path.read_text() for path in kept if path is not None]
    assert texts == ["a = 1\n", "a = 2\n"]
    assert (tmp_path / "cohort.toml").read_text() == "a = 3\n"
