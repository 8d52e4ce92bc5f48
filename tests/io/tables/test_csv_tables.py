"""Tables of settings: read, or refused with what is wrong; as every table that users give."""

from __future__ import annotations

from pathlib import Path

import pytest

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.io.tables.csv_tables import read_sweep_table


def test_settings_by_team(tmp_path: Path) -> None:
    path = tmp_path / "settings.csv"
    path.write_bytes("\ufeffteam;prob\r\n;\r\n e\u0301 ; 0.5\r\nb;0.7\r\n".encode())
    assert read_sweep_table(path) == {"\u00e9": {"prob": "0.5"}, "b": {"prob": "0.7"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "with the column team, found no columns; add team"),
        ("name,prob\na,1\n", "found name and prob"),
        ("team\na\n", "a named one for each parameter, found team"),
        ("team,\na,1\n", "a named one for each parameter"),
        ("team,prob,prob\na,1,2\n", "found prob twice"),
        ("team,prob\na,\n", "2 filled cells in line 2"),
        ("team,prob\n\na,1\nb\n", "2 cells in line 4, found 1"),
        ("team,prob\na,1\na,2\n", "'a' in line 2 and again in line 3"),
    ],
)
def test_what_is_no_table_of_settings_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "settings.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableFileError, match=message) as caught:
        read_sweep_table(path)
    assert caught.value.path == path
