"""Dataclasses as JSON values, and back: checked against the types of their fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

_AS_THEY_ARE = {NoneType, bool, int, float, str}
_COLUMN_KINDS = "biufO"
"""Of tables: truth values, numbers and texts, as `numpy.dtype.kind` has them."""


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
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: encoded(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encoded(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [encoded(each) for each in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    import pandas as pd

    if isinstance(value, pd.DataFrame):
        return [[name, str(column.dtype), _values(column)] for name, column in value.items()]
    return value


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
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType:  # with None
        (kind,) = (each for each in arguments if each is not NoneType)
        return None if record is None else decoded(kind, record)
    if origin is np.ndarray:
        (scalar,) = get_args(arguments[1])
        return np.array(_checked(list, record), scalar)
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
    if kind is float and type(record) is int:
        return float(record)
    if kind in _AS_THEY_ARE:
        return _checked(kind, record)
    import pandas as pd

    if kind is pd.DataFrame:
        return pd.DataFrame(
            {
                _checked(str, name): pd.Series(_checked(list, each), dtype=_column_type(dtype))
                for name, dtype, each in _checked(list, record)
            }
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


def _column_type(name: Any) -> Any:
    import pandas as pd

    dtype = pd.api.types.pandas_dtype(_checked(str, name))
    if dtype.kind not in _COLUMN_KINDS:  # for types of several fields, pandas has other errors
        raise TypeError(f"expected a column of numbers or texts, found the type {dtype}")
    return dtype


def _values(column: pd.Series[Any]) -> list[Any]:
    import pandas as pd

    if isinstance(column.dtype, pd.Int64Dtype):
        return list(column.array.to_numpy(object, na_value=None).tolist())
    return column.tolist()
