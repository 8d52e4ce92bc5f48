"""Dataclasses as JSON values, and back: checked against the types of their fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

_AS_THEY_ARE = {NoneType, bool, int, float, str}
_TYPES_OF_KIND: Mapping[str, frozenset[type]] = {
    "b": frozenset({bool}),
    "i": frozenset({int}),
    "u": frozenset({int}),
    "f": frozenset({float, int}),
    "O": frozenset({str, bool, int, float, NoneType}),
}
"""What arrays and columns hold in JSON, by `numpy.dtype.kind`: other values would be converted,
such as 1.5 to the whole number 1."""

_YEARS = range(1970, 9999)
"""Times near the ends of the calendar cannot be shown in every time zone."""
_COLUMN_TYPE = re.compile("object|string|str|bool(ean)?|([iI]nt|u[iI]nt|UInt|[fF]loat)[0-9]{1,2}")


def fields_of(value: object, *names: str) -> dict[str, Any]:
    """Return attributes of a value by their names, for a record or a row of a table."""
    return {name: getattr(value, name) for name in names}


def encoded(value: Any) -> Any:
    """Return a value as JSON can hold it, with all digits.

    Dataclasses and mappings become objects; arrays, tuples and lists become
    lists; a table becomes the name, type and values of each column.
    """
    if type(value) in _AS_THEY_ARE:  # most values; found without further questions
        return value
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return {name: encoded(getattr(value, name)) for name in _names(type(value))}
    if isinstance(value, Mapping):
        return {str(key): encoded(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [encoded(each) for each in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds")
    import pandas as pd

    if isinstance(value, pd.DataFrame):
        return [[name, str(column.dtype), _values(column)] for name, column in value.items()]
    return value


@cache
def _names(kind: type) -> tuple[str, ...]:
    # A field that is neither compared nor shown is no part of the value.
    return tuple(field.name for field in fields(kind) if field.compare or field.repr)


def decoded(kind: Any, record: Any) -> Any:
    """Return the value of a type that `encoded` made a JSON value of.

    Parameters
    ----------
    kind
        The type: a dataclass, or whatever the fields of dataclasses hold.
    record
        The JSON value.

    Raises
    ------
    TypeError, ValueError, LookupError
        If it is no value of that type.
    """
    if kind is Any:
        return record
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType:  # with None
        (kind,) = (each for each in arguments if each is not NoneType)
        return None if record is None else decoded(kind, record)
    if origin is np.ndarray:
        (scalar,) = get_args(arguments[1])
        return _array(record, np.dtype(scalar))
    if origin in (tuple, list):
        return origin(decoded(arguments[0], each) for each in _checked(list, record))
    if origin is not None:  # a mapping
        return {key: decoded(arguments[1], each) for key, each in _checked(dict, record).items()}
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        values = _checked(dict, record).items()
        return kind(**{name: decoded(hints[name], each) for name, each in values})
    if issubclass(kind, Enum | Path):
        return kind(_checked(str, record))
    if kind is datetime:
        return _moment(_checked(str, record))
    if kind is float and type(record) is int:
        with _in_range():
            return float(record)
    if kind in _AS_THEY_ARE:
        return _checked(kind, record)
    import pandas as pd

    if kind is pd.DataFrame:
        columns = _checked(list, record)
        return pd.DataFrame(
            {_checked(str, name): _column(values, dtype) for name, dtype, values in columns}
        )
    return _checked(kind, record)


@cache
def _hints(kind: type) -> dict[str, Any]:
    names = {}
    if any("pd." in str(field.type) for field in fields(kind)):
        import pandas as pd

        names["pd"] = pd  # modules import it for type checkers only
    return get_type_hints(kind, localns=names or None)


def _checked(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"expected a {kind.__name__}, found {value!r}")
    return value


def _moment(text: str) -> datetime:
    """Return a time in UTC, which one without a time zone is taken to be."""
    moment = datetime.fromisoformat(text)
    with _in_range():
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    if moment.year not in _YEARS:
        raise ValueError(f"expected a year from {_YEARS[0]} to {_YEARS[-1]}, found {text!r}")
    return moment


def _array(record: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    _check_types(_types_in(_checked(list, record)), _TYPES_OF_KIND[dtype.kind])
    with _in_range():
        return np.array(record, dtype)


def _types_in(values: list[Any]) -> set[type]:
    """Return the types of the values in lists of lists."""
    types = set(map(type, values))
    if list in types:
        nested = (_types_in(each) for each in values if type(each) is list)
        types = types.difference({list}).union(*nested)
    return types


def _column(record: Any, name: Any) -> pd.Series[Any]:
    """Return the column of a table, of the type of this name."""
    import pandas as pd

    if not _COLUMN_TYPE.fullmatch(_checked(str, name)):  # NumPy would evaluate other names
        raise TypeError(f"expected a column of numbers or texts, found the type {name[:60]!r}")
    dtype = pd.api.types.pandas_dtype(name)
    allowed, found = _TYPES_OF_KIND[dtype.kind], set(map(type, _checked(list, record)))
    if isinstance(dtype, pd.StringDtype):
        # A missing text is NaN; pandas would make a text of any other number.
        allowed = frozenset({str, NoneType})
        found = {type(each) for each in record if type(each) is not float or each == each}
    elif isinstance(dtype, pd.api.extensions.ExtensionDtype):
        allowed |= {NoneType}
    _check_types(found, allowed)
    with _in_range():
        return pd.Series(record, dtype=dtype)


def _check_types(found: set[type], allowed: frozenset[type]) -> None:
    if strange := found - allowed:
        names = sorted(each.__name__ for each in allowed)
        raise TypeError(f"expected {' or '.join(names)}, found {min(map(repr, strange))}")


@contextmanager
def _in_range() -> Iterator[None]:
    """Raise `ValueError` where a number is too large for its type, instead of a warning."""
    try:
        with np.errstate(over="raise", invalid="raise"):
            yield
    except ArithmeticError as error:
        raise ValueError(f"expected a smaller number: {error}") from error


def _values(column: pd.Series[Any]) -> list[Any]:
    import pandas as pd

    if isinstance(column.dtype, pd.Int64Dtype):
        return list(column.array.to_numpy(object, na_value=None).tolist())
    return column.tolist()
