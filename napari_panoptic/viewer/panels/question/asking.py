"""Asks questions in one pass over the files, one question or all of a workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

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


class Asker:
    """Asks one question at a time, and keeps what was found until the next one is asked.

    Parameters
    ----------
    began
        Called when a question is on its way.
    progressed
        Called with the share of the work that is done, and the step.
    taken
        Called when something was found; see `found`.
    failed
        Called with the error if nothing was found; with None if the error is shown already.
    """

    def __init__(
        self,
        *,
        began: Callable[[], object],
        progressed: Callable[[float, str], object],
        taken: Callable[[], object],
        failed: Callable[[PanopticError | None], object],
    ) -> None:
        self._began, self._progressed = began, progressed
        self._taken, self._failed = taken, failed
        self._inquiry: Inquiry | None = None
        self._last: Found | None = None
        self.asked: Asked | None = None
        """What was asked last, also if it was stopped."""
        self.are_files_read = False
        """Whether the next question may use what the last one has read."""

    @property
    def is_asking(self) -> bool:
        """Whether an answer is still to come."""
        return self._inquiry is not None

    @property
    def is_stopped(self) -> bool:
        """Whether the last question was asked and has neither an answer nor one to come."""
        return self.asked is not None and self._last is None and not self.is_asking

    def found(self, asked: Asked | None) -> Found | None:
        """Return what was found for a question; None if another one was asked last."""
        last = self._last
        return last if last is not None and last.asked == asked else None

    def stop(self) -> None:
        """Wait for no answer."""
        inquiry, self._inquiry = self._inquiry, None
        if inquiry is not None:
            inquiry.leave(self)

    def forget(self) -> None:
        """Wait for no answer, and keep none."""
        self.stop()
        self._last = self.asked = None

    # Called by the inquiry.

    def expect(self, inquiry: Inquiry, asked: Asked) -> Found | None:
        """Wait for an answer; return what was found before if its files need not be read again."""
        self.stop()
        last, self._last = self._last, None
        self._inquiry, self.asked = inquiry, asked
        self._began()
        # The same question again: files may have changed meanwhile.
        if last is None or not self.are_files_read or last.asked == asked:
            return None
        return last if last.asked.gathering == asked.gathering else None

    def show_progress(self, share: float, doing: str) -> None:
        """Show what share of the work is done."""
        self._progressed(share, doing)

    def take(self, found: Found) -> None:
        """Keep what was found."""
        if found.error is not None:
            self.fail(found.error)
            return
        self._inquiry, self._last, self.are_files_read = None, found, True
        self._taken()

    def fail(self, error: PanopticError | None) -> None:
        """Wait no longer: there is no answer."""
        self._inquiry = None
        self._failed(error)


def ask_together(asked: Mapping[Asker, Asked]) -> None:
    """Ask the questions of all askers in one pass."""
    if asked:
        Inquiry(asked)


class Inquiry:
    """Questions on their way, until the last of them is answered or was given up."""

    def __init__(self, asked: Mapping[Asker, Asked]) -> None:
        self._waiting = dict(asked)
        known = [asker.expect(self, question) for asker, question in asked.items()]
        # A stream keeps its receivers weakly: those who wait keep this.
        self._work: Stream[Found] = Stream(
            self._on_found, failed=self._on_failed, progressed=self._on_progress
        )
        self._work.start(partial(_found, list(asked.values()), known))

    def leave(self, asker: Asker) -> None:
        """Drop the question of an asker, and stop with the last one."""
        self._waiting.pop(asker, None)
        if not self._waiting:
            self._work.stop()

    def _on_progress(self, share: float, doing: str = "") -> None:
        for asker in self._waiting:
            asker.show_progress(share, doing)

    def _on_found(self, found: Found) -> None:
        for asker in [key for key, asked in self._waiting.items() if asked is found.asked]:
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
