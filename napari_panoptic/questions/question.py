"""What can be asked about a cohort: the base of the questions, each of which is a module here.

A question is a frozen dataclass of what is asked. Its faces are generic: the command, the section
of a report, the panel, the cell of a notebook, and the files. The first line of its module is its
line in the help of the command, which has the name of the module.
"""

from __future__ import annotations

import pkgutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, Self, TypeVar

from napari_panoptic.common.errors import PanopticError, SettingsError
from napari_panoptic.common.findings import Finding
from napari_panoptic.common.progress import UNWATCHED, Progress, StoppedError
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.regions.reading import HELD_UP_TO_PX
from napari_panoptic.nuclei.regions.run import walk_teams
from napari_panoptic.questions.answer import Answer, AnswerRecord, UnansweredError
from napari_panoptic.tables.columns import TableSpec
from napari_panoptic.values.cohort import Cohort, Region, Source
from napari_panoptic.values.conventions import DEFAULT_PROTOCOL
from napari_panoptic.values.settings import EvaluationSettings

KindT = TypeVar("KindT")
Menu = Callable[[Mapping[str, Any]], Sequence[tuple[Any, str, str]]]
"""Returns value, text and meaning of the entries of an input, given the inputs before it."""


@dataclass(frozen=True)
class Option:
    """How a field of a question is asked for."""

    #: Its meaning, for the help of the command and the tooltip.
    help: str
    #: The values that it may have; empty for any.
    choices: tuple[str, ...] = ()
    #: Reads the word of the command line, or raises `SettingsError`.
    read: Callable[[str], Any] = str
    #: Stands for the value in the help.
    metavar: str | None = None
    #: The word of the command line, if it is not the name of the field.
    word: str = ""
    #: The menu of the panel; None if the panel leaves the default.
    menu: Menu | None = None
    #: What its text field in the panel says while it is empty; empty for no field.
    placeholder: str = ""
    #: Whether the command takes it several times; `read` gives tuples then.
    is_repeated: bool = False
    #: Whether the objects that are read do not depend on it.
    is_late: bool = False


def option(help: str, default: Any = MISSING, **how: Any) -> Any:  # noqa: A002
    """Return a field that is an option of the command; see `Option`. Required without default."""
    return field(default=default, metadata={"option": Option(help, **how)})


def whole_number(least: int, why: str = "") -> Callable[[str], int]:
    """Return what reads whole numbers from a least one; a refusal ends with the reason why."""

    def read(word: str) -> int:
        try:
            number = int(word)
        except ValueError:
            raise SettingsError(f"must be a whole number, found '{word}'") from None
        if number < least:
            raise SettingsError(f"must be at least {least}{why}, found {number}")
        return number

    return read


def options_of(kind: type[Any]) -> dict[str, Option]:
    """Return the fields of a question that are options of its own, in their order."""
    return {f.name: f.metadata["option"] for f in fields(kind) if "option" in f.metadata}


class AnyQuestion(ABC):
    """What the faces of questions over cohorts and about regions need to know of them."""

    title: ClassVar[str]
    """Title of the panel."""
    heading: ClassVar[str] = ""
    """Heading of the section of a report; the title if empty."""
    key: ClassVar[str | None] = None
    """Key that brings the panel to the front."""
    verb: ClassVar[str] = "Compute"
    """The text of the button that asks."""
    hint: ClassVar[str]
    """What the panel says before anything was asked."""

    @classmethod
    def name(cls) -> str:
        """Return its name, which is that of its module; also of its command, if it has one."""
        return cls.__module__.rpartition(".")[2]

    @classmethod
    def in_short(cls) -> str:
        """Return the first line of its module: what it does, without its files."""
        return (sys.modules[cls.__module__].__doc__ or "").strip().partition("\n")[0]


