"""The settings of a sweep: parameters read from names of teams, order, and neighbours."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.text import english_list

Value = float | str

_LETTER = r"[^\W\d_]"
_NUMBER = r"(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?"
# A parameter's name ends where its number begins; only "=" and ":" can precede a sign.
_PARAMETER = re.compile(
    rf"(?P<name>{_LETTER}(?:{_LETTER}|[_-](?={_LETTER}))*)?"
    rf"(?:\s*[=:]\s*(?P<signed>[+-]?{_NUMBER})|[\s_-]?(?P<plain>{_NUMBER}))"
)
_UNNAMED = "value"


@dataclass(frozen=True)
class Setting:
    """One setting of a sweep."""

    #: The team that holds its predictions.
    team: str
    #: The value of each parameter that varies, in the order of the sweep's parameters.
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Neighbours:
    """Two settings that are adjacent in one parameter and equal in all others."""

    #: The parameter that differs.
    parameter: str
    #: Positions of the settings, the lower value first.
    before: int
    after: int


@dataclass(frozen=True)
class SweepDesign:
    """The settings of a sweep in order."""

    #: Names of the parameters that vary.
    parameters: tuple[str, ...]
    #: Sorted by the first parameter, then by the second, and so on: numbers by size, words as first
    #: met.
    settings: tuple[Setting, ...]

    @property
    def teams(self) -> tuple[str, ...]:
        """The team of each setting."""
        return tuple(setting.team for setting in self.settings)

    def title(self, place: int) -> str:
        """Return the values of a setting, such as ``prob=0.5, nms=0.3``."""
        values = zip(self.parameters, self.settings[place].values, strict=True)
        return ", ".join(f"{name}={value_text(value)}" for name, value in values)

    @cached_property
    def neighbours(self) -> tuple[Neighbours, ...]:
        """Every two neighbours, parameter by parameter."""
        found = []
        for number, parameter in enumerate(self.parameters):
            lines: dict[tuple[Value, ...], list[int]] = {}
            for place, setting in enumerate(self.settings):
                others = setting.values[:number] + setting.values[number + 1 :]
                lines.setdefault(others, []).append(place)
            for line in lines.values():  # in the order of the parameter
                found += [Neighbours(parameter, *both) for both in pairwise(line)]
        return tuple(found)


def value_text(value: Value) -> str:
    """Return a value as short text."""
    return value if isinstance(value, str) else f"{value:g}"


def parameters_in(name: str) -> dict[str, str]:
    """Read parameters from the name of a team.

    A number belongs to the word before it. One of ``= : _ -`` or a space may separate them:
    ``prob0.5_nms0.3``, ``t=0.4,min_size=20``, ``size-20``. A number can be negative only after
    ``=`` or ``:``. A number without a word is called ``value``.

    Raises
    ------
    SettingsError
        If a parameter occurs twice.
    """
    found: dict[str, str] = {}
    for match in _PARAMETER.finditer(name):
        parameter = match["name"] or _UNNAMED
        if parameter in found:
            raise SettingsError(
                f"expected each parameter once in the name of a team, found '{parameter}' twice in "
                f"'{name}'; write a table for --settings"
            )
        found[parameter] = match["signed"] or match["plain"]
    return found


def sweep_design(values: Mapping[str, Mapping[str, str]]) -> SweepDesign:
    """Order the settings of a sweep.

    Parameters
    ----------
    values
        Team -> parameter -> value. A parameter is numeric if all of its values are numbers.

    Raises
    ------
    SettingsError
        For fewer than two settings, settings with different parameters, or equal settings.
    """
    if len(values) < 2:
        raise SettingsError(
            f"a sweep needs two or more settings, found {english_list(list(values)) or 'none'}; "
            "name the teams after their settings, such as prob0.5_nms0.3, or write a table for "
            "--settings"
        )
    (first, own), *others = values.items()
    for team, found in others:
        if set(found) != set(own):
            raise SettingsError(
                f"expected the same parameters for all settings, found {english_list(list(own))} "
                f"for '{first}', and {english_list(list(found)) or 'none'} for '{team}'; choose "
                "with --teams, or write a table for --settings"
            )
    columns = {name: [found[name] for found in values.values()] for name in own}
    varying = {
        name: typed for name, texts in columns.items() if len(set(typed := _typed(texts))) > 1
    }
    settings = [
        Setting(team, tuple(typed[row] for typed in varying.values()))
        for row, team in enumerate(values)
    ]
    _check_different(settings)
    ranks = [_ranks(typed) for typed in varying.values()]
    order = sorted(range(len(settings)), key=lambda row: [of[row] for of in ranks])
    return SweepDesign(tuple(varying), tuple(settings[row] for row in order))


def _typed(texts: Sequence[str]) -> list[Value]:
    """Return numbers if all texts are numbers, else the texts."""
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        return list(texts)
    return [*numbers] if all(map(math.isfinite, numbers)) else list(texts)


def _ranks(values: Sequence[Value]) -> list[float]:
    numbers = [value for value in values if not isinstance(value, str)]
    if len(numbers) == len(values):
        return numbers
    first = {value: place for place, value in reversed(list(enumerate(values)))}
    return [first[value] for value in values]


def _check_different(settings: Sequence[Setting]) -> None:
    seen: dict[tuple[Value, ...], str] = {}
    for setting in settings:
        other = seen.setdefault(setting.values, setting.team)
        if other != setting.team:
            raise SettingsError(
                f"expected different settings, found the same for '{other}' and '{setting.team}'; "
                "leave one out with --teams, or write a table for --settings"
            )
