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
from functools import cache, partial
from importlib import import_module
from typing import Any, ClassVar, Self, TypeVar

from napari_panoptic.common.errors import PanopticError, SettingsError
from napari_panoptic.common.findings import Finding
from napari_panoptic.common.progress import UNWATCHED, Progress, StoppedError
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.regions.cohort_evaluation import InputWatch
from napari_panoptic.nuclei.regions.looks import RegionLook, Teams, look_at
from napari_panoptic.nuclei.regions.run import THREADS
from napari_panoptic.questions.answer import Answer, AnswerRecord, UnansweredError
from napari_panoptic.tables.columns import TableSpec
from napari_panoptic.values.cohort import Cohort, Region, Source
from napari_panoptic.values.conventions import DEFAULT_PROTOCOL
from napari_panoptic.values.reading import HELD_UP_TO_PX, Reading
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
        """Return its name: that of its module with hyphens, and of its command if it has one."""
        return cls.__module__.rpartition(".")[2].replace("_", "-")

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
    takes_windows: ClassVar[bool] = False
    """Whether regions that are too large to be held are read in windows; else they are left out."""
    looks_at_once: ClassVar[bool] = False
    """Whether `look` sees all teams of a region at once; else one after the other."""
    reads_image: ClassVar[bool] = False
    """Whether `look` needs the image of a region."""
    takes_jobs: ClassVar[bool] = False
    """Whether its command takes how many regions are evaluated at a time, and where."""
    takes_pair: ClassVar[bool] = False
    """Whether its command takes two files in place of a cohort."""
    has_score: ClassVar[bool] = True
    """Whether a protocol can change the answer: it only says how outcomes are scored."""
    own_settings: ClassVar[EvaluationSettings | None] = None
    """The settings to start from in place of a protocol; its command only offers how objects are
    read, and the ambiguous policy."""
    takes_uncertain: ClassVar[bool] = False
    """Whether that command also offers the uncertain border and the share of ambiguous areas."""
    share_of_gathering: ClassVar[float] = 0.5
    """The share of the work that `gather` is; the rest is `answered`."""

    #: How objects are matched; the protocol is the name of these settings.
    settings: EvaluationSettings = field(default_factory=EvaluationSettings)
    protocol: str = DEFAULT_PROTOCOL
    #: The format of the predictions; None for the usual one.
    source: Source | None = None
    #: Regions of more pixels are left out, or read in windows.
    held_up_to_px: int = HELD_UP_TO_PX
    #: Where regions are evaluated; see `run_regions`.
    scheduler: str = THREADS

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
        """The settings under which regions are evaluated: without the challenge's own scoring."""
        return self.settings.disentangled.replaced(distances=False)

    def reading(self, cohort: Cohort) -> Reading:
        """Return which predictions of a cohort are read, and how objects are matched."""
        teams = self.teams_read(cohort)
        return Reading(self.matching, self.source, teams, self.held_up_to_px)

    def teams_read(self, cohort: Cohort) -> tuple[str, ...]:
        """Return the teams of a cohort whose predictions are read."""
        return (self.team,) if hasattr(self, "team") else tuple(getattr(self, "teams", ()))

    def why_not(self, cohort: Cohort) -> str:
        """Return why it cannot be asked about a cohort; empty if it can."""
        return ""

    def prepared(self, cohort: Cohort) -> Any:
        """Read what the answer needs besides the regions, before these; for `Gathered.prepared`.

        Raises
        ------
        PanopticError
            For what cannot be read or asked.
        """
        return None

    def look(self, region: Region, teams: Teams, image: SlideImage | None) -> Any:
        """Return what the answer needs of a region.

        Called in threads, in other processes, or on other machines.

        Parameters
        ----------
        region
            The region.
        teams
            Team -> its evaluation, which is None if it could not be evaluated; see `looks_at_once`.
        image
            The image if the question reads it; None if there is none that can be read.

        Returns
        -------
        The part of the region for `joined`; or a finding that says why it is left out; or None if
        the findings of its files say that.
        """
        raise NotImplementedError

    def joined(self, cohort: Cohort, gathered: Gathered) -> Any:
        """Return what `answered` needs, given the parts of all regions.

        Raises
        ------
        UnansweredError
            If nothing could be evaluated.
        """
        if not gathered.parts:
            findings = (*cohort.findings, *gathered.findings)
            raise UnansweredError(why_nothing(cohort, self.teams_read(cohort)), findings)
        return gathered

    def gather(
        self, cohort: Cohort, progress: Progress = UNWATCHED, *, jobs: int | None = 1
    ) -> Any:
        """Look at the regions of a cohort, and join their parts.

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
        (gathered,) = gather_together([self], cohort, progress, jobs=jobs)
        if isinstance(gathered, PanopticError):
            raise gathered
        return gathered

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

    def answer_to(self, question: Question, gathered: Any) -> Answer | None:
        """Return the answer to another question if it is in what `gather` returned."""
        return None

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
    """What was read of the regions."""

    #: What `Question.look` returned, region by region.
    parts: tuple[Any, ...]
    #: What was odd, and why regions were left out.
    findings: tuple[Finding, ...]
    #: What `Question.prepared` returned.
    prepared: Any = None


@dataclass(frozen=True, kw_only=True)
class TeamQuestion(Question):
    """A question about one team, whose evaluation of each region is looked at in turn."""

    has_score = False
    #: Name of the team.
    team: str = option("team whose predictions are evaluated", metavar="T")

    def look(self, region: Region, teams: Teams, image: SlideImage | None) -> Any:
        """Return what the answer needs of a region in which the team could be evaluated."""
        evaluation = teams[self.team].evaluation
        return None if evaluation is None else self.part(evaluation, region)

    @abstractmethod
    def part(self, evaluation: Evaluation, region: Region) -> Any:
        """Return what the answer needs of a region; see `look`."""

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
    """Read what the answers to several questions need; each region is read once for all of them.

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
    passes: dict[Any, list[int]] = {}
    for place, own in enumerate(questions):
        how = (own.held_up_to_px, own.scheduler)
        passes.setdefault(place if _gathers_alone(own) else how, []).append(place)
    gathered: dict[int, Any] = {}
    for number, places in enumerate(passes.values()):
        part = progress.part(number / len(passes), (number + 1) / len(passes))
        asked = [questions[place] for place in places]
        if _gathers_alone(asked[0]):
            found = [_tried(partial(asked[0].gather, cohort, part, jobs=jobs))]
        else:
            found = _in_one_pass(asked, cohort, part, jobs)
        gathered |= zip(places, found, strict=True)
    return [gathered[place] for place in range(len(questions))]


