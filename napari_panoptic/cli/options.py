"""Options that several commands share.

Modules that take long to import are imported where an option needs them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from napari_panoptic.cli.parser import add_choice, png, positive
from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.text import english_list
from napari_panoptic.io.files.guard import DEFAULT_PX, VARIABLE
from napari_panoptic.values.conventions import DEFAULT_PROTOCOL, Mistake
from napari_panoptic.values.settings import (
    PROTOCOLS,
    AmbiguousPolicy,
    Matching,
    Outlines,
    Overlaps,
    Restoration,
)

_METRIC_ALIASES = {"f1": "detection_f1"}


def add_cohort(parser: argparse.ArgumentParser, *, or_pair: bool = False) -> None:
    """Add the cohort; optionally the files of one image in its place."""
    parser.add_argument(
        "cohort",
        type=Path,
        metavar="COHORT",
        nargs="?" if or_pair else None,
        help="a folder in the layout of MoNuSAC 2020, PanNuke, CoNIC, COCO panoptic, QUBIQ or "
        "MITOS-ATYPIA-14, or with a cohort.toml",
    )
    parser.add_argument(
        "--allow-outside",
        action="store_true",
        help="follow links that lead out of the cohort's folder (default: no, since they could "
        "lead to anything on this machine)",
    )
    parser.add_argument(
        "--max-pixels",
        type=positive,
        metavar="PX",
        help="images of more pixels are not decoded as a whole: a small file can claim or inflate "
        f"to more than there is memory for (default: {VARIABLE} of the environment, else "
        f"{DEFAULT_PX})",
    )
    if or_pair:
        _add_pair(parser)


def _add_pair(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "two files in place of a COHORT",
        "Compare predictions with an annotation of one image, in any readable format. Teams are "
        "named after their files.",
    )
    group.add_argument("--reference", type=Path, metavar="FILE", help="the annotation")
    group.add_argument(
        "--prediction",
        type=Path,
        nargs="+",
        action="extend",
        metavar="FILE",
        help="the predictions, one file per team; may be repeated",
    )
    group.add_argument(
        "--image",
        type=Path,
        metavar="FILE",
        help="the image; outlines need it, unless a label image tells the size",
    )
    group.add_argument(
        "--classes",
        metavar="A,B|TABLE",
        help="names of the classes, separated by commas, or a CSV or JSON table of id and class "
        "for label images without one beside them (default: the classes that the files state, if "
        "all of them do; else one class)",
    )


def check_cohort_or_pair(options: argparse.Namespace) -> None:
    """Check that either a cohort or the files of a pair were given.

    Raises
    ------
    SettingsError
        For neither, both, or half a pair.
    """
    of_pair = {name: getattr(options, name) for name in ("reference", "prediction", "image")}
    of_pair["classes"] = options.classes
    given = [f"--{name}" for name, value in of_pair.items() if value is not None]
    if options.cohort is not None and given:
        raise SettingsError(
            f"give a COHORT or {english_list(given)}, not both; found COHORT '{options.cohort}'"
        )
    if options.cohort is None and not given:
        raise SettingsError("give a COHORT, or --reference FILE and --prediction FILE")
    if options.cohort is None and (options.reference is None or options.prediction is None):
        missing = "--prediction" if options.prediction is None else "--reference"
        raise SettingsError(f"{missing} FILE is missing beside {english_list(given)}")


def add_output(
    parser: argparse.ArgumentParser,
    metavar: str = "DIR",
    meaning: str = "folder for the tables",
    *,
    required: bool = True,
) -> None:
    """Add where the results are written."""
    parser.add_argument(
        "-o", "--output", type=Path, required=required, metavar=metavar, help=meaning
    )


def add_metric(parser: argparse.ArgumentParser) -> None:
    """Add the metric of patients that decides; see `metric_from`."""
    from napari_panoptic.nuclei.metrics import METRIC_NAMES

    names = [*METRIC_NAMES, *_METRIC_ALIASES]
    parser.add_argument(
        "--metric",
        choices=names,
        default="pq",
        metavar="NAME",
        help=f"the metric that decides: {english_list(names, limit=99)} (default: %(default)s)",
    )


def metric_from(options: argparse.Namespace) -> str:
    """Return the name of the metric that decides."""
    return _METRIC_ALIASES.get(options.metric, str(options.metric))


def add_metadata(parser: argparse.ArgumentParser, use: str = "") -> None:
    """Add the option for the table of patients; see `inputs.metadata_from`."""
    from napari_panoptic.io.tables.metadata import METADATA_FILE

    parser.add_argument(
        "--metadata",
        type=Path,
        metavar="FILE",
        help=f"a table with a column patient and others, such as organ{use} (default: "
        f"{METADATA_FILE} in the cohort's folder, if it is there)",
    )


def add_screenshot(parser: argparse.ArgumentParser) -> None:
    """Add the file for a picture of the window."""
    parser.add_argument(
        "--screenshot",
        type=png,
        metavar="PNG",
        help="save a picture of the window when everything is shown, then close it",
    )


def add_teams_and_protocol(parser: argparse.ArgumentParser) -> None:
    """Add which teams are evaluated, by which protocol, and in which form."""
    parser.add_argument(
        "--teams",
        metavar="A,B",
        help="names of teams, separated by commas (default: all; the annotation's own "
        "colour-coded version only if it is named)",
    )
    add_protocol(parser)


NO_PROTOCOL = (DEFAULT_PROTOCOL, None)
"""The values of ``--protocol`` and ``--correct`` where neither was given."""


def add_protocol(parser: argparse.ArgumentParser, *, is_offered: bool = True) -> None:
    """Add the options for the protocol and the format of the predictions.

    Parameters
    ----------
    parser
        Of the command.
    is_offered
        Whether the help lists those for the protocol; a command without effect refuses them.
    """
    hidden = None if is_offered else argparse.SUPPRESS
    parser.add_argument(
        "--protocol",
        metavar="NAME",
        default=DEFAULT_PROTOCOL,
        help=hidden
        or f"convention that gives the score: {english_list(list(PROTOCOLS), limit=99)}, or "
        "monusac-2020-as-run with corrections after it, each behind a '+' (default: "
        "%(default)s)",
    )
    parser.add_argument(
        "--correct",
        metavar="LIST",
        help=hidden
        or "with --protocol monusac-2020-as-run: which errors of the challenge's scoring to "
        f"correct, separated by commas: {english_list([c.value for c in Mistake])}",
    )
    add_source(parser)


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add the option for the format of the predictions."""
    from napari_panoptic.io.formats.registry import known_forms

    parser.add_argument(
        "--source",
        choices=[form.name for form in known_forms().values() if form.open is not None],
        help="which format of the predictions to read (default: the first of these that is there)",
    )


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options for reading objects, to commands that match them by the usual rules."""
    add_source(parser)
    add_restoration(parser)


def add_restoration(
    parser: argparse.ArgumentParser, *, default: Restoration = Restoration.BORDER_REMOVED
) -> None:
    """Add how objects of colour-coded masks are recovered."""
    meaning = "how objects of colour-coded masks are recovered"
    add_choice(parser, "--restoration", Restoration, meaning, default)
    parser.add_argument(
        "--radius",
        type=int,
        metavar="N",
        help="pixels by which border-dilated grows objects; negative shrinks (default: 1)",
    )


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Add how objects are recovered, matched, and excluded."""
    add_restoration(parser)
    add_matching(parser)
    add_overlaps(parser)


