"""Values of a pickle, read without running anything in it.

A pickle is a program for a stack machine, which can call any function. Here its instructions are
followed on a stack of plain values; calls are only noted, and arrays of numbers made of what they
would be made of. The instructions are defined in Python's own `pickletools`.
"""

from __future__ import annotations

import math
import pickletools
import re
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_INSTRUCTIONS = 1_000_000
"""A pickle of arrays has some hundreds."""
_NUMBERS = re.compile(r"[biuf][1248]")
_LITERALS = frozenset(
    (
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE"),
        *("BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
    )
)
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_IGNORED = ("PROTO", "FRAME")


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


def inert_value(data: bytes) -> Any:
    """Return what a pickle holds, with a `Call` for whatever would be computed.

    Raises
    ------
    ValueError
        If it is cut off, damaged, or has instructions that plain values do not need.
    """
    machine = _Machine()
    try:
        for count, (instruction, argument, _) in enumerate(pickletools.genops(BytesIO(data))):
            if count == MOST_INSTRUCTIONS:
                raise ValueError("the pickle has too many instructions")
            if instruction.name == "STOP":
                return machine.pop()
            machine.do(instruction.name, argument)
    except (LookupError, TypeError, OverflowError, AttributeError) as error:
        raise ValueError("the pickle is damaged") from error
    raise ValueError("the pickle is cut off")


def inert_array(value: Any) -> NDArray[Any] | None:
    """Return the array of numbers that a value of `inert_value` stands for; None if it is none."""
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


class _Machine:
    """The stack, what lies below marks on it, and the memory of a pickle."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []
        self._memory: dict[int, Any] = {}
        self._doing: dict[str, Callable[[Any], None]] = {
            "MARK": lambda _: self._mark(),
            "POP": lambda _: self._drop(),
            "POP_MARK": lambda _: self._marked().clear(),
            "DUP": lambda _: self._push(self._stack[-1]),
            "EMPTY_LIST": lambda _: self._push([]),
            "LIST": lambda _: self._push(self._marked()),
            "APPEND": lambda _: self._extend([self.pop()]),
            "APPENDS": lambda _: self._extend(self._marked()),
            "EMPTY_TUPLE": lambda _: self._push(()),
            "TUPLE": lambda _: self._push(tuple(self._marked())),
            "TUPLE1": lambda _: self._tuple(1),
            "TUPLE2": lambda _: self._tuple(2),
            "TUPLE3": lambda _: self._tuple(3),
            "EMPTY_DICT": lambda _: self._push({}),
            "DICT": lambda _: self._push(_paired(self._marked())),
            "SETITEM": lambda _: self._update([self.pop(), self.pop()][::-1]),
            "SETITEMS": lambda _: self._update(self._marked()),
            "MEMOIZE": lambda _: self._put(len(self._memory)),
            "PUT": self._put,
            "BINPUT": self._put,
            "LONG_BINPUT": self._put,
            "GET": self._get,
            "BINGET": self._get,
            "LONG_BINGET": self._get,
            "GLOBAL": lambda text: self._push(Name(*text.split(" ", 1))),
            "STACK_GLOBAL": lambda _: self._name(),
            "REDUCE": lambda _: self._call(),
            "NEWOBJ": lambda _: self._call(),
            "BUILD": lambda _: self._build(),
        }

    def do(self, name: str, argument: Any) -> None:
        """Follow one instruction."""
        if name in _LITERALS:
            self._push(argument)
        elif name in _CONSTANTS:
            self._push(_CONSTANTS[name])
        elif name not in _IGNORED:
            if name not in self._doing:
                raise ValueError(f"the pickle has the instruction {name}")
            self._doing[name](argument)

    def pop(self) -> Any:
        """Take the last value."""
        return self._stack.pop()

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _drop(self) -> None:
        if self._stack:
            self._stack.pop()
        else:
            self._stack = self._below.pop()

    def _mark(self) -> None:
        self._below.append(self._stack)
        self._stack = []

    def _marked(self) -> list[Any]:
        values, self._stack = self._stack, self._below.pop()
        return values

    def _tuple(self, count: int) -> None:
        values = [self.pop() for _ in range(count)]
        self._push(tuple(reversed(values)))

    def _extend(self, values: list[Any]) -> None:
        if isinstance(self._stack[-1], list):
            self._stack[-1].extend(values)

    def _update(self, values: list[Any]) -> None:
        if isinstance(self._stack[-1], dict):
            self._stack[-1].update(_paired(values))

    def _put(self, place: int) -> None:
        self._memory[place] = self._stack[-1]

    def _get(self, place: int) -> None:
        self._push(self._memory[place])

    def _name(self) -> None:
        name, module = self.pop(), self.pop()
        self._push(Name(str(module), str(name)))

    def _call(self) -> None:
        arguments, function = self.pop(), self.pop()
        self._push(Call(function, arguments))

    def _build(self) -> None:
        state = self.pop()
        if isinstance(self._stack[-1], Call):
            self._stack[-1].state = state


def _paired(values: list[Any]) -> dict[Any, Any]:
    """Make a dictionary of keys and values that follow each other; only texts are keys here."""
    pairs = zip(values[::2], values[1::2], strict=True)
    return {key: value for key, value in pairs if isinstance(key, str)}