@dataclass(frozen=True, kw_only=True)
class Question(AnyQuestion):
    """What is asked of a cohort. Two equal questions have the same answer while files stay."""

    about: ClassVar[str]
    """What the command does, for its help."""
    tables: ClassVar[tuple[TableSpec, ...]]
    """The tables that it writes."""
    page: ClassVar[str] = ""
    """The HTML file that it writes beside them; empty if none."""
    too_large: ClassVar[str] = ""
    """What follows where a region is too large to be held, in place of the usual reason."""
    done: ClassVar[str] = "evaluated"
    """What is done with regions, for the message where nothing of them could be."""
    takes_windows: ClassVar[bool] = True
    """Whether regions that are too large to be held are read in windows; else they are left out."""
    takes_pair: ClassVar[bool] = False
    """Whether its command takes two files in place of a cohort."""
    has_score: ClassVar[bool] = True
    """Whether a protocol can change the answer: it only says how outcomes are scored."""
    own_settings: ClassVar[EvaluationSettings | None] = None
    """The settings to start from in place of a protocol; its command only offers how objects are
    read, and the ambiguous policy."""
    share_of_gathering: ClassVar[float] = 0.5
    """The share of the work that `gather` is; the rest is `answered`."""

    #: How objects are matched; the protocol is the name of these settings.
    settings: EvaluationSettings = field(default_factory=EvaluationSettings)
    protocol: str = DEFAULT_PROTOCOL
    #: The format of the predictions; None for the usual one.
    source: Source | None = None
    #: Regions of more pixels are left out, or read in windows.
    held_up_to_px: int = HELD_UP_TO_PX

    @classmethod
    def suited(cls, settings: EvaluationSettings) -> EvaluationSettings:
        """Return settings as the question is asked under them in the window and in reports."""
        return settings

    @classmethod
    def record_file(cls) -> str:
        """Return the name of the JSON file."""
        return f"{cls.name()}.json"

    @classmethod
    def file_names(cls) -> tuple[str, ...]:
        """Return the names of the files, the record last."""
        page = (cls.page,) if cls.page else ()
        return (*(spec.file for spec in cls.tables), *page, cls.record_file())

    @property
    def matching(self) -> EvaluationSettings:
        """The settings that decide outcomes of objects: without the challenge's own scoring."""
        return self.settings.disentangled.replaced(distances=False)

    def teams_read(self, cohort: Cohort) -> tuple[str, ...]:
        """Return the teams of a cohort whose predictions are read."""
        return (self.team,) if hasattr(self, "team") else tuple(getattr(self, "teams", ()))

    def why_not(self, cohort: Cohort) -> str:
        """Return why it cannot be asked about a cohort; empty if it can."""
        return ""

    @abstractmethod
    def gather(
        self, cohort: Cohort, progress: Progress = UNWATCHED, *, jobs: int | None = 1
    ) -> Any:
        """Read what the answer needs of the cohort.

        Parameters
        ----------
        cohort
            The cohort.
        progress
            Reported to after each region, and checked for cancellation.
        jobs
            Regions at a time; None for the number of processors.

        Raises
        ------
        UnansweredError
            If nothing could be evaluated.
        StoppedError
            If cancelled.
        """

    @abstractmethod
    def answered(self, cohort: Cohort, gathered: Any, progress: Progress = UNWATCHED) -> Answer:
        """Return the answer, given what `gather` returned for an equal `gathering`."""

    def answer(
        self, cohort: Cohort, progress: Progress = UNWATCHED, *, jobs: int | None = 1
    ) -> Answer:
        """Return the answer; see `gather` for parameters and errors."""
        share = self.share_of_gathering
        gathered = self.gather(cohort, progress.part(0, share), jobs=jobs)
        return self.answered(cohort, gathered, progress.part(share, 1))

    @property
    def gathering(self) -> Self:
        """The same question without what `gather` does not depend on."""
        late: dict[str, Any] = {
            f.name: f.default
            for f in fields(self)
            if "option" in f.metadata and f.metadata["option"].is_late
        }
        return replace(self, **late)

    def record(self, cohort: Cohort, findings: Sequence[Finding], **content: Any) -> AnswerRecord:
        """Return a record with the given entries, and the findings of cohort and answer."""
        every = tuple(dict.fromkeys((*cohort.findings, *findings)))
        return AnswerRecord(content, every, self.teams_read(cohort))


@dataclass(frozen=True, eq=False)
class Gathered:
    """What was read of the regions that could be evaluated."""

    #: What `TeamQuestion.look` returned for each of them.
    parts: tuple[Any, ...]
    #: What was odd, and why regions were left out.
    findings: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True)
class TeamQuestion(Question):
    """A question about one team, whose evaluation of each region is looked at in turn."""

    takes_windows = False
    has_score = False
    #: Name of the team.
    team: str = option("team whose predictions are evaluated", metavar="T")

    def gather(
        self, cohort: Cohort, progress: Progress = UNWATCHED, *, jobs: int | None = 1
    ) -> Gathered:
        """Look at the team in each region."""
        (gathered,) = _gather_alike([self], cohort, progress, jobs=jobs)
        if not gathered.parts:
            raise self.unanswered(cohort, gathered)
        return gathered

    def unanswered(self, cohort: Cohort, gathered: Gathered) -> UnansweredError:
        """Return the error that says why no region could be evaluated."""
        findings = (*cohort.findings, *gathered.findings)
        return UnansweredError(why_nothing(cohort, (self.team,)), findings)

    @abstractmethod
    def look(self, evaluation: Evaluation, region: Region) -> Any:
        """Return what the answer needs of a region; called in threads."""

    def team_record(self, cohort: Cohort, gathered: Gathered, **content: Any) -> AnswerRecord:
        """Return a record that begins with team, protocol and settings."""
        return self.record(
            cohort,
            gathered.findings,
            team=self.team,
            protocol=self.protocol,
            settings=self.matching.as_record(),
            **content,
        )