def add_matching(parser: argparse.ArgumentParser) -> None:
    """Add how objects are matched, and excluded."""
    add_choice(parser, "--matching", Matching, "which prediction belongs to which nucleus")
    parser.add_argument(
        "--iou-threshold",
        type=float,
        metavar="T",
        help="overlap that strict-iou must exceed, between 0 and 1 (default: 0.5)",
    )
    add_choice(parser, "--ambiguous", AmbiguousPolicy, "how ambiguous areas are treated")
    add_uncertain(parser)


def add_uncertain(parser: argparse.ArgumentParser) -> None:
    """Add what is left out since it is uncertain: mostly ambiguous objects, and borders."""
    parser.add_argument(
        "--ambiguous-share",
        type=float,
        metavar="S",
        help="share of an object's area in ambiguous areas above which it is ignored, from 0 to 1; "
        "not with keep (default: 0.5 with majority, else 1)",
    )
    parser.add_argument(
        "--zone",
        dest="zone_px",
        type=int,
        metavar="N",
        help="leave out the uncertain border: all pixels up to N px away from the edge of an "
        "annotated nucleus, on either side of it (default: 0)",
    )


def add_rules_of_objects(parser: argparse.ArgumentParser, *, with_protocol: bool) -> None:
    """Add how objects are matched, for commands in which distances have no effect."""
    add_protocol(parser, is_offered=with_protocol)
    add_rules(parser)
    parser.set_defaults(no_distances=True, outlines=None)


