"""Text for users: escape and shorten names from files, and join and suggest words."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

UNENCODABLE = "backslashreplace"
r"""Error handler for UTF-8 files: a lone surrogate (a byte of a file name) becomes ``\udcff``."""
_UNSHOWABLE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Categories of Unicode: control, direction and other format characters, lone surrogates, line
and paragraph separators."""
_JOINERS = "\u200c\u200d"
"""Harmless; Persian and Indian scripts and emoji need them."""
_COMBINING = ("Mn", "Me")
_MOST_COMBINING = 4
"""Most marks on one letter in real scripts; more would cover the lines above and below."""

THIN_SPACE = "\N{THIN SPACE}"
LONGEST_WORD = 200
"""Longest word that a message quotes from a file, in characters."""


def visible(text: str, *, longest: int | None = None) -> str:
    r"""Return a text with invisible, control and direction characters escaped.

    The result stays on one line, can be encoded as UTF-8, and is valid in XML.

    Parameters
    ----------
    text
        A text, such as a name from a file.
    longest
        Length above which the middle is left out.

    Examples
    --------
    >>> visible("a\x1b[2J\u202eb")
    'a\\x1b[2J\\u202eb'
    """
    if longest is not None:
        text = shortened(text, longest)
    if text.isascii() and text.isprintable():
        return text
    written: list[str] = []
    marks = 0
    for place, letter in enumerate(text):
        category = unicodedata.category(letter)
        marks = marks + 1 if category in _COMBINING else 0
        if marks > _MOST_COMBINING:
            if marks == _MOST_COMBINING + 1:
                written.append("…")
        elif category in _UNSHOWABLE and not _joins(text, place):
            written.append(letter.encode("unicode_escape").decode("ascii"))
        else:
            written.append(letter)
    return "".join(written)


def composed(text: str) -> str:
    """Return a text with one character for each letter with accents, so that names are equal.

    macOS writes names of files with two (NFD), and most other programs and people one (NFC).
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def utf8(text: str) -> bytes:
    """Encode a text that may contain lone surrogates; see `UNENCODABLE`."""
    return text.encode("utf-8", UNENCODABLE)


def encodable(text: str) -> str:
    """Escape the lone surrogates of a text; see `UNENCODABLE`."""
    return utf8(text).decode()


def shortened(text: str, length: int) -> str:
    """Return a text without its middle if it is longer than a length."""
    if len(text) <= length:
        return text
    head = (length - 1) // 2
    return f"{text[:head]}…{text[len(text) - (length - 1 - head) :]}"


def english_list(words: Sequence[object], *, limit: int = 8) -> str:
    """Join words with commas and an "and"; a long list is cut and counted, a long word cut.

    Examples
    --------
    >>> english_list(["a", "b", "c"])
    'a, b and c'
    """
    texts = [shortened(str(word), LONGEST_WORD) for word in words]
    if len(texts) > limit:
        return f"{', '.join(texts[:limit])} and {len(texts) - limit} more"
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def counted(
    number: int, noun: str, plural: str | None = None, *, write: Callable[[int], str] = str
) -> str:
    """Return a number with its noun, in the plural unless there is one.

    Parameters
    ----------
    number, noun
        The number, and what there is one of. If more words follow the noun, ``(s)`` is in the place
        of its ending.
    plural
        What there are several of, if more than the ending differs.
    write
        Returns the number as text.

    Examples
    --------
    >>> counted(1, "region"), counted(2, "region"), counted(2, "class")
    ('1 region', '2 regions', '2 classes')
    >>> counted(1, "row(s) left out"), counted(2, "row(s) left out")
    ('1 row left out', '2 rows left out')
    >>> counted(1, "file is", "files are"), counted(2, "file is", "files are")
    ('1 file is', '2 files are')
    """
    if number == 1:
        words = noun.replace("(s)", "", 1)
    elif plural is not None:
        words = plural
    elif "(s)" in noun:
        words = noun.replace("(s)", "s", 1)
    else:
        words = f"{noun}{'es' if noun.endswith('s') else 's'}"
    return f"{write(number)} {words}"


def no_such(what: str, name: str, known: Sequence[str]) -> str:
    """Return a message that a name is unknown, with similar names or all known ones."""
    if not known:
        return f"there is no {what} '{name}': this cohort has no {what}s"
    if close := similar(name, known):
        return f"there is no {what} '{name}' in this cohort; did you mean {' or '.join(close)}?"
    return f"there is no {what} '{name}' in this cohort; it has {english_list(known)}"


def similar(name: str, known: Sequence[str]) -> list[str]:
    """Return up to three known names similar to a name, the most similar first."""
    import difflib

    # Case is ignored.
    by_folded: dict[str, list[str]] = {}
    for each in known:
        by_folded.setdefault(each.casefold(), []).append(each)
    close = difflib.get_close_matches(name.casefold(), list(by_folded), n=3)
    return [each for folded in close for each in by_folded[folded]][:3]


def _joins(text: str, place: int) -> bool:
    """Return whether a joiner is between letters that it can join (not ASCII)."""
    if text[place] not in _JOINERS:
        return False
    around = text[max(0, place - 1) : place] + text[place + 1 : place + 2]
    return len(around) == 2 and all(not letter.isascii() for letter in around)


def spaced(text: str) -> str:
    """Return a number whose thousands are separated by thin spaces instead of commas."""
    return text.replace(",", THIN_SPACE)
