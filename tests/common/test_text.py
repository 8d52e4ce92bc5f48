from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.text import counted, shortened, visible

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Team A (2.0), ÄÖ, \N{HEBREW LETTER ALEF} <b>", None),
        (FAMILY, None),
        ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
        ("gnp\u202egnp.exe", r"gnp\u202egnp.exe"),
        ("a\u2066b\u2069", r"a\u2066b\u2069"),
        ("a\nb\r\tc\x00\x9b", r"a\nb\r\tc\x00\x9b"),
        ("te\u200dam\u200b", r"te\u200dam\u200b"),
        ("\udcff", r"\udcff"),
        ("a\u2028b\u2029", r"a\u2028b\u2029"),
        ("e" + "\u0301" * 4, None),
        ("e" + "\u0301" * 500 + "f", "e" + "\u0301" * 4 + "…f"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, expected: str | None) -> None:
    assert visible(text) == (text if expected is None else expected)


@given(st.text())
def test_nothing_visible_acts(text: str) -> None:
    found = visible(text)
    assert not any(
        unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        for c in found
        if c not in "\u200c\u200d"
    )
    found.encode("utf-8")
    assert visible(found) == found


def test_long_names_lose_their_middle() -> None:
    assert visible("a" * 50 + "b" * 50, longest=11) == "aaaaa…bbbbb"
    assert shortened("abc", 3) == "abc"


def test_errors_cannot_act_on_a_terminal() -> None:
    error = PanopticError("no '\x1b[2J\u202e'\nforged: line", path=Path("a\x1bb"))
    assert str(error) == r"a\x1bb: no '\x1b[2J\u202e'\nforged: line"
    assert len(str(PanopticError("x" * 10**6))) <= 2000


@pytest.mark.parametrize(
    ("nouns", "one", "two"),
    [
        (("class",), "1 class", "2 classes"),
        (("row(s) of team 'a(s)'",), "1 row of team 'a(s)'", "2 rows of team 'a(s)'"),
        (("file is", "files are"), "1 file is", "2 files are"),
    ],
)
def test_the_noun_fits_its_number(nouns: tuple[str, ...], one: str, two: str) -> None:
    assert (counted(1, *nouns), counted(2, *nouns)) == (one, two)
