"""What pages list and the code knows: the columns of tables, the options of commands, the keys.

Each function returns Markdown. ``conf.py`` makes a directive of each, whose content is its
argument. Sphinx is not imported here, so that the tests can be run without it.
"""

from __future__ import annotations

import argparse
import pkgutil
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

from napari_panoptic.cli.main import command_parser
from napari_panoptic.features.known import FEATURES
from napari_panoptic.tables.columns import TableSpec

if TYPE_CHECKING:
    from napari_panoptic.viewer.kit.keys import Shortcut

LEAST_COMMANDS = 4
"""An option that at least as many commands have in the same words is explained once."""
MANY_CHOICES = 8


def tables(content: str) -> str:
    """Describe CSV files: each line is ``module:NAME`` of one or several specifications."""
    found = (pkgutil.resolve_name(line) for line in content.split())
    specs = (spec for one in found for spec in ([one] if isinstance(one, TableSpec) else one))
    return "\n\n".join(describe_table(spec) for spec in specs)


def describe_table(spec: TableSpec) -> str:
    """Describe a file; neighbouring columns that explain themselves share a row."""
    rows = []
    for about, columns in groupby(spec.columns, key=lambda column: column.about):
        names = [f"`{key}`" for column in columns for key in column.keys]
        rows.append((", ".join(names), about))
    head = f"**`{spec.file}`**, one row per {spec.row}"
    if len(rows) == 1:
        return f"{head}: {rows[0][0]}" + (f" ({rows[0][1]})" if rows[0][1] else "")
    return f"{head}:\n\n{_markdown_table(('columns', 'meaning'), rows)}"


def features(_: str) -> str:
    """Describe the features of objects; neighbouring ones of one meaning share a row."""
    rows = []
    for (about, is_usual), group in groupby(
        FEATURES.values(), key=lambda f: (f.source, f.is_usual)
    ):
        names = ", ".join(f"`{own.key}`" for own in group)
        rows.append((names, about if is_usual else f"{about}; only with `--features`"))
    rows.append(("others", "columns of `--metadata`, `--covariates` and plugins"))
    return _markdown_table(("feature", "of the whole object, before the ambiguous policy"), rows)


def commands(content: str) -> str:
    """Describe commands, whose names are the words of the content, and the options of each."""
    known = command_parsers()
    return "\n\n".join(_command(known[name]) for name in content.split())


def shared_options(_: str) -> str:
    """Describe the options that many commands have in common."""
    return _markdown_table(("option", "meaning"), _shared_options())


def _command(parser: argparse.ArgumentParser) -> str:
    every, shared = _options(parser), _shared_options()
    own = [option for option in every if option not in shared]
    others = [option[0] for option in every if option in shared]
    parts = [f"```{{rubric}} {parser.prog}\n```", written_in_markdown(parser.description or "")]
    if own:
        parts.append(_markdown_table(("option", "meaning"), own))
    if others:
        parts.append(f"[As in other commands](#options-of-many-commands): {', '.join(others)}.")
    return "\n\n".join(parts)


def command_parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command, with its arguments."""
    (choice,) = (action for action in command_parser()._actions if action.dest == "command")
    in_a_line = {action.dest: action.help for action in choice._choices_actions}
    for name, parser in choice.choices.items():
        command = parser.load()
        parser.description = command.ABOUT or f"{in_a_line[name].capitalize()}."
        command.add_arguments(parser)
    return dict(choice.choices)


@cache
def _shared_options() -> list[tuple[str, str]]:
    """Return the options that many commands have: of each, the most frequent explanation."""
    count = Counter(option for parser in command_parsers().values() for option in _options(parser))
    often: dict[str, str] = {}
    for (written, meaning), number in count.most_common():
        if number >= LEAST_COMMANDS:
            often.setdefault(written, meaning)
    return list(often.items())


def _options(parser: argparse.ArgumentParser) -> list[tuple[str, str]]:
    """Return how each argument is written, and what it means, both in Markdown."""
    found = []
    for action in parser._actions:
        if action.dest == "help" or action.help == argparse.SUPPRESS:
            continue
        names = action.option_strings or [action.metavar or action.dest]
        if action.option_strings and action.nargs != 0 and (action.metavar or not action.choices):
            value = parser._get_formatter()._format_args(action, action.dest.upper())
            names = [f"{name} {value}" for name in names]
        meaning = (action.help or "") % {**vars(action), "prog": parser.prog}
        choices = list(action.choices or ())
        if 0 < len(choices) <= MANY_CHOICES:
            meaning += ": " + ", ".join(f"`{choice}`" for choice in choices)
        found.append((", ".join(f"`{name}`" for name in names), written_in_markdown(meaning)))
    return found


def written_in_markdown(text: str) -> str:
    """Write a text of the terminal in Markdown: options as code, pages as links."""
    text = re.sub(r"(?<![\w`-])(--[a-z][a-z-]*)", r"`\1`", text)
    return re.sub(r"docs/([\w-]+)/([\w-]+)\.md", r"[\2](../\1/\2.md)", text)


def keys(content: str) -> str:
    """List the keys of the window: those of the sections named in the lines of the content."""
    known = key_lists()
    titles = content.splitlines()
    return "\n\n".join(
        (f"**{title}**\n\n" if len(titles) > 1 else "") + "\n".join(known[title])
        for title in titles
    )


def key_lists() -> dict[str, list[str]]:
    """Return the lines of each section; those that bring a panel forward have their own."""
    from napari_panoptic.viewer.desk.nuclei import PARTS  # imports Qt
    from napari_panoptic.viewer.kit import keys as window

    of_parts = [
        (part.title, (*part.single_keys, *(key for key, _ in part.shortcuts()))) for part in PARTS
    ]
    sections = window.key_sections(of_parts)
    raising = [window.panel_shortcut(part.key, part.title) for part in PARTS if part.key]
    raising += [key for key in window.DESK_KEYS if _is_of_panel(key)]
    every = [key for _, lines in sections for key in lines]
    every += [key for key in vars(window).values() if isinstance(key, window.Shortcut)]
    found = {
        title: _key_lines(key for key in lines if key.key and not _is_of_panel(key))
        for title, lines in sections
    }
    titles = sorted((re.sub("bring the (.*) panel forward", r"\1", k.meaning), k) for k in raising)
    found["Panels"] = [f"- {key.text}: {title}" for title, key in titles]
    found["Commands without a key"] = sorted({f"- {key.meaning}" for key in every if not key.key})
    return {title: lines for title, lines in found.items() if lines}


def _is_of_panel(key: Shortcut) -> bool:
    return key.action.startswith("show_")


def _key_lines(shortcuts: Iterable[Shortcut]) -> list[str]:
    """Return a line for each meaning, with all keys that follow each other and have it."""
    return [
        f"- {', '.join(key.text for key in several)}: {meaning}"
        for meaning, several in groupby(shortcuts, key=lambda key: key.meaning)
    ]


def _markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ([text.replace("|", r"\|") for text in line] for line in rows)
    every = [header, ["---"] * len(header), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in every)


DIRECTIVES: dict[str, Callable[[str], str]] = {
    "csv-files": tables,
    "commands": commands,
    "features": features,
    "shared-options": shared_options,
    "window-keys": keys,
}
"""Name of the directive -> what writes its Markdown."""