def add_evaluation(parser: argparse.ArgumentParser, *, resumes: bool) -> None:
    """Add which teams are evaluated, by which rules, and how the work is done."""
    add_teams_and_protocol(parser)
    add_rules(parser)
    add_choice(parser, "--outlines", Outlines, "which outlines the Hausdorff distance compares")
    if resumes:
        add_run(parser)
    else:
        add_jobs(parser)
    parser.add_argument(
        "--no-distances", action="store_true", help="leave out the Hausdorff distances (faster)"
    )
    add_held(parser)


def add_overlaps(parser: argparse.ArgumentParser) -> None:
    """Add how pixels of several objects are treated."""
    add_choice(parser, "--overlaps", Overlaps, "how pixels that several objects claim are treated")


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add how the regions are processed."""
    add_jobs(parser)
    parser.add_argument(
        "--resume",
        action=argparse.BooleanOptionalAction,
        help="reuse what an interrupted run with the same output has finished, if neither files "
        "nor settings have changed (default: yes; with detections and several raters each run "
        "starts from the beginning)",
    )


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add how many regions are processed at a time, and where."""
    from napari_panoptic.nuclei.regions.run import AUTO, PROCESSES, THREADS

    parser.add_argument(
        "--jobs",
        type=positive,
        metavar="N",
        help="regions evaluated at a time (default: one per processor; on a cluster, two per "
        "thread, working or waiting); of several raters, structures of cases (default: one per "
        "processor, at most 4)",
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        default=AUTO,
        help="run on the Dask cluster with its scheduler there, such as tcp://10.0.0.5:8786; or "
        f"{THREADS} or {PROCESSES} of this machine (default: threads, and processes if the "
        "rest takes long enough)",
    )


def add_held(parser: argparse.ArgumentParser, *, are_left_out: bool = False) -> None:
    """Add the size up to which regions are read as a whole, and what happens to larger ones."""
    from napari_panoptic.values.reading import HELD_UP_TO_PX

    windows = (
        "read in windows, never as a whole; with the same figures, but only for formats that can "
        "be read so: see docs/reference/formats.md"
    )
    parser.add_argument(
        "--held-up-to",
        type=positive,
        default=HELD_UP_TO_PX,
        metavar="PX",
        help=f"regions of more pixels are {'left out and reported' if are_left_out else windows} "
        "(default: %(default)s)",
    )


def add_detections(parser: argparse.ArgumentParser) -> None:
    """Add how detections are matched."""
    parser.add_argument(
        "--distance-um",
        type=float,
        metavar="D",
        help="detections: largest distance of a detection from an annotated point, inclusive "
        "(default: 8)",
    )
    parser.add_argument(
        "--confidence",
        type=float,
        metavar="T",
        help="detections: leave out those below this confidence (default: all count)",
    )
