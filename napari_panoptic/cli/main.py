"""The command ``napari-panoptic``: view, evaluate, report, dump, convert, init, sample, demo."""

from __future__ import annotations

import argparse
import itertools
import math
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, NoReturn, Self

from tqdm import tqdm

from napari_panoptic import __version__
from napari_panoptic.cli.console import (
    check_report,
    chosen_teams,
    readers_may_end,
    report_date,
    report_findings,
    tables_in,
    words,
)
from napari_panoptic.common.errors import (
    CohortError,
    PanopticError,
    SettingsError,
    checked_name,
    english_list,
    similar,
)
from napari_panoptic.common.visible import visible
from napari_panoptic.io.challenge_dump import MONUSAC_2020_TEST_ORGANS, read_dump, read_organs
from napari_panoptic.io.cohorts.description import DESCRIPTION
from napari_panoptic.io.cohorts.folder_scan import scan_folder, write_description
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.cohorts.pair import pair_cohort
from napari_panoptic.io.cohorts.tasks import task_of
from napari_panoptic.io.formats.registry import known_forms
from napari_panoptic.io.formats.saving import check_not_in_cohort
from napari_panoptic.io.guard import DEFAULT_PX, VARIABLE, largest_px
from napari_panoptic.io.locking import held_alone
from napari_panoptic.io.metadata import (
    METADATA_FILE,
    Metadata,
    metadata_beside,
    read_metadata,
)
from napari_panoptic.nuclei.cohort_evaluation import CohortEvaluation, InputWatch
from napari_panoptic.nuclei.cohort_report import (
    ReportRequest,
    cohort_report,
    n_passes,
    remove_kept,
)
from napari_panoptic.nuclei.conditions import Condition
from napari_panoptic.nuclei.conversion import Conversion, convert, form_to_write
from napari_panoptic.nuclei.experiment import Experiment
from napari_panoptic.nuclei.reading import HELD_UP_TO_PX
from napari_panoptic.nuclei.result_store import PartStore
from napari_panoptic.nuclei.results import ObjectsFile, RegionResult
from napari_panoptic.nuclei.run import AUTO, PROCESSES, THREADS, RegionDone, run_regions
from napari_panoptic.nuclei.values.cohort import Cohort, Source, Task
from napari_panoptic.nuclei.values.settings import (
    DEFAULT_PROTOCOL,
    PROTOCOLS,
    AmbiguousPolicy,
    Correction,
    EvaluationSettings,
    Matching,
    Outlines,
    Overlaps,
    Restoration,
    Scoring,
    protocol,
)
from napari_panoptic.report.dump.tables import TABLE_NAMES as DUMP_TABLE_NAMES
from napari_panoptic.report.dump.tables import DumpEvaluation, write_dump_tables
from napari_panoptic.report.dump.text import dump_text
from napari_panoptic.report.nuclei.tables import TABLE_NAMES, remove_unfinished, write_tables
from napari_panoptic.report.writing import RECORD
from napari_panoptic.samples.write import SAMPLES, write_sample
from napari_panoptic.statistics.bootstrap import SEED
from napari_panoptic.statistics.friedman import MissingRule

_STORE, _LOCK = ".parts", ".lock"
Command = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        Without the program's name; those of the process where None.

    Returns
    -------
    int
        0 when it was done; 1 when nothing could be done with the files, or on this machine, as
        they are; 2 for a mistake in the arguments: a word that is misspelt or lacking, a value
        that an option cannot have, a name that the cohort does not have, or a command or option
        that does not suit it; 130 when it was stopped.
    """
    with readers_may_end():
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    parser = _parser()
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        getattr(options, "parser", parser).refuse(unknown)
    if options.command is None:
        parser.print_help()
        return 2
    if getattr(options, "max_pixels", None) is not None:
        os.environ[VARIABLE] = str(options.max_pixels)  # other processes inherit it
    try:
        if hasattr(options, "max_pixels"):
            largest_px()  # the environment may say something else than a number
        return int(options.run(options))
    except SettingsError as error:
        parser.exit(2, f"napari-panoptic: {error}\n")
    except PanopticError as error:
        print(f"napari-panoptic: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("napari-panoptic: stopped", file=sys.stderr)
        return 130


class _Parser(argparse.ArgumentParser):
    """A parser that names what somebody may have meant who misspelt a word."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, with similar words where one of several was expected."""
        found = re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message)
        if found and (close := similar(found[1], found[2].replace("'", "").split(", "))):
            message += f"; did you mean {' or '.join(close)}?"
        super().error(message)

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Say what words are of no use here."""
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


class _CommandParser(_Parser):
    """The parser of a command: what is misspelt is told before what is then lacking."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse words that look like options and are none, then parse as ever."""
        before_names = itertools.takewhile(lambda word: word != "--", args or ())
        if unknown := [word for word in before_names if self._is_unknown(word)]:
            self.refuse(unknown)
        return super().parse_known_args(args, namespace)

    def _is_unknown(self, word: str) -> bool:
        """Return whether a word is read as an option, and is neither one nor the start of one."""
        name = word.partition("=")[0]
        if not re.fullmatch(r"--?[^\W\d][^ ]*", name):
            return False
        known = self._option_string_actions
        if name.startswith("--"):
            return not any(option.startswith(name) for option in known)
        # A value may follow its letter at once; not where a dash was forgotten.
        return name[:2] not in known or f"-{name}" in known