def gather_together(
    questions: Sequence[Question],
    cohort: Cohort,
    progress: Progress = UNWATCHED,
    *,
    jobs: int | None = 1,
) -> list[Any]:
    """Read what the answers to several questions need; regions are read once for those alike.

    Parameters
    ----------
    questions
        Any questions, each of which can be asked about the cohort; see `Question.why_not`.
    cohort, progress, jobs
        As in `Question.gather`.

    Returns
    -------
    list
        Per question what its `gather` returns, for its `answered`; or, in place of that, the
        `PanopticError` that `gather` raises, such as `UnansweredError`.

    Raises
    ------
    StoppedError
        If cancelled.
    """
    found: dict[int, Any] = {}
    alike: dict[tuple[Any, ...], list[TeamQuestion]] = {}
    for own in questions:
        if isinstance(own, TeamQuestion):
            alike.setdefault((own.matching, own.source, own.held_up_to_px), []).append(own)
    others = [own for own in questions if not isinstance(own, TeamQuestion)]
    parts = len(alike) + len(others)
    for number, group in enumerate(alike.values()):
        part = progress.part(number / parts, (number + 1) / parts)
        for own, gathered in zip(group, _gather_alike(group, cohort, part, jobs=jobs), strict=True):
            found[id(own)] = gathered if gathered.parts else own.unanswered(cohort, gathered)
    for number, own in enumerate(others, start=len(alike)):
        try:
            part = progress.part(number / parts, (number + 1) / parts)
            found[id(own)] = own.gather(cohort, part, jobs=jobs)
        except StoppedError:
            raise
        except PanopticError as error:
            found[id(own)] = error
    return [found[id(own)] for own in questions]


def _gather_alike(
    questions: Sequence[TeamQuestion],
    cohort: Cohort,
    progress: Progress = UNWATCHED,
    *,
    jobs: int | None = 1,
) -> list[Gathered]:
    """Look at each region once for several questions that match objects in the same way.

    Parameters
    ----------
    questions
        They have the same `Question.matching`, source and limit of pixels as the first one.
    cohort, progress, jobs
        As in `Question.gather`.

    Returns
    -------
    list of Gathered
        One per question; without parts if nothing could be evaluated.
    """
    parts: list[list[Any]] = [[] for _ in questions]
    findings: list[list[Finding]] = [[] for _ in questions]
    first = questions[0]

    def look(evaluation: Evaluation, region: Region, team: str) -> list[Any]:
        return [own.look(evaluation, region) if own.team == team else None for own in questions]

    for found in walk_teams(
        cohort,
        tuple(dict.fromkeys(own.team for own in questions)),
        first.matching,
        first.source,
        look,
        jobs=jobs,
        held_up_to_px=first.held_up_to_px,
        too_large=first.too_large,
        progress=progress,
    ):
        for place, own in enumerate(questions):
            if own.team == found.team:
                findings[place] += found.findings
                if found.result is not None:
                    parts[place].append(found.result[place])
    return [Gathered(tuple(own), tuple(odd)) for own, odd in zip(parts, findings, strict=True)]


def why_nothing(cohort: Cohort, names: Sequence[str]) -> str:
    """Return why no region of a cohort could be evaluated."""
    if not cohort.regions:
        return "it has no regions"
    if not names:
        return f"it has no predictions; {cohort.predictions_expected}"
    if all(region.reference is None for region in cohort.regions):
        return f"no region has an annotation; {cohort.annotation_expected}"
    return "no region has both a readable annotation and a readable prediction"


_BASES = ("answer", "question")


@cache
def question_names() -> tuple[str, ...]:
    """Return the names of all questions: those of the modules in this folder."""
    from napari_panoptic import questions

    modules = pkgutil.iter_modules(questions.__path__)
    return tuple(m.name for m in modules if not m.ispkg and m.name not in _BASES)


@cache
def question_kind(name: str) -> type[Question]:
    """Return the question of a name, whose module is imported."""
    if name not in question_names():
        raise SettingsError(f"there is no question '{name}'")
    return kind_in(f"napari_panoptic.questions.{name}", Question)  # type: ignore[type-abstract]


def kind_in(module_name: str, base: type[KindT]) -> type[KindT]:
    """Return the last class of a module that is derived from a base; the module is imported."""
    module = import_module(module_name)
    own = [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, base) and kind.__module__ == module_name
    ]
    return own[-1]
