"""The cohort, teams and settings of nuclei that the options of a command name."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from napari_panoptic.cli.console import chosen_teams, words
from napari_panoptic.cli.tasks import check_task
from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.text import english_list
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.cohorts.pair import pair_cohort
from napari_panoptic.io.tables.metadata import Metadata, metadata_beside, read_metadata
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.conventions import CHALLENGE_PROTOCOL, DEFAULT_PROTOCOL, corrections_of
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.settings import (
    EvaluationSettings,
    Restoration,
    protocol,
)


def cohort_from(options: argparse.Namespace) -> Cohort:
    """Open the cohort, or make one of the two files given in its place."""
    if getattr(options, "reference", None) is None:
        return open_cohort(options.cohort, allow_outside=options.allow_outside)
    classes = options.classes
    is_table = classes is not None and Path(classes).is_file()
    return pair_cohort(
        options.reference,
        options.prediction,
        image=options.image,
        classes=None if classes is None or is_table else words(classes),
        class_table=Path(classes) if is_table else None,
    )


def nuclei_from(options: argparse.Namespace) -> Cohort:
    """Open a cohort, or two files in its place, for a command that is for nuclei only."""
    check_task(options)
    return cohort_from(options)


def team_names_from(cohort: Cohort, wanted: str | None) -> tuple[str, ...]:
    """Return the named teams; by default those that compete."""
    usual = [team.name for team in cohort.competing_teams]
    return chosen_teams(wanted, usual, cohort.checked_team)


def metadata_from(options: argparse.Namespace, cohort: Cohort) -> Metadata | None:
    """Return the table of patients that is given, or is in the cohort's folder."""
    if options.metadata is None:
        return metadata_beside(cohort.root, cohort.patients)
    return read_metadata(options.metadata, cohort.patients)


def source_from(options: argparse.Namespace, cohort: Cohort, names: Sequence[str]) -> Source | None:
    """Return the requested format of predictions.

    Raises
    ------
    SettingsError
        If these teams have predictions, but none in this form.
    """
    if options.source is None:
        return None
    source = Source(options.source)
    given = [forms for (team, _), forms in cohort.predictions.items() if team in names]
    there = sorted({str(form) for forms in given for form in forms})
    if there and source not in there:
        raise SettingsError(
            f"--source: no prediction of {english_list(names)} has the format '{source}'; there is "
            f"{english_list(there)}"
        )
    return source


UNCERTAIN = ("ambiguous", "ambiguous_share", "zone_px")
"""The settings of what is uncertain, as options have them."""


def settings_from(options: argparse.Namespace) -> EvaluationSettings:
    """Combine the protocol and the options given beside it.

    Raises
    ------
    SettingsError
        For a value that is not allowed, or options that do not go together.
    """
    settings = protocol_from(options)
    given = restoration_from(options) | {
        name: value
        for name in ("matching", "iou_threshold", *UNCERTAIN, "overlaps", "outlines")
        if (value := getattr(options, name)) is not None
    }
    if options.no_distances:
        given["distances"] = False
    has_own_pairs = settings.convention != DEFAULT_PROTOCOL and not settings.takes_class_masks
    if has_own_pairs and {"matching", "iou_threshold"} & {*given}:
        raise SettingsError(
            f"--protocol {settings.convention} says itself what a pair is: leave --matching and "
            f"--iou-threshold out, or choose --protocol {DEFAULT_PROTOCOL}"
        )
    return settings.replaced(**given)


def reading_from(options: argparse.Namespace, cohort: Cohort, names: Sequence[str]) -> Reading:
    """Return the usual settings with the given restoration, and the format of predictions."""
    settings = EvaluationSettings().replaced(**restoration_from(options))
    return Reading(settings, source_from(options, cohort, names), tuple(names))


def restoration_from(options: argparse.Namespace) -> dict[str, Any]:
    """Return restoration and radius if given; a radius alone means border-dilated."""
    names = ("restoration", "radius")
    given = {n: value for n in names if (value := getattr(options, n)) is not None}
    if "radius" not in given:
        return given
    grown = {"restoration": Restoration.BORDER_DILATED} | given
    if grown["restoration"] != Restoration.BORDER_DILATED:
        raise SettingsError(
            f"--radius: only --restoration {Restoration.BORDER_DILATED} grows objects; "
            f"leave one of the two out"
        )
    return grown


def protocol_from(options: argparse.Namespace) -> EvaluationSettings:
    """Return the settings of the protocol with its corrections.

    Raises
    ------
    SettingsError
        For an unknown protocol, and for corrections of a protocol that has none.
    """
    settings = protocol(options.protocol)
    corrections = corrections_of(settings.convention)
    if options.correct is None:
        return settings
    if corrections is None:
        raise SettingsError(
            "--correct corrects errors of the challenge's scoring: "
            "give --protocol monusac-2020-as-run with it"
        )
    # In addition to those of the protocol.
    wanted = [*map(str, corrections), *words(options.correct)]
    return protocol("+".join([CHALLENGE_PROTOCOL, *wanted]))
