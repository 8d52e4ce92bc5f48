"""Tables of classes beside label images, CSV and JSON."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.formats.class_tables import ClassTable, read_class_table
from napari_panoptic.values.cohort import ClassScheme

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
    assert [f.object_ids for f in table.findings] == ([(3,)] if name == "twice.csv" else [])


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
