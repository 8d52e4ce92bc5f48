"""The colours of statuses and teams, the same in the window, in plots and in reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.values.cohort import Rgb
from napari_panoptic.values.vocabulary import STATUSES, Status

STATUS_COLOURS: Mapping[Status, Rgb] = {
    Status.TP: (0, 107, 218),
    Status.FP: (212, 48, 4),
    Status.FN: (237, 255, 34),
    Status.MISCLASSIFIED: (53, 200, 133),
    Status.IGNORED: (82, 82, 82),
}
"""Colour of each status. Any two differ by a CIEDE2000 of at least 20, and each
failure by as much from nuclei and stroma, under normal and three kinds of
colour-deficient vision (the tests measure it)."""

ALPHA: Mapping[Status, float] = {
    Status.TP: 0.75,
    Status.FP: 1.0,
    Status.FN: 1.0,
    Status.MISCLASSIFIED: 1.0,
    Status.IGNORED: 0.75,
}
"""Opacity of each status; successes are fainter than failures."""

CLASS_COLOURS: tuple[Rgb, ...] = (
    (255, 75, 255),
    (45, 15, 75),
    (15, 105, 105),
    (150, 150, 165),
    (90, 0, 255),
    (120, 15, 45),
    (255, 180, 255),
    (45, 30, 0),
)
"""Colours of classes, in their order. Each differs by a CIEDE2000 of at least 20 from FP, FN
and misclassified under normal and three kinds of colour-deficient vision, and from TP and
ignored under normal vision (the tests measure it)."""

TEAM_COLOURS: tuple[Rgb, ...] = (
    (0, 68, 136),
    (238, 136, 17),
    (102, 170, 221),
    (136, 68, 85),
    (204, 34, 0),
    (119, 68, 255),
    (68, 0, 0),
    (0, 0, 68),
)
"""Colours of teams, in their order. Any two differ by a CIEDE2000 of at least 17
under normal and three kinds of colour-deficient vision (the tests measure it)."""

TEAM_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Matplotlib's markers of teams, for colour-independent distinction."""


@dataclass(frozen=True)
class TeamStyle:
    """The style of a team in every plot."""

    #: As ``#rrggbb``.
    colour: str
    #: One of `TEAM_MARKERS`.
    marker: str


def team_styles(teams: Sequence[str]) -> dict[str, TeamStyle]:
    """Return the colour and marker of each team.

    Parameters
    ----------
    teams
        All teams of the cohort, in its order, so that the style does not depend on
        which teams a plot shows. From the ninth team on, colours repeat with other
        markers.
    """
    n_colours, n_markers = len(TEAM_COLOURS), len(TEAM_MARKERS)
    return {
        team: TeamStyle(
            colour=hex_colour(TEAM_COLOURS[place % n_colours]),
            marker=TEAM_MARKERS[(place + place // n_colours) % n_markers],
        )
        for place, team in enumerate(teams)
    }


def class_colours(count: int) -> tuple[Rgb, ...]:
    """Return the display colours of the classes, in their order.

    They differ from those of `ClassScheme` for colour-coded files, some of which look
    like a status. From the ninth class on, colours repeat.
    """
    return tuple(CLASS_COLOURS[number % len(CLASS_COLOURS)] for number in range(count))


def hex_colour(rgb: Rgb) -> str:
    """Write a colour as ``#rrggbb``."""
    return "#{:02x}{:02x}{:02x}".format(*rgb)


def rgba_table(colours: Sequence[Rgb]) -> NDArray[np.float32]:
    """Return opaque RGBA rows (0-1), float32 (n, 4)."""
    table = np.ones((len(colours), 4), np.float32)
    table[:, :3] = np.asarray(colours, np.float32).reshape(-1, 3) / np.float32(255)
    return table


def status_colour_table() -> NDArray[np.float32]:
    """Return one RGBA row (0-1) per status code, float32 (statuses, 4)."""
    table = rgba_table([STATUS_COLOURS[status] for status in STATUSES])
    table[:, 3] = [ALPHA[status] for status in STATUSES]
    return table
