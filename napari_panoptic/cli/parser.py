"""Argument parsers that suggest similar words, and checks of single values."""

from __future__ import annotations

import argparse
import itertools
import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NoReturn

from napari_panoptic.common.text import english_list, similar, visible


class Parser(argparse.ArgumentParser):
    """A parser that suggests similar words for a misspelt one."""

    def error(self, message: str) -> NoReturn:
        """Exit with a message; name similar words if one of several was expected."""
        found = re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message)
        if found and (close := similar(found[1], found[2].replace("'", "").split(", "))):
            message += f"; did you mean {' or '.join(close)}?"
        super().error(visible(message))

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Exit with a message about words that were not understood."""
        option = next((word for word in unknown if word.startswith("-")), None)
        if option is None:
            self.error(
                f"too many words: {english_list(unknown)}; a name with spaces needs quotes around "
                "it"
            )
        option = option.partition("=")[0]
        close = similar(option, list(self._option_string_actions))
        hint = f"did you mean {' or '.join(close)}?" if close else f"see '{self.prog} --help'"
        self.error(f"there is no option '{option}'; {hint}")


class CommandParser(Parser):
    """The parser of a command, whose module is imported when the command is used.

    Unknown options are reported before missing arguments.
    """

    load: Callable[[], Any] | None = None
    """Returns what has ``ABOUT``, ``add_arguments`` and ``run``; None once loaded."""
    words: str | None = None
    """The argument that has the words behind options, too: argparse would refuse them there."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse words that look like options and are none, then parse."""
        if self.load is not None:
            command = self.load()
            self.load = None
            self.description = command.ABOUT
            command.add_arguments(self)
            self.set_defaults(parser=self, run=command.run)
        before_names = itertools.takewhile(lambda word: word != "--", args or ())
        if unknown := [word for word in before_names if self._is_unknown(word)]:
            self.refuse(unknown)
        options, rest = super().parse_known_args(args, namespace)
        if self.words is not None:
            given = [*getattr(options, self.words), *(word for word in rest if word != "--")]
            setattr(options, self.words, given)
            rest = []
        return options, rest

    def _is_unknown(self, word: str) -> bool:
        """Return whether a word looks like an option, and is neither one nor its beginning."""
        name = word.partition("=")[0]
        if not re.fullmatch(r"--?[^\W\d][^ ]*", name):
            return False
        known = self._option_string_actions
        if name.startswith("--"):
            return not any(option.startswith(name) for option in known)
        # A value may follow its letter directly, unless a dash was forgotten.
        return name[:2] not in known or f"-{name}" in known


def add_choice(
    parser: argparse.ArgumentParser,
    flag: str,
    vocabulary: type[StrEnum],
    meaning: str,
    default: StrEnum | None = None,
) -> None:
    """Add an option with the values of an enum; by default the first one is the default."""
    words = [member.value for member in vocabulary]
    parser.add_argument(flag, choices=words, help=f"{meaning} (default: {default or words[0]})")


def add_seed(
    parser: argparse.ArgumentParser, meaning: str, *, default: int | None, metavar: str = "S"
) -> None:
    """Add the option for the seed of random numbers."""
    suffix = "" if default is None else " (default: %(default)s)"
    parser.add_argument(
        "--seed", type=seed, default=default, metavar=metavar, help=f"{meaning}{suffix}"
    )


def positive(text: str) -> int:
    """Read a whole number from 1."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, found '{text}'") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, found {number}")
    return number


def seed(text: str) -> int:
    """Read a whole number from 0."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"must be a whole number from 0, found '{text}'")
    return int(text)


def png(text: str) -> Path:
    """Read the name of a PNG file."""
    path = Path(text)
    if path.suffix.casefold() != ".png":
        raise argparse.ArgumentTypeError(
            f"a picture is a PNG file, whose name ends in .png; found '{text}'"
        )
    return path
