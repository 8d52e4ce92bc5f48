"""Tables of classes beside label images, CSV and JSON."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.formats.class_tables import ClassTable, read_class_table
from napari_panoptic.io.formats.registry import load_masks, open_masks
from napari_panoptic.values.cohort import ClassScheme
from tests.support.builders import label_files, two_objects, write_tiff

SCHEME = ClassScheme(("a", "b"), ((255, 0, 0), (0, 255, 0)), ambiguous="unclear")

GOOD = {
    "plain.csv": "id,class\n3,a\n1,b\n",
    "semicolons.csv": "id;class\n3;a\n1;unclear\n",
    "tabs.csv": "ID\tClass\n3\ta\n1\tstrange\n",
    "more columns.csv": "x,class,id,y\n9,a,3,z\n9,b,1,z\n",
    "spaces.csv": " id , class \n3, a \n1,b\n",
    "numbers of classes.csv": "id,class\n3,1\n1,2\n4,7\n",
    "numbers with zeros.csv": "id,class\n3,01\n1,2\n",
    "numbers without end.csv": "id,class\n3,3\n1,inf\n",
    "twice.csv": "id,class\n3,a\n3,b\n",
    "blank lines.csv": "id,class\n\n3,a\n\n",
    "quoted.csv": 'id,class\n"3","a, b"\n',
    "quoted header.csv": '"id","class"\n3,a\n',
    "windows.csv": "\ufeffid,class\r\n3,a\r\n1,NA\r\n",
    "no class.csv": "id,class\n3,\n",
    "not positive.csv": "id,class\n0,a\n-3,b\n5,a\n",
    "carriage returns.csv": "id,class\r3,a\r1,b\r",
    "empty.csv": "id,class\n",
    "plain.json": '{"3": "a", "1": "b"}',
    "numbers.json": '{"3": 1, "1": 2}',
    "empty.json": "{}",
}
BAD = {
    "no columns.csv": "a,b\n1,2\n",
    "fractions.csv": "id,class\n1.5,a\n",
    "text.csv": "id,class\nx,a\n",
    "carriage returns.csv": "id,class\n\r\r\r,2",
    "list.json": "[1, 2]",
    "cut.json": '{"1": "a"',
    "words.json": '{"one": "a"}',
}


CLASSES = {
    "plain.csv": {1: "b", 3: "a"},
    "semicolons.csv": {1: "unclear", 3: "a"},
    "tabs.csv": {1: "strange", 3: "a"},
    "more columns.csv": {1: "b", 3: "a"},
    "spaces.csv": {1: "b", 3: "a"},
    "numbers of classes.csv": {1: "b", 3: "a", 4: "7"},
    "numbers with zeros.csv": {1: "b", 3: "01"},
    "numbers without end.csv": {1: "inf", 3: "3"},
    "twice.csv": {3: "b"},
    "blank lines.csv": {3: "a"},
    "quoted.csv": {3: "a, b"},
    "quoted header.csv": {3: "a"},
    "windows.csv": {1: "NA", 3: "a"},
    "no class.csv": {3: ""},
    "not positive.csv": {5: "a"},
    "carriage returns.csv": {1: "b", 3: "a"},
    "empty.csv": {},
    "plain.json": {1: "b", 3: "a"},
    "numbers.json": {1: "b", 3: "a"},
    "empty.json": {},
}


@pytest.mark.parametrize("name", GOOD)
def test_classes_are_those_of_the_rows(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(GOOD[name], encoding="utf-8", newline="")
    table = read_class_table(tmp_path / name, SCHEME)
    assert (np.diff(table.ids) > 0).all()
    assert table.as_mapping() == CLASSES[name]
    orders = [f.message for f in table.findings if f.kind is FindingKind.CLASS_ORDER]
    others = [f for f in table.findings if f.kind is not FindingKind.CLASS_ORDER]
    assert [f.object_ids for f in others] == ([(3,)] if name == "twice.csv" else [])
    are_numbers = name in ("numbers of classes.csv", "numbers with zeros.csv", "numbers.json")
    assert len(orders) == are_numbers
    assert all("1 = a and 2 = b" in message for message in orders)


@pytest.mark.parametrize("name", BAD)
def test_says_what_is_wrong(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(BAD[name], encoding="utf-8", newline="")
    with pytest.raises(UnreadableFileError, match="table of classes"):
        read_class_table(tmp_path / name, SCHEME)


def test_numbers_of_classes() -> None:
    table = ClassTable.of([(7, "B"), (2, "unclear"), (5, "odd")], SCHEME, Path("a.csv"))
    assert table.ids.tolist() == [2, 5, 7]
    assert table.class_index(SCHEME).tolist() == [0, -1, 2]
    assert table.names_of([1, 2, 7, 9]) == {2: "unclear", 7: "B"}
    assert ClassTable.of([], SCHEME, Path("a.csv")).names_of([3]) == {}


NOT_AMBIGUOUS = ClassScheme(("a", "b"), ((255, 0, 0), (0, 255, 0)), ambiguous=None)
REPEATED = (
    pytest.param("m.csv", "id,class\n1,a\n2,a\n2,b\n1,a\n", id="CSV"),
    pytest.param("m.csv", "class;id\na;1\n\na;2.0\nb;2\na;1\n", id="CSV written otherwise"),
    pytest.param("m.json", '{"1": "a", "2": "a", "2": "b", "1": "a"}', id="JSON"),
    pytest.param("m.json", '{"1": "a", "2": 1, "02": 2, "1.0": 1}', id="JSON written otherwise"),
)


@pytest.mark.parametrize(("name", "text"), REPEATED)
def test_ids_that_come_twice_are_listed(name: str, text: str, tmp_path: Path) -> None:
    objects = two_objects()
    files = label_files(write_tiff(tmp_path / "m.tif", objects.astype(np.uint16)))
    (tmp_path / name).write_text(text)
    whole = load_masks(files, NOT_AMBIGUOUS, shape=objects.shape)
    tiled = open_masks(files, NOT_AMBIGUOUS, objects.shape)
    assert whole.labels.class_names_of_objects().tolist() == ["a", "b"]
    assert tiled.labels.class_index.tolist() == [1, 2]
    for findings in (whole.findings, tiled.findings):
        finding, *order = findings
        assert [f.kind for f in order] == [FindingKind.CLASS_ORDER] * ('": 1,' in text)
        assert finding.kind is FindingKind.MALFORMED
        assert finding.path == tmp_path / name
        assert finding.object_ids == (1, 2)


@pytest.mark.parametrize(
    ("name", "text"), [("m.csv", "id,class\n1,a\n2,b\n"), ("m.json", '{"1": "a", "2": "b"}')]
)
def test_tables_without_such_ids_have_no_finding(name: str, text: str, tmp_path: Path) -> None:
    objects = two_objects()
    files = label_files(write_tiff(tmp_path / "m.tif", objects.astype(np.uint16)))
    (tmp_path / name).write_text(text)
    assert load_masks(files, NOT_AMBIGUOUS, shape=objects.shape).findings == ()
    assert open_masks(files, NOT_AMBIGUOUS, objects.shape).findings == ()