def _parser() -> _Parser:
    parser = _Parser(
        prog="napari-panoptic",
        description="See why a nucleus segmentation failed: open a challenge's regions with "
        "their annotations and the teams' predictions, colour every nucleus by what became of "
        "it, and compute the same figures as tables.",
        epilog="Exit status of every command: 0 done, 1 nothing could be done with the files, or "
        "on this machine, as they are, 2 a mistake in the command, such as a misspelt word or a "
        "name that the cohort does not have.",
    )
    parser.add_argument("--version", action="version", version=f"napari-panoptic {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_CommandParser)
    _add_view(commands.add_parser("view", help="open a cohort in a window"))
    _add_evaluate(
        commands.add_parser(
            "evaluate",
            help="write the figures of a whole cohort as CSV tables",
            description="Match every predicted nucleus with every annotated one, and write "
            "objects.csv, regions.csv, patients.csv, patients_by_class.csv, teams.csv, "
            "confusion.csv and evaluation.json; or, of a cohort of detections, detections.csv, "
            "frames.csv, patients.csv, teams.csv, curve.csv, atypia.csv and evaluation.json. "
            "What cannot be read is listed, and the rest is evaluated. Exit status: 0 done, "
            "1 nothing could be evaluated, 2 wrong arguments.",
        )
    )
    _add_report(
        commands.add_parser(
            "report",
            help="write everything about a whole cohort as one HTML file",
            description="Evaluate a cohort under every version of the challenge's scoring, ways "
            "to average, restorations, rules, radii, thresholds and shifts, and write all tables, "
            "plots and pictures of the worst failures into one HTML file that needs nothing "
            "beside it. Exit status: 0 done, 1 nothing could be evaluated or written, 2 wrong "
            "arguments.",
        )
    )
    _add_dump(
        commands.add_parser(
            "dump",
            help="score the organisers' own output of PQ per mask",
            description="Read the PQ per team, region and class that the organisers of MoNuSAC "
            "2020 published as their notebook printed them, and show the leaderboard, the figures "
            "by organ and class, and whether teams differ over patients.",
        )
    )
    _add_convert(
        commands.add_parser(
            "convert",
            help="write all regions of a team, or of the annotation, in another format",
            description="Read every region of a team's predictions, or of the annotation, and "
            "write them in another format: all of them or, after an error, none. Exit status: "
            "0 done, 1 nothing was written, 2 wrong arguments.",
        )
    )
    init = commands.add_parser(
        "init",
        help="describe a folder of your own in a cohort.toml",
        description="Scan a folder for images, annotations and predictions, report what is "
        "recognised, and write a commented cohort.toml into it. Exit status: 0 written, or not "
        "needed; 1 something was not found, and nothing was written; 2 wrong arguments.",
    )
    init.add_argument("folder", type=Path, metavar="FOLDER", help="the folder to scan")
    init.add_argument(
        "--reference",
        metavar="FOLDER",
        help="the folder in it with the annotation (default: recognised by its name)",
    )
    init.set_defaults(run=_init)
    sample = commands.add_parser("sample", help="write the built-in sample cohort into a folder")
    sample.add_argument("folder", type=Path, metavar="FOLDER", help="made where it is not there")
    sample.add_argument(
        "--task",
        choices=[str(task) for task in SAMPLES],
        default=str(Task.NUCLEI),
        help="what it is about (default: %(default)s)",
    )
    sample.set_defaults(run=_sample)
    demo = commands.add_parser("demo", help="open the built-in sample cohort in a window")
    demo.add_argument(
        "--cohort",
        type=Path,
        metavar="FOLDER",
        help="write the sample cohort there and keep it (default: a temporary folder)",
    )
    _add_screenshot(demo)
    demo.set_defaults(run=_demo)
    for own in commands.choices.values():
        own.set_defaults(parser=own)
    return parser


def _add_cohort(parser: argparse.ArgumentParser, *, or_pair: bool = False) -> None:
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
        type=_positive,
        metavar="PX",
        help="images of more pixels are not decoded as a whole: a small file can claim or inflate "
        f"to more than there is memory for (default: {VARIABLE} of the environment, else "
        f"{DEFAULT_PX})",
    )
    if or_pair:
        _add_pair(parser)


