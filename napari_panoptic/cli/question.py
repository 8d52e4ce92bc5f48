"""The command of any question over a cohort: options from its fields, files from its answer."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from napari_panoptic.cli.console import (
    print_table,
    report_findings,
    share_bar,
    tables_in,
)
from napari_panoptic.cli.inputs import (
    UNCERTAIN,
    nuclei_from,
    restoration_from,
    settings_from,
    source_from,
    team_names_from,
)
from napari_panoptic.cli.options import (
    NO_PROTOCOL,
    add_cohort,
    add_held,
    add_jobs,
    add_metadata,
    add_metric,
    add_output,
    add_restoration,
    add_rules_of_objects,
    add_source,
    add_uncertain,
    metric_from,
)
from napari_panoptic.cli.parser import add_choice
from napari_panoptic.cli.printing import say, warn
from napari_panoptic.common.errors import SettingsError, checked_name
from napari_panoptic.io.files.fingerprints import input_fingerprints
from napari_panoptic.questions.answer import Answer, AnswerTable, UnansweredError
from napari_panoptic.questions.question import Option, Question, options_of, question_kind
from napari_panoptic.tables.columns import texts
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.settings import AmbiguousPolicy

_ADDED: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "metadata": add_metadata,
    "metric": add_metric,
}
"""Options that other commands have as well."""


@dataclass(frozen=True)
class QuestionCommand:
    """The command of a question."""

    kind: type[Question]

    @property
    def ABOUT(self) -> str:  # noqa: N802 - as in the modules of other commands
        """What the command does."""
        return self.kind.about

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments of the command: the fields of the question."""
        add_cohort(parser, or_pair=self.kind.takes_pair)
        options = options_of(self.kind)
        for name in ("team", "teams"):
            if name in options:
                _add(parser, self.kind, name, options[name])
        add_output(parser)
        for name, option in options.items():
            if name in _ADDED:
                _ADDED[name](parser)
            elif name not in ("team", "teams"):
                _add(parser, self.kind, name, option)
        if self.kind.takes_jobs:
            add_jobs(parser)
        if (usual := self.kind.own_settings) is None:
            add_rules_of_objects(parser, with_protocol=self.kind.has_score)
            add_held(parser, are_left_out=not self.kind.takes_windows)
        else:
            add_source(parser)
            add_restoration(parser, default=usual.restoration)
            add_choice(parser, "--ambiguous", AmbiguousPolicy, "how ambiguous areas are treated")
            if self.kind.takes_uncertain:
                add_uncertain(parser)

    def run(self, options: argparse.Namespace) -> int:
        """Answer the question: write its files, and print what was found."""
        cohort = nuclei_from(options)
        question = self.question(options, cohort)
        try:
            with tables_in(options.output, self.kind.file_names()) as place:
                with share_bar() as progress:
                    answer = question.answer(cohort, progress, jobs=getattr(options, "jobs", None))
                record = answer.record
                inputs = input_fingerprints(cohort, record.teams)
                place.write(
                    answer.files,
                    record.content,
                    record.findings,
                    inputs,
                    add=partial(_write_page, question, answer, inputs),
                )
        except UnansweredError as error:
            report_findings(error.findings, None)
            warn(f"nothing could be {self.kind.done} in {cohort.root}: {error}")
            return 1
        print_answer(answer)
        say(f"tables written to {options.output}")
        return 0

    def question(self, options: argparse.Namespace, cohort: Cohort) -> Question:
        """Return what the options ask of a cohort.

        Raises
        ------
        SettingsError
            For a value that a field cannot have, a team that the cohort does not have, or a
            question that cannot be asked about it.
        """
        own: dict[str, Any] = {
            name: tuple(chain.from_iterable(getattr(options, name)))
            if option.is_repeated
            else getattr(options, name)
            for name, option in options_of(self.kind).items()
        }
        if own.get("team") is not None:
            own["team"] = checked_name("--team", options.team, cohort.checked_team)
        if "metric" in own:
            own["metric"] = metric_from(options)
        if "teams" in own:
            own["teams"] = team_names_from(cohort, options.teams)
        if self.kind.takes_jobs:
            own["scheduler"] = options.scheduler
        asked = self.kind(**own, **self._rules(options))
        if why := asked.why_not(cohort):
            raise SettingsError(why)
        source = source_from(options, cohort, asked.teams_read(cohort))
        return replace(asked, source=source)

    def _rules(self, options: argparse.Namespace) -> dict[str, Any]:
        """Return how objects are matched, as fields of the question."""
        if (usual := self.kind.own_settings) is None:
            if not self.kind.has_score and (options.protocol, options.correct) != NO_PROTOCOL:
                raise SettingsError(
                    "--protocol and --correct say how objects are scored, and nothing is scored "
                    "here; leave them out"
                )
            return {
                "settings": settings_from(options),
                "protocol": options.protocol,
                "held_up_to_px": options.held_up_to,
            }
        chosen = restoration_from(options) | {
            name: value for name in UNCERTAIN if (value := getattr(options, name, None)) is not None
        }
        return {"settings": usual.replaced(**chosen)}


def _add(parser: argparse.ArgumentParser, kind: type[Question], name: str, option: Option) -> None:
    field = next(f for f in fields(kind) if f.name == name)
    is_required = field.default is MISSING
    parser.add_argument(
        f"--{option.word or name.replace('_', '-')}",
        dest=name,
        action="append" if option.is_repeated else "store",
        required=is_required and name != "teams",
        default=[] if option.is_repeated else None if is_required else field.default,
        type=_reader(option.read),
        choices=option.choices or None,
        metavar=option.metavar,
        help=option.help,
    )


def _reader(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return what reads a word of an option, and refuses it as argparse does."""

    def call(word: str) -> Any:
        try:
            return read(word)
        except SettingsError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return call


def _write_page(
    question: Question, answer: Answer, inputs: Mapping[str, str], folder: Path
) -> None:
    if question.page:
        from napari_panoptic.report.answers import page_writer  # takes long to import

        page_writer(question, answer, inputs)(folder)


def print_answer(answer: Answer) -> None:
    """Print an answer: its sentences, and the first rows of its tables."""
    say(answer.headline)
    for note in answer.notes:
        say(note)
    for table in answer.tables:
        if table.printed and len(table.frame):
            _print(table)


def _print(table: AnswerTable) -> None:
    if table.sentence is not None:
        if table.spec.caption:
            say(table.spec.caption)
        for place, sentence in enumerate(table.sentences(table.printed), start=1):
            say(f"{place}. {sentence}")
    elif table.is_shown:
        rows = table.frame.head(table.printed).to_dict("records")
        print_table(*texts(table.spec.shown(), rows))


def question_command(name: str) -> QuestionCommand:
    """Return the command of a question."""
    return QuestionCommand(question_kind(name))
