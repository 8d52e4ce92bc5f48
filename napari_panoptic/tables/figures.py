"""Numbers as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from napari_panoptic.common.text import counted as counted_plainly
from napari_panoptic.common.text import english_list, spaced

UNDEFINED = "\N{EN DASH}"
_LEAST_P = 0.001


def ratio(value: float, places: int = 3) -> str:
    """Write a ratio; an en dash if undefined."""
    if math.isnan(value):
        return UNDEFINED
    sign = "\N{MINUS SIGN}" if round(value, places) < 0 else ""
    return f"{sign}{abs(value):.{places}f}"


def signed(value: float, places: int = 3) -> str:
    """Write a difference with its sign; an en dash if undefined."""
    text = ratio(value, places)
    return f"+{text}" if round(value, places) > 0 else text


def count(value: float) -> str:
    """Write a whole number with separated thousands; an en dash if undefined."""
    return UNDEFINED if math.isnan(value) else spaced(f"{int(value):,d}")


def counted(number: int, noun: str) -> str:
    """Write a number and a noun, in the plural unless the number is 1."""
    return counted_plainly(number, noun, write=count)


def counted_as_worst(patients: Sequence[str], setting: str) -> str:
    """Describe how patients count who have a figure under some settings only."""
    names = f"{counted(len(patients), 'patient')} ({english_list(patients)})"
    return f"{names}; there the worst figure counts that any {setting} gives the patient"


def p_value(value: float) -> str:
    """Write a p-value; an en dash if undefined."""
    if math.isnan(value):
        return UNDEFINED
    return f"< {_LEAST_P}" if value < _LEAST_P else f"{value:.3f}"


def p_digits(value: float) -> str:
    """Write a p-value with two digits, however small it is; an en dash if undefined."""
    return UNDEFINED if math.isnan(value) else f"{value:.2g}"


def interval(low: float, high: float, places: int = 3) -> str:
    """Write the ends of an interval; an en dash if undefined."""
    if math.isnan(low) or math.isnan(high):
        return UNDEFINED
    return f"{ratio(low, places)} to {ratio(high, places)}"


def area_text(low: float, high: float) -> str:
    """Write the bounds of a size class."""
    if low <= 0:
        return f"below {high:g}" if math.isfinite(high) else "all"
    return f"{low:g} to {high:g}" if math.isfinite(high) else f"from {low:g}"


def one_place(value: float) -> str:
    """Write a number with one decimal; an en dash if undefined."""
    return ratio(value, 1)


def two_places(value: float) -> str:
    """Write a number with two decimals; an en dash if undefined."""
    return ratio(value, 2)


def places_of(figure: str) -> int:
    """Return the number of decimals of a figure: distances are written with one."""
    return 1 if figure.endswith("_px") else 3


def writer(figure: str) -> Callable[[float], str]:
    """Return the function that writes a figure."""
    return one_place if places_of(figure) == 1 else ratio