def _add_pair(parser: argparse.ArgumentParser) -> None:
    """Add the files of one image, which may be given in place of a cohort."""
    group = parser.add_argument_group(
        "two files in place of a COHORT",
        "Compare predictions with an annotation of one image. Any readable format will do; teams "
        "are named after their files.",
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


def _cohort_from(options: argparse.Namespace) -> Cohort:
    """Open the cohort of nuclei that was named, or make one of the files that were given."""
    if options.reference is None:
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


def _check_input(options: argparse.Namespace) -> None:
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


def _check_not_given(options: argparse.Namespace) -> None:
    """Check that the picture of the window replaces none of the files that are compared."""
    given = [options.reference, *options.prediction, *filter(None, [options.image])]
    if options.screenshot.resolve() in [path.resolve() for path in given]:
        raise SettingsError(f"--screenshot would replace {options.screenshot}; choose another name")


def _add_screenshot(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--screenshot",
        type=_png,
        metavar="PNG",
        help="save a picture of the window when all is shown, then close",
    )


def _png(text: str) -> Path:
    path = Path(text)
    if path.suffix.casefold() != ".png":
        raise argparse.ArgumentTypeError(
            f"a picture is a PNG file, whose name ends in .png; found '{text}'"
        )
    return path


def _add_view(parser: argparse.ArgumentParser) -> None:
    _add_cohort(parser, or_pair=True)
    parser.add_argument("--region", metavar="NAME", help="the region to open (default: the first)")
    _add_screenshot(parser)
    parser.set_defaults(run=_view)


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    _add_cohort(parser, or_pair=True)
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help="folder for the tables"
    )
    _add_what(parser)
    _choice(parser, "--restoration", Restoration, "how objects of colour-coded masks are recovered")
    _add_radius(parser)
    _choice(parser, "--matching", Matching, "which prediction belongs to which nucleus")
    parser.add_argument(
        "--iou-threshold",
        type=float,
        metavar="T",
        help="overlap that strict-iou must exceed, between 0 and 1 (default: 0.5)",
    )
    _choice(parser, "--ambiguous", AmbiguousPolicy, "what becomes of ambiguous areas")
    _add_overlaps(parser)
    _choice(parser, "--outlines", Outlines, "which outlines the Hausdorff distance compares")
    _add_run(parser)
    parser.add_argument(
        "--no-distances",
        action="store_true",
        help="leave the Hausdorff distances out (faster)",
    )
    _add_held(parser)
    _add_detections(parser)
    _set_run(parser, _evaluate)


def _add_radius(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--radius",
        type=int,
        metavar="N",
        help="pixels by which border-dilated grows objects; negative shrinks (default: 1)",
    )


def _add_overlaps(parser: argparse.ArgumentParser) -> None:
    _choice(parser, "--overlaps", Overlaps, "what becomes of pixels that several objects claim")


def _add_detections(parser: argparse.ArgumentParser) -> None:
    """Add how detections are judged."""
    parser.add_argument(
        "--distance-um",
        type=float,
        metavar="D",
        help="detections: how far one may lie from an annotated point, this distance included "
        "(default: 8)",
    )
    parser.add_argument(
        "--confidence",
        type=float,
        metavar="T",
        help="detections: leave out those below this confidence (default: all count)",
    )


def _set_run(parser: argparse.ArgumentParser, command: Command) -> None:
    """Say what is run, and what options are where they are not given."""
    without_effect = (name for names in _WITHOUT_EFFECT.values() for name in names)
    defaults = {name: parser.get_default(name) for name in (*_ONLY_FOR, *without_effect)}
    parser.set_defaults(run=command, defaults=defaults)


def _add_held(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--held-up-to",
        type=_positive,
        default=HELD_UP_TO_PX,
        metavar="PX",
        help="regions of more pixels are read in windows, never as a whole; with the same figures, "
        "but only for formats that can be read so: see docs/formats.md (default: %(default)s)",
    )


