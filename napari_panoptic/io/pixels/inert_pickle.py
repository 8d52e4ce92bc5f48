"""Values of a pickle, read without running anything in it.

A pickle is a program for a stack machine, which can call any function. Python's own machine
follows it here, with records in place of functions and calls; arrays of numbers are then made of
the records of numpy's calls.
"""

from __future__ import annotations

import math
import pickle
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_INSTRUCTIONS = 1_000_000
"""Largest number of instructions in a pickle; one of arrays has some hundreds."""
_NUMBERS = re.compile(r"[biuf][1248]")
_INHERITED = (
    *("PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "DUP", "NONE", "NEWTRUE", "NEWFALSE"),
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE"),
    *("BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "EMPTY_LIST", "LIST", "APPEND"),
    *("APPENDS", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "SETITEM", "SETITEMS"),
    *("MEMOIZE", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET"),
    *("GLOBAL", "STACK_GLOBAL"),
)
"""Instructions that Python follows; absent are calls, and what plain values do not need."""


@dataclass(frozen=True)
class Name:
    """A function or class that a pickle names."""

    module: str
    name: str


@dataclass(eq=False)
class Call:
    """A call that was not made, and the state that its result was to get."""

    function: Any
    arguments: Any
    state: Any = None

    def append(self, item: Any) -> None:
        """Ignore an item that the result was to get."""

    def extend(self, items: Any) -> None:
        """Ignore items that the result was to get."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Ignore an entry that the result was to get."""


class _Entries(dict[Any, Any]):
    """A dictionary whose keys are texts: the hash of other keys can take any time."""

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, str):
            super().__setitem__(key, value)


class _Instructions(dict[int, Callable[[Any], None]]):
    """Instructions by their codes; a limited number of them can be looked up."""

    left = MOST_INSTRUCTIONS

    def __getitem__(self, code: int) -> Callable[[Any], None]:
        self.left -= 1
        if self.left < 0:
            raise ValueError("the pickle has too many instructions")
        return super().__getitem__(code)


class _Machine(pickle._Unpickler):
    """The machine of Python, whose calls are records."""

    stack: list[Any]
    append: Callable[[Any], None]

    def __init__(self, data: bytes) -> None:
        super().__init__(BytesIO(data), encoding="latin-1")
        python: dict[int, Any] = pickle._Unpickler.dispatch
        inherited = {code: python[code] for name in _INHERITED for code in getattr(pickle, name)}
        self.dispatch = _Instructions(inherited | _INERT)  # type: ignore[misc]

    def find_class(self, module: str, name: str) -> Any:
        return Name(module, name)

    def record_call(self) -> None:
        arguments = self.stack.pop()
        self.stack[-1] = Call(self.stack[-1], arguments)

    def record_state(self) -> None:
        state = self.stack.pop()
        if isinstance(self.stack[-1], Call):
            self.stack[-1].state = state

    def add_entries(self) -> None:
        self.append(_Entries())


_INERT: dict[int, Callable[[Any], None]] = {
    pickle.REDUCE[0]: _Machine.record_call,
    pickle.NEWOBJ[0]: _Machine.record_call,
    pickle.BUILD[0]: _Machine.record_state,
    pickle.EMPTY_DICT[0]: _Machine.add_entries,
    # Python's instruction allocates what the file claims.
    pickle.BYTEARRAY8[0]: pickle._Unpickler.dispatch[pickle.BINBYTES8[0]],
}


def inert_value(data: bytes) -> Any:
    """Return what a pickle holds, with a `Call` for whatever would be computed.

    Raises
    ------
    ValueError
        If it is cut off, damaged, or has instructions that plain values do not need.
    """
    try:
        return _Machine(data).load()
    except (
        *(LookupError, TypeError, OverflowError, AttributeError, AssertionError, EOFError),
        *(struct.error, pickle.UnpicklingError),
    ) as error:
        raise ValueError("the pickle is damaged") from error


def inert_array(value: Any) -> NDArray[Any] | None:
    """Return the array of numbers that a value of `inert_value` stands for, or None."""
    if not (_calls(value, "_reconstruct") and isinstance(value.state, tuple)):
        return None
    _, shape, kind, by_columns, data = value.state
    if not (_calls(kind, "dtype") and isinstance(shape, tuple) and isinstance(data, bytes)):
        return None
    code, order = kind.arguments[0], kind.state[1]
    if not (isinstance(code, str) and _NUMBERS.fullmatch(code) and order in ("<", ">", "|", "=")):
        return None
    if not all(type(size) is int and size >= 0 for size in shape):
        return None
    dtype = np.dtype(code).newbyteorder(order)
    if math.prod(shape) * dtype.itemsize != len(data):
        return None
    return np.frombuffer(data, dtype).reshape(shape, order="F" if by_columns else "C")


def inert_item(value: Any) -> Any:
    """Return the only object in an array of objects, as `numpy.save` stores a dictionary.

    Raises
    ------
    ValueError
        If it is something else.
    """
    state = value.state if _calls(value, "_reconstruct") else None
    match state:
        case (_, _, _, _, [item]):
            return item
    raise ValueError("it holds no single object")


def _calls(value: Any, name: str) -> bool:
    """Return whether this is a call of one of numpy's functions."""
    if not (isinstance(value, Call) and isinstance(value.function, Name)):
        return False
    return value.function.name == name and value.function.module.split(".")[0] == "numpy"
