"""Asks questions in one pass over the files, one question or all of a workspace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding
from napari_panoptic.common.progress import Progress, StoppedError
from napari_panoptic.questions.answer import Answer, UnansweredError
from napari_panoptic.questions.question import Question, gather_together
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.viewer.jobs.jobs import Job, Stream, show_failure


@dataclass(frozen=True)
class Asked:
    """A question, and the cohort that it is about."""

    cohort: Cohort
    question: Question

    @property
    def gathering(self) -> Asked:
        """The same without what is not needed to read the files."""
        return replace(self, question=self.question.gathering)


@dataclass(frozen=True, eq=False)
class Found:
    """What a worker found: an answer, or the reason why there is none."""

    asked: Asked
    answer: Answer | None
    why: str = ""
    findings: tuple[Finding, ...] = ()
    #: What was read of the cohort; None if another question has read it.
    gathered: Any = None
    #: What went wrong.
    error: PanopticError | None = None


class Asker(Protocol):
    """Asks a question and takes the answer."""

    def question(self) -> Asked | None:
        """Return what would be asked now; None if nothing can be."""

    def why_not(self) -> str:
        """Return why nothing can be asked; empty if something can."""

    def expect(self, asking: Inquiry) -> Found | None:
        """Wait for an answer; return what was found before if its files need not be read again."""

    def show_progress(self, share: float, doing: str) -> None:
        """Show what share of the work is done."""

    def take(self, found: Found) -> None:
        """Take what was found."""

    def fail(self, error: PanopticError | None) -> None:
        """Show that there is no answer, and the error; None if that is shown already."""


def ask_together(askers: Sequence[Asker]) -> None:
    """Ask the questions of all that can ask one, in one pass."""
    asked = {
        asker: question
        for asker in askers
        if (question := asker.question()) is not None and not asker.why_not()
    }
    if asked:
        Inquiry(asked)


class Inquiry:
    """Questions on their way, until the last of them is answered or was given up."""

    def __init__(self, asked: Mapping[Asker, Asked]) -> None:
        self._waiting = dict(asked)
        known = [asker.expect(self) for asker in asked]
        # A stream keeps its receivers weakly: those who wait keep this.
        self._work: Stream[Found] = Stream(
            self._on_found, failed=self._on_failed, progressed=self._on_progress
        )
        self._work.start(partial(_found, list(asked.values()), known))

    def asked_by(self, asker: Asker) -> Asked:
        """Return what was asked."""
        return self._waiting[asker]

    def leave(self, asker: Asker) -> None:
        """Drop the question of an asker, and stop with the last one."""
        self._waiting.pop(asker, None)
        if not self._waiting:
            self._work.stop()

    def _on_progress(self, share: float, doing: str = "") -> None:
        for asker in self._waiting:
            asker.show_progress(share, doing)

    def _on_found(self, found: Found) -> None:
        for asker in [one for one, asked in self._waiting.items() if asked is found.asked]:
            del self._waiting[asker]
            asker.take(found)

    def _on_failed(self, error: PanopticError) -> None:
        waiting, self._waiting = list(self._waiting), {}
        for asker in waiting:
            asker.fail(None)
        show_failure(error)


# --- in workers -------------------------------------------------------------------------------

_SHARE_OF_READING = 0.8
"""The share of the work that reading is, where several questions are asked."""


def _found(
    asked: Sequence[Asked], known: Sequence[Found | None], job: Job[Found]
) -> Iterator[Found]:
    """Find the answers; each is yielded as soon as it is there."""
    share = asked[0].question.share_of_gathering if len(asked) == 1 else _SHARE_OF_READING
    reading, rest = job.progress.part(0, share), job.progress.part(share, 1)
    for number, (own, gathered) in enumerate(_gathered(asked, known, reading)):
        part = rest.part(number / len(asked), (number + 1) / len(asked))
        yield _answered(own, gathered, part)


def _gathered(
    asked: Sequence[Asked], known: Sequence[Found | None], progress: Progress
) -> Iterator[tuple[Asked, Any]]:
    """Yield what each question needs, what went wrong, or an answer that is there already."""
    before = [None if found is None else found.gathered for found in known]
    unread = [own for own, gathered in zip(asked, before, strict=True) if gathered is None]
    # A report of the cohort has the answers to other questions, too.
    wholes = [own for own in unread if type(own.question).answer_to is not Question.answer_to]
    others = [own for own in unread if own not in wholes]
    share = len(wholes) / len(unread) if unread else 0.0
    for whole, gathered in _read(wholes, progress.part(0, share)):
        yield whole, gathered
        for own in [] if isinstance(gathered, PanopticError) else list(others):
            if (answer := whole.question.answer_to(own.question, gathered)) is not None:
                others.remove(own)
                yield own, answer
    yield from _read(others, progress.part(share, 1))
    for own, gathered in zip(asked, before, strict=True):
        if gathered is not None:
            yield own, gathered


def _read(asked: Sequence[Asked], progress: Progress) -> Iterator[tuple[Asked, Any]]:
    if asked:
        questions = [own.question for own in asked]
        yield from zip(asked, gather_together(questions, asked[0].cohort, progress), strict=True)


def _answered(asked: Asked, gathered: Any, progress: Progress) -> Found:
    """Return the answer, or why there is none."""
    question = asked.question
    try:
        if isinstance(gathered, PanopticError):
            raise gathered
        if isinstance(gathered, Answer):
            return Found(asked, gathered)
        return Found(asked, question.answered(asked.cohort, gathered, progress), gathered=gathered)
    except UnansweredError as error:
        why = f"Nothing could be {question.done}: {error}."
        return Found(asked, None, why, error.findings)
    except StoppedError:
        raise
    except PanopticError as error:
        return Found(asked, None, error=error)