def _gathers_alone(question: Question) -> bool:
    """Return whether a question goes through the regions in a way of its own."""
    return type(question).gather is not Question.gather


def _in_one_pass(
    questions: Sequence[Question], cohort: Cohort, progress: Progress, jobs: int | None
) -> list[Any]:
    """Look at each region for all questions, and join the parts of each."""
    prepared = [_tried(partial(own.prepared, cohort)) for own in questions]
    readings = [own.reading(cohort) for own in questions]
    failed: list[PanopticError | None] = [
        found if isinstance(found, PanopticError) else None for found in prepared
    ]
    asked = [place for place, error in enumerate(failed) if error is None]
    looks = [
        RegionLook(
            readings[place],
            questions[place].look,
            at_once=questions[place].looks_at_once,
            takes_windows=questions[place].takes_windows,
            reads_image=questions[place].reads_image,
            too_large=questions[place].too_large,
        )
        for place in asked
    ]
    watch = InputWatch(cohort, [team for reading in readings for team in reading.teams])
    parts: list[list[Any]] = [[] for _ in questions]
    findings: list[list[Finding]] = [[] for _ in questions]
    where = questions[0].scheduler
    for region in look_at(cohort, looks, progress, jobs=jobs, scheduler=where):
        for place, seen in zip(asked, region, strict=True):
            findings[place] += seen.findings
            failed[place] = failed[place] or seen.error
            if seen.error is None:
                parts[place] += seen.parts
    changed = watch.findings()

    def join(place: int) -> Any:
        if (error := failed[place]) is not None:
            raise error
        odd = tuple(dict.fromkeys((*findings[place], *changed)))
        own = Gathered(tuple(parts[place]), odd, prepared[place])
        return questions[place].joined(cohort, own)

    return [_tried(partial(join, place)) for place in range(len(questions))]


def _tried(work: Callable[[], Any]) -> Any:
    """Return the result of work, or the error that it raises unless it is cancelled."""
    try:
        return work()
    except StoppedError:
        raise
    except PanopticError as error:
        return error


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
    return tuple(m.name.replace("_", "-") for m in modules if not m.ispkg and m.name not in _BASES)


@cache
def question_kind(name: str) -> type[Question]:
    """Return the question of a name, whose module is imported."""
    if name not in question_names():
        raise SettingsError(f"there is no question '{name}'")
    module = name.replace("-", "_")
    return kind_in(f"napari_panoptic.questions.{module}", Question)  # type: ignore[type-abstract]


def kind_in(module_name: str, base: type[KindT]) -> type[KindT]:
    """Return the last class of a module that is derived from a base; the module is imported."""
    module = import_module(module_name)
    own = [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, base) and kind.__module__ == module_name
    ]
    return own[-1]