def _add_what(parser: argparse.ArgumentParser) -> None:
    """Add which teams, by which protocol, and in which form."""
    parser.add_argument(
        "--teams",
        metavar="A,B",
        help="names of teams, separated by commas (default: all; the annotation's own "
        "colour-coded version only if it is named)",
    )
    parser.add_argument(
        "--protocol",
        metavar="NAME",
        default=DEFAULT_PROTOCOL,
        help=f"named settings to start from: {english_list(list(PROTOCOLS))}, or "
        "monusac-2020-as-run with corrections after it, each behind a '+'; options given "
        "beside it override it (default: %(default)s)",
    )
    parser.add_argument(
        "--correct",
        metavar="LIST",
        help="with --protocol monusac-2020-as-run: which errors of the challenge's scoring to "
        f"correct, separated by commas: {english_list([c.value for c in Correction])}",
    )
    _add_source(parser)


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--source",
        choices=[form.name for form in known_forms().values() if form.load is not None],
        help="which form of the predictions to read (default: the first of these that is there)",
    )


def _add_run(parser: argparse.ArgumentParser) -> None:
    """Add how all regions are gone over."""
    parser.add_argument(
        "--jobs",
        type=_positive,
        metavar="N",
        help="regions evaluated at a time (default: one per processor; on a cluster, two per "
        "thread in work or waiting); of several raters, structures of cases (default: one per "
        "processor, at most 4)",
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        default=AUTO,
        help="run on the Dask cluster with its scheduler there, such as tcp://10.0.0.5:8786; or "
        f"{THREADS} or {PROCESSES} of this machine (default: threads, and processes where the "
        "rest takes long enough)",
    )
    parser.add_argument(
        "--resume",
        action=argparse.BooleanOptionalAction,
        help="take over what an interrupted run with the same output has left, as far as neither "
        "files nor settings have changed (default: yes; with detections and several raters each "
        "run begins anew)",
    )


def _add_report(parser: argparse.ArgumentParser) -> None:
    _add_cohort(parser, or_pair=True)
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE.html", help="the file to write"
    )
    _add_what(parser)
    _add_overlaps(parser)
    parser.add_argument(
        "--metadata",
        type=Path,
        metavar="FILE",
        help="a table with a column patient and others, such as organ, by which patients are "
        f"grouped (default: {METADATA_FILE} in the cohort's folder, where it is there)",
    )
    parser.add_argument(
        "--group",
        default="",
        metavar="COLUMN",
        help="the column to group patients by (default: organ where there is one, else the first)",
    )
    _add_run(parser)
    _add_held(parser)
    parser.add_argument(
        "--date",
        action="store_true",
        help="write today's date into the report; without it the same files give the same report",
    )
    _add_detections(parser)
    _set_run(parser, _report)


def _report_nuclei(options: argparse.Namespace) -> int:
    settings = _protocol_from(options)
    if options.overlaps is not None:
        settings = settings.replaced(overlaps=options.overlaps)
    check_report(options.output, options.cohort or options.reference)
    cohort = _cohort_from(options)
    names = tuple(_team_names(cohort, options.teams))
    if options.metadata is not None:
        metadata: Metadata | None = read_metadata(options.metadata, cohort.patients)
    else:
        metadata = metadata_beside(cohort.root, cohort.patients)
    request = ReportRequest(
        cohort,
        settings,
        options.protocol,
        names,
        _source_from(options, cohort, names),
        metadata,
        options.group,
        options.held_up_to,
    )
    store = options.output.with_name(f".{options.output.name}{_STORE}")
    lock = options.output.with_name(f".{options.output.name}{_LOCK}")
    with held_alone(lock, "a report", "choose another --output"):
        return _report_alone(options, request, store)


def _report_alone(options: argparse.Namespace, request: ReportRequest, store: Path) -> int:
    """Write a report that nobody else writes meanwhile."""
    # matplotlib takes long to import: only the report needs it.
    from napari_panoptic.report.nuclei.page import write_report

    if options.resume is False:
        remove_kept(store)
    remove_unfinished(options.output.parent, [options.output.name])
    try:
        with _Progress(request.cohort, n_passes()) as progress:
            found = cohort_report(
                request,
                jobs=options.jobs,
                scheduler=options.scheduler,
                store=store,
                on_result=progress.on_result,
            )
        if found is None:
            return 1
        report_findings(found.findings, "the report")
        write_report(found, options.output, date=report_date(is_wanted=options.date))
    except KeyboardInterrupt:
        return _stopped()
    remove_kept(store)
    print(visible(f"report written to {options.output}"))
    return 0


def _choice(
    parser: argparse.ArgumentParser,
    flag: str,
    vocabulary: type[StrEnum],
    meaning: str,
) -> None:
    words = [member.value for member in vocabulary]
    parser.add_argument(flag, choices=words, help=f"{meaning} (default: {words[0]})")


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, found '{text}'") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, found {number}")
    return number


