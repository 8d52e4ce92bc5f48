"""Numbers as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from napari_panoptic.common.text import THIN_SPACE, english_list, spaced
from napari_panoptic.common.text import counted as counted_plainly

UNDEFINED, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
_LEAST_P = 0.001


def ratio(value: float, places: int = 3) -> str:
    """Write a ratio; an en dash if undefined."""
    if math.isnan(value):
        return UNDEFINED
    return with_sign(value, f"{abs(value):.{places}f}", plus="")


def signed(value: float, places: int = 3) -> str:
    """Write a difference with its sign; an en dash if undefined."""
    return with_sign(value, ratio(abs(value), places))


def finely_signed(value: float) -> str:
    """Write a difference of ratios with its sign; an en dash if undefined.

    Four decimals: one object among hundreds changes no more than the last.
    """
    return signed(value, 4)


def with_sign(value: float, size: str, *, plus: str = "+") -> str:
    """Write the sign of a value before the text of its size; none before what is rounded to 0."""
    if not any(digit in size for digit in "123456789"):
        return size
    return f"{plus if value > 0 else MINUS}{size}"


def signed_count(value: int) -> str:
    """Write a difference of whole numbers with its sign."""
    return with_sign(value, count(abs(value)))


def count(value: float) -> str:
    """Write a whole number with separated thousands; an en dash if undefined."""
    return UNDEFINED if math.isnan(value) else spaced(f"{int(value):,d}")


def short_count(value: int) -> str:
    """Write a whole number in at most four characters and a unit: 9 999, 123k, 1.2M."""
    if value < 10_000:
        return count(value)
    # 999,500 would round to 1000k.
    return f"{value / 1e3:.0f}k" if value < 999_500 else f"{value / 1e6:.1f}M"


def decimal(value: float) -> str:
    """Write a number with one decimal and separated thousands; an en dash if undefined."""
    return UNDEFINED if math.isnan(value) else spaced(f"{value:,.1f}")


def length(value: float, unit: str = "px") -> str:
    """Write a length with one decimal and its unit; an en dash if undefined."""
    return UNDEFINED if math.isnan(value) else f"{decimal(value)}{THIN_SPACE}{unit}"


def percent(share: float) -> str:
    """Write a share in whole percent."""
    return f"{100 * share:.0f} %"


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
