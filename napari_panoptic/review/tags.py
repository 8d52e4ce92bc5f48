"""Tags: keywords on an object, kept with its verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

STARTING_TAGS: tuple[str, ...] = (
    "out of focus",
    "overlapping nuclei",
    "mitosis",
    "border of region",
    "staining artefact",
    "ambiguous class",
    "annotation shifted",
    "not a nucleus",
)
"""Offered before the user has any tags."""
MOST_TAGS = 30
"""How many of the user's own tags are remembered."""


def split_tags(text: str) -> list[str]:
    """Return the tags in a text, which commas or semicolons separate, each once."""
    found = (" ".join(tag.split()) for tag in text.replace(";", ",").split(","))
    return list(dict.fromkeys(tag for tag in found if tag))


def joined_tags(tags: Iterable[str]) -> str:
    """Return tags as one text."""
    return ", ".join(tags)


def toggled(text: str, tag: str) -> str:
    """Return a text of tags with a tag added, or removed if it is there."""
    tags = split_tags(text)
    return joined_tags([t for t in tags if t != tag] if tag in tags else [*tags, tag])


def remembered(known: Sequence[str], text: str) -> list[str]:
    """Return the user's own tags after a text of tags was used, the newest first."""
    own = [tag for tag in split_tags(text) if tag not in STARTING_TAGS]
    return list(dict.fromkeys([*own, *known]))[:MOST_TAGS]