def _add_dump(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="the organisers' output")
    parser.add_argument(
        "--metadata",
        type=Path,
        metavar="CSV",
        help="a table with the columns patient and organ "
        "(default: the organs of the MoNuSAC 2020 test set)",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="write leaderboard.csv, by_organ.csv, patients.csv, pairs.csv and statistics.json "
        "there",
    )
    parser.add_argument(
        "--missing",
        choices=[rule.value for rule in MissingRule],
        default=MissingRule.COMPLETE_CASES.value,
        help="what becomes of a figure that a team does not have: its patient is left out, or it "
        "counts as 0 (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=_seed,
        default=SEED,
        metavar="N",
        help="of the random numbers behind the intervals (default: %(default)s)",
    )
    parser.set_defaults(run=_dump)


def _add_convert(parser: argparse.ArgumentParser) -> None:
    _add_cohort(parser)
    parser.add_argument("--team", metavar="T", help="whose predictions (default: the annotation)")
    forms = [form.name for form in known_forms().values() if form.write or form.write_all]
    parser.add_argument(
        "--to",
        required=True,
        choices=forms,
        metavar="FORMAT",
        help=f"one of {english_list(forms, limit=len(forms))}",
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help="a new or empty folder"
    )
    parser.add_argument(
        "--force", action="store_true", help="replace files of the same names in DIR"
    )
    _add_source(parser)
    _choice(parser, "--restoration", Restoration, "how objects of colour-coded masks are recovered")
    _add_radius(parser)
    _set_run(parser, _convert)


def _convert_nuclei(options: argparse.Namespace) -> int:
    cohort = open_cohort(options.cohort, allow_outside=options.allow_outside)
    team = options.team
    if team is not None:
        team = checked_name("--team", team, cohort.checked_team)
    settings = EvaluationSettings().replaced(**_restoration_from(options))
    source = _source_from(options, cohort, () if team is None else (team,))
    work = Conversion(cohort, team, form_to_write(options.to), settings, source, options.force)
    findings = convert(work, options.output)
    report_findings(findings, None)
    print(visible(f"{options.to} written to {options.output}"))
    return 0


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"must be a whole number from 0, found '{text}'")
    return int(text)


def _dump(options: argparse.Namespace) -> int:
    dump = read_dump(options.file)
    organs = MONUSAC_2020_TEST_ORGANS
    if options.metadata is not None:
        organs = read_organs(options.metadata, dump)
    evaluation = DumpEvaluation(dump, organs, MissingRule(options.missing), seed=options.seed)
    if options.output is not None:
        with tables_in(options.output, DUMP_TABLE_NAMES):
            write_dump_tables(evaluation, options.output)
    print("\n".join(visible(line) for line in dump_text(evaluation).split("\n")))
    if options.output is not None:
        print(visible(f"tables written to {options.output}"))
    return 0


def settings_from(options: argparse.Namespace) -> EvaluationSettings:
    """Combine the protocol and the options given beside it.

    Raises
    ------
    SettingsError
        For a value that is not allowed, or options that do not go together.
    """
    settings = _protocol_from(options)
    given = _restoration_from(options) | {
        name: value
        for name in ("matching", "iou_threshold", "ambiguous", "overlaps", "outlines")
        if (value := getattr(options, name)) is not None
    }
    if options.no_distances:
        given["distances"] = False
    return settings.replaced(**given)


def _restoration_from(options: argparse.Namespace) -> dict[str, Any]:
    """Return restoration and radius as far as they were given; a radius alone means to grow."""
    names = ("restoration", "radius")
    given = {n: value for n in names if (value := getattr(options, n)) is not None}
    if "radius" not in given:
        return given
    grown = {"restoration": Restoration.BORDER_DILATED} | given
    if grown["restoration"] != Restoration.BORDER_DILATED:
        raise SettingsError(
            f"--radius: objects are grown by --restoration {Restoration.BORDER_DILATED} alone; "
            f"leave one of the two out"
        )
    return grown


def _protocol_from(options: argparse.Namespace) -> EvaluationSettings:
    settings = protocol(options.protocol)
    if options.correct is None:
        return settings
    if settings.scoring is not Scoring.CHALLENGE:
        raise SettingsError(
            "--correct corrects errors of the challenge's scoring: "
            "give --protocol monusac-2020-as-run with it"
        )
    # Beside those that the protocol has already.
    return settings.replaced(corrections=settings.corrections | frozenset(words(options.correct)))


def _source_from(
    options: argparse.Namespace, cohort: Cohort, names: Sequence[str]
) -> Source | None:
    """Return the form of predictions that was asked for.

    Raises
    ------
    SettingsError
        Where these teams have predictions, and none in this form.
    """
    if options.source is None:
        return None
    source = Source(options.source)
    given = [forms for (team, _), forms in cohort.predictions.items() if team in names]
    there = sorted({str(form) for forms in given for form in forms})
    if there and source not in there:
        raise SettingsError(
            f"--source: no prediction of {english_list(names)} has the form '{source}'; there is "
            f"{english_list(there)}"
        )
    return source


