"""Choices that a user makes from a menu."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class MenuChoice(StrEnum):
    """An entry of a menu: ``value, meaning``, or ``value, meaning, short``."""

    #: One sentence for the tooltip.
    meaning: str
    #: The text of the entry and of the button; the value by default.
    short: str

    def __new__(cls, value: str, meaning: str = "", short: str = "") -> Self:
        """Return a member that equals its value, and is looked up by the value alone."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        member.short = short or value
        return member
