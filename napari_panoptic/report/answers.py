"""Answers to questions over a cohort, on a page and as files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from napari_panoptic.questions.answer import Answer, AnswerPlot, AnswerTable
from napari_panoptic.questions.engines.cohort_failures import FailureName
from napari_panoptic.questions.question import Question
from napari_panoptic.report import plots
from napari_panoptic.report.columns import spec_table
from napari_panoptic.report.nuclei.tables import input_fingerprints
from napari_panoptic.report.plots.embed import plot_figure
from napari_panoptic.report.writing import provenance, write_set
from napari_panoptic.tables.markup import Child, bullets, named, paragraph
from napari_panoptic.values.cohort import Cohort

MOST_SENTENCES = 10
"""The number of rows that a page shows as sentences."""
ROWS_WITH_OBJECTS, OBJECTS_OF_ROW = 3, 3
"""The number of rows of an answer whose objects a report shows, and of objects of each."""


def drawn(plot: AnswerPlot) -> plots.Plot:
    """Draw a plot of an answer."""
    found: plots.Plot = getattr(plots, plot.name)(*plot.arguments)
    return found


def write_answer(question: Question, answer: Answer, cohort: Cohort, folder: Path) -> list[Path]:
    """Write the files of an answer, all of them or none; see `write_set`."""
    record = answer.record
    inputs = input_fingerprints(cohort, record.teams)
    content = {**record.content, **provenance(record.findings, inputs)}
    return write_set(folder, answer.files, (question.record_file(), content))


def shown_objects(answer: Answer) -> list[tuple[str, list[FailureName]]]:
    """Return the objects that a page shows: a title, and objects of the first rows."""
    found = []
    for table in answer.tables:
        rows = range(min(ROWS_WITH_OBJECTS, len(table.frame)))
        for own in (table.objects(row) for row in rows) if table.objects is not None else ():
            names = sorted(own.names, key=lambda name: (name.region, name.side, name.id))
            if names:
                found.append((own.title, names[:OBJECTS_OF_ROW]))
    return found


def answer_parts(
    answer: Answer,
    slug: str,
    teams: Sequence[str] = (),
    pictures: Callable[[Sequence[FailureName]], Sequence[Child]] = lambda _names: (),
) -> list[Child]:
    """Return an answer as the content of a section.

    Parameters
    ----------
    answer
        The answer.
    slug
        Begins the names of its downloads.
    teams
        All teams of the cohort, in its order, which decides their colours.
    pictures
        Returns pictures of objects.
    """
    parts: list[Child] = [paragraph(named(answer.headline))]
    if answer.notes:
        parts.append(bullets(map(named, answer.notes)))
    for number, plot in enumerate(answer.plots, start=1):
        parts.append(plot_figure(drawn(plot), f"{slug}-{number}", plot.caption))
    parts += [_table(table, slug, teams) for table in answer.tables if table.is_shown]
    for title, names in shown_objects(answer):
        if drawings := pictures(names):
            parts += [paragraph(named(title)), *drawings]
    return parts


def _table(table: AnswerTable, slug: str, teams: Sequence[str]) -> Child:
    if table.sentence is not None:
        return bullets(map(named, table.sentences(MOST_SENTENCES)))
    spec = table.spec if table.spec.file else replace(table.spec, file=f"{slug}.csv")
    return spec_table(spec, table.frame, teams)