def _evaluate_nuclei(options: argparse.Namespace) -> int:
    settings = settings_from(options)
    cohort = _cohort_from(options)
    names = _team_names(cohort, options.teams)
    source = _source_from(options, cohort, names)
    with tables_in(options.output, TABLE_NAMES, cohort.root):
        evaluation = _evaluate_alone(options, settings, cohort, names, source)
    if evaluation is None:
        return _stopped()
    if not evaluation.evaluated:
        print(
            f"napari-panoptic: nothing could be evaluated in {visible(str(cohort.root))}: "
            f"{_why_nothing(cohort, names)}",
            file=sys.stderr,
        )
        return 1
    _print_scores(evaluation, options.output)
    return 0


def _evaluate_alone(
    options: argparse.Namespace,
    settings: EvaluationSettings,
    cohort: Cohort,
    names: Sequence[str],
    source: Source | None,
) -> CohortEvaluation | None:
    """Evaluate into a folder that nobody else writes to meanwhile; None if it was stopped."""
    conditions = [Condition(options.protocol, settings, source)]
    if settings.overlaps is Overlaps.KEEP:
        # What difference it makes is told beside the figures.
        other = settings.replaced(overlaps=Overlaps.FLATTEN, distances=False)
        conditions.append(Condition(str(Overlaps.FLATTEN), other, source))
    work = Experiment(tuple(names), tuple(conditions), held_up_to_px=options.held_up_to)
    store = PartStore(options.output / _STORE)
    if options.resume is False:
        store.remove()
    watch = InputWatch(cohort, names)
    remove_unfinished(options.output, TABLE_NAMES)
    try:
        with ObjectsFile(options.output) as objects:
            results, flattened = _results(cohort, work, store, objects, options)
            evaluation = watch.noted(
                CohortEvaluation(cohort, settings, options.protocol, results, flattened)
            )
            is_written = bool(evaluation.evaluated)
            report_findings(evaluation.findings, RECORD if is_written else None)
            if is_written:
                write_tables(evaluation, options.output, objects)
    except KeyboardInterrupt:
        return None
    store.remove()
    return evaluation


def _results(
    cohort: Cohort,
    work: Experiment,
    store: PartStore,
    objects: ObjectsFile,
    options: argparse.Namespace,
) -> tuple[list[RegionResult], list[RegionResult]]:
    """Evaluate all regions; objects go to their file at once, only sums are kept.

    Returns
    -------
    results, flattened
        Of the first condition, and of the second, if there is one.
    """
    results: list[RegionResult] = []
    flattened: list[RegionResult] = []
    with _Progress(cohort) as progress:
        for found, *others in run_regions(
            cohort,
            work,
            jobs=options.jobs,
            scheduler=options.scheduler,
            store=store.folder,
            on_result=progress.on_result,
            on_progress=progress.on_progress,
        ):
            for result in found:
                objects.add(result)
                results.append(result.without_objects())
            flattened += [result.without_objects() for other in others for result in other]
    return results, flattened


class _Progress:
    """A bar for people at a terminal, and what is to be said of an interrupted run."""

    def __init__(self, cohort: Cohort, n_passes: int = 1) -> None:
        self._n_regions, self._n_passes = len(cohort.regions), n_passes
        self._taken_over = 0
        # disable=None: a bar for people at a terminal, silence for log files.
        self._bar = tqdm(total=n_passes * self._n_regions, unit="region", disable=None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._bar.close()
        if error is not None or not self._taken_over:
            return
        passes = "" if self._n_passes == 1 else f", each gone over {self._n_passes} times,"
        print(
            f"napari-panoptic: {self._taken_over} of {self._n_passes * self._n_regions} regions"
            f"{passes} were done by an interrupted run and have not changed since",
            file=sys.stderr,
        )

    def on_result(self, done: RegionDone) -> None:
        """Count a region that is done."""
        if not done.is_again:
            self._bar.update()
            self._taken_over += done.is_taken_over
        if done.remark:
            self._bar.write(visible(f"napari-panoptic: {done.remark}"), file=sys.stderr)

    def on_progress(self, region: str, share: float, saying: str) -> None:
        """Show how far a region is that takes long by itself."""
        self._bar.set_postfix_str(visible(f"{region}: {saying}, {share:.0%}"))


def _stopped() -> int:
    print("napari-panoptic: stopped; the same command goes on from here", file=sys.stderr)
    return 130


def _team_names(cohort: Cohort, wanted: str | None) -> tuple[str, ...]:
    usual = [team.name for team in cohort.competing_teams]
    return chosen_teams(wanted, usual, cohort.checked_team)


def _why_nothing(cohort: Cohort, names: Sequence[str]) -> str:
    if not cohort.regions:
        return "it has no regions"
    if not names:
        return f"it has no predictions; {cohort.predictions_expected}"
    if all(region.reference is None for region in cohort.regions):
        return f"no region has an annotation; {cohort.annotation_expected}"
    return "no region has both a readable annotation and a readable prediction"


def _print_scores(evaluation: CohortEvaluation, folder: Path) -> None:
    scores = {team: evaluation.score(team) for team in evaluation.team_names}
    width = max(len(visible(team)) for team in ("team", *scores))
    print(f"{'team'.ljust(width)}  score")
    # The best first; teams without a score last.
    for team in sorted(scores, key=lambda team: (math.isnan(scores[team]), -scores[team])):
        print(f"{visible(team).ljust(width)}  {_score_text(scores[team])}")
    regions = {(result.patient, result.region) for result in evaluation.evaluated}
    per_region = (
        evaluation.settings.scoring is Scoring.CHALLENGE
        and Correction.PER_PATIENT not in evaluation.settings.corrections
    )
    n_patients = len({patient for patient, _ in regions})
    unit = "regions" if per_region else "patients"
    evaluated = f"{_number(len(regions), 'region')} of {_number(n_patients, 'patient')}"
    print(f"score: PQ, mean over {unit} ({evaluated})")
    if evaluation.settings.overlaps is Overlaps.KEEP:
        for team in scores:
            flat = _score_text(evaluation.without_overlaps.score(team))
            print(
                f"overlaps kept: {evaluation.overlapping_objects(team)} predicted objects of "
                f"{visible(team)} share pixels; with the last one having them, its score is {flat}"
            )
    print(visible(f"tables written to {folder}"))


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _score_text(score: float) -> str:
    return "\N{EN DASH}" if math.isnan(score) else f"{score:.4f}"


def _view(options: argparse.Namespace) -> int:
    _check_input(options)
    if options.screenshot is not None and options.cohort is not None:
        check_not_in_cohort([options.screenshot], options.cohort)
    elif options.screenshot is not None:
        _check_not_given(options)
    return _open_window(
        options.cohort if options.reference is None else _cohort_from(options),
        region=options.region,
        screenshot=options.screenshot,
        allow_outside=options.allow_outside,
    )


def _init(options: argparse.Namespace) -> int:
    if not (options.folder / DESCRIPTION).exists():
        with suppress(CohortError):
            cohort = open_cohort(options.folder)
            print(
                f"{visible(str(options.folder))} needs no {DESCRIPTION}: it is a known layout with "
                f"{_number(len(cohort.regions), 'region')} and {_number(len(cohort.teams), 'team')}"
            )
            return 0
    scan = scan_folder(options.folder, reference=options.reference)
    for line in scan.summary:
        print(visible(line))
    path = write_description(scan)
    cohort = open_cohort(options.folder)
    print(
        visible(
            f"{path} written: {_number(len(cohort.regions), 'region')}, "
            f"{_number(len(cohort.patients), 'patient')}, "
            f"{_number(len(cohort.competing_teams), 'team')}"
        )
    )
    report_findings(cohort.findings, None)
    print(visible(f"look at it with: napari-panoptic view {options.folder}"))
    return 0


def _sample(options: argparse.Namespace) -> int:
    folder = write_sample(options.folder, Task(options.task))
    print(visible(f"sample cohort written to {folder}"))
    print(visible(f"look at it with: napari-panoptic view {folder}"))
    return 0


def _demo(options: argparse.Namespace) -> int:
    if options.cohort is not None:
        return _open_window(write_sample(options.cohort), screenshot=options.screenshot)
    with tempfile.TemporaryDirectory(prefix="napari-panoptic-") as folder:
        return _open_window(write_sample(Path(folder)), screenshot=options.screenshot)


def _open_window(
    cohort: Path | Cohort,
    *,
    region: str | None = None,
    screenshot: Path | None,
    allow_outside: bool = False,
) -> int:
    if not _has_display():
        raise PanopticError(
            "there is no display to open a window on; with Xvfb installed, 'xvfb-run -a "
            "napari-panoptic ...' and --screenshot give a picture; 'evaluate' and 'report' need no "
            "display"
        )
    # napari and Qt take seconds to import: only a window needs them.
    try:
        from napari_panoptic.viewer.launch import run_view
    except ImportError as error:
        raise PanopticError(
            f"the window needs napari and Qt, which cannot be imported ({error}); install them "
            'with: pip install "napari-panoptic[pyqt6]"'
        ) from error

    return run_view(cohort, region=region, screenshot=screenshot, allow_outside=allow_outside)


def _has_display() -> bool:
    """Return whether windows have somewhere to go; Qt ends the process where they have not."""
    needed = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    return not sys.platform.startswith("linux") or any(os.environ.get(name) for name in needed)


def _evaluate(options: argparse.Namespace) -> int:
    return _command(options, _EVALUATE)


def _report(options: argparse.Namespace) -> int:
    return _command(options, _REPORT)


def _convert(options: argparse.Namespace) -> int:
    return _command(options, _CONVERT)


def _command(options: argparse.Namespace, commands: Mapping[Task, Command]) -> int:
    """Do with a cohort what suits its task.

    Raises
    ------
    SettingsError
        For a command or an option that does not suit it.
    """
    if hasattr(options, "reference"):
        _check_input(options)
    is_pair = getattr(options, "reference", None) is not None
    task = Task.NUCLEI if is_pair else task_of(options.cohort)
    if task not in commands:
        raise SettingsError(f"there is no '{options.command}' for {task}", path=options.cohort)
    for name, tasks in _ONLY_FOR.items():
        is_given = getattr(options, name, None) != options.defaults.get(name)
        if is_given and task not in tasks:
            raise SettingsError(
                f"--{name.replace('_', '-')} is for cohorts about {english_list(tasks)}; "
                f"this one is about {task}"
            )
    _say_what_does_nothing(options, task)
    return commands[task](options)


def _say_what_does_nothing(options: argparse.Namespace, task: Task) -> None:
    """Tell people who give an option that changes nothing with such a cohort."""
    for name, why in _WITHOUT_EFFECT.get(task, {}).items():
        value = getattr(options, name)
        if value != options.defaults.get(name):
            flag = "--no-resume" if value is False else f"--{name}"
            print(
                f"napari-panoptic: {flag} does nothing for cohorts about {task}: {why}",
                file=sys.stderr,
            )


def _evaluate_detections(options: argparse.Namespace) -> int:
    from napari_panoptic.cli.detections import evaluate_detected

    return evaluate_detected(options)


def _report_detections(options: argparse.Namespace) -> int:
    from napari_panoptic.cli.detections import report_detected

    return report_detected(options)


def _evaluate_raters(options: argparse.Namespace) -> int:
    from napari_panoptic.cli.raters import evaluate_rated

    return evaluate_rated(options)


def _report_raters(options: argparse.Namespace) -> int:
    from napari_panoptic.cli.raters import report_rated

    return report_rated(options)


_EVALUATE: Mapping[Task, Command] = {
    Task.NUCLEI: _evaluate_nuclei,
    Task.DETECTIONS: _evaluate_detections,
    Task.RATERS: _evaluate_raters,
}
"""What ``evaluate`` does for each task; what takes long to import is so only there."""
_REPORT: Mapping[Task, Command] = {
    Task.NUCLEI: _report_nuclei,
    Task.DETECTIONS: _report_detections,
    Task.RATERS: _report_raters,
}
"""What ``report`` does for each task."""
_CONVERT: Mapping[Task, Command] = {Task.NUCLEI: _convert_nuclei}
"""What ``convert`` does for each task."""
_ONLY_FOR: Mapping[str, tuple[Task, ...]] = {
    **dict.fromkeys(
        (
            *("protocol", "correct", "source", "restoration", "radius", "matching"),
            *("iou_threshold", "ambiguous", "outlines", "no_distances", "held_up_to"),
            *("metadata", "group", "overlaps"),
        ),
        (Task.NUCLEI,),
    ),
    **dict.fromkeys(("distance_um", "confidence"), (Task.DETECTIONS,)),
}
"""Options that change what comes out, and the tasks that they are for."""
_ONE_MACHINE = "they are evaluated on this machine, in threads of this process"
_NOTHING_KEPT = "nothing is kept of an interrupted run, and each begins anew"
_WITHOUT_EFFECT: Mapping[Task, Mapping[str, str]] = {
    Task.DETECTIONS: {
        "jobs": "frames take milliseconds each, one after the other",
        "scheduler": "frames take milliseconds each, one after the other",
        "resume": _NOTHING_KEPT,
    },
    Task.RATERS: {"scheduler": _ONE_MACHINE, "resume": _NOTHING_KEPT},
}
"""Options that only say how the work is done, the tasks with which they do nothing, and why."""


if __name__ == "__main__":
    sys.exit(main())
