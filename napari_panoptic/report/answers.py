"""Answers to questions over a cohort, on a page and as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.progress import Progress
from napari_panoptic.explain.failures import FailureName
from napari_panoptic.io.files.fingerprints import input_fingerprints
from napari_panoptic.questions.answer import Answer, AnswerPlot, AnswerTable, UnansweredError
from napari_panoptic.questions.question import Question, gather_together
from napari_panoptic.report import plots
from napari_panoptic.report.columns import spec_table
from napari_panoptic.report.nuclei.sweep_page import sweep_page
from napari_panoptic.report.page import team_label, write_page
from napari_panoptic.report.plots.embed import plot_figure
from napari_panoptic.report.writing import provenance, write_set
from napari_panoptic.tables.columns import CellContent, Record, TableColumn
from napari_panoptic.tables.markup import (
    Child,
    bullets,
    element,
    folded,
    fragment,
    named,
    object_link,
    paragraph,
)
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.links import MOST_OBJECTS, LinkMaker

_LINK = "link of row"
_LINK_COLUMN = TableColumn("link", lambda row: CellContent(object_link(row[_LINK])))
MOST_SENTENCES = 10
"""The number of rows that a page shows as sentences."""
MOST_ROWS = 25
"""The number of rows of a table that a page shows; its CSV file has all."""
ROWS_WITH_OBJECTS, OBJECTS_OF_ROW = 3, 3
"""The number of rows of an answer whose objects a report shows, and of objects of each."""


Asked = tuple[Question, Answer]
"""A question and its answer."""


def drawn(plot: AnswerPlot) -> plots.Plot:
    """Draw a plot of an answer."""
    found: plots.Plot = getattr(plots, plot.name)(*plot.arguments, **plot.keywords)
    return found


def write_answer(question: Question, answer: Answer, cohort: Cohort, folder: Path) -> list[Path]:
    """Write the files of an answer, all of them or none; see `write_set`."""
    record = answer.record
    inputs = input_fingerprints(cohort, record.teams)
    content = {**record.content, **provenance(record.findings, inputs)}
    add = page_writer(question, answer, inputs)
    return write_set(folder, answer.files, (question.record_file(), content), add=add)


def page_writer(
    question: Question, answer: Answer, inputs: Mapping[str, str]
) -> Callable[[Path], object]:
    """Return what writes the page of an answer into a folder, if its question has one."""

    def write(folder: Path) -> None:
        if question.page:
            (sweep,) = answer.plots[0].arguments  # only sweeps have a page
            write_page(folder / question.page, sweep_page(sweep, inputs))

    return write


def shown_objects(answer: Answer) -> list[tuple[str, list[FailureName]]]:
    """Return the objects that a page shows: a title, and objects of the first rows."""
    found = []
    for table in (own for own in answer.tables if own.is_shown):
        rows = range(min(ROWS_WITH_OBJECTS, len(table.frame)))
        for own in (table.objects(row) for row in rows) if table.objects is not None else ():
            names = sorted(own.names, key=lambda name: (name.region, name.side, name.id))
            if names:
                found.append((own.title, names[:OBJECTS_OF_ROW]))
    return found


def asked_by_reports(
    kind: type[Question], cohort: Cohort, team_names: Sequence[str], **common: Any
) -> list[Question]:
    """Return the questions of a kind that a report asks: of each team, or of all together.

    Parameters
    ----------
    kind
        Questions that need more than teams are not asked, nor those that choose teams themselves if
        not all are reported on.
    cohort, team_names
        The cohort, and its teams that are reported on.
    common
        Settings and the like, as the fields of `Question`.
    """
    required = {f.name for f in fields(kind) if f.default is MISSING and "option" in f.metadata}
    if required == {"team"}:
        asked = [kind(**common, team=team) for team in team_names]  # type: ignore[call-arg]
    elif required == {"teams"}:
        asked = [kind(**common, teams=tuple(team_names))]  # type: ignore[call-arg]
    elif not required and {team.name for team in cohort.competing_teams} <= {*team_names}:
        asked = [kind(**common)]
    else:
        asked = []
    return [own for own in asked if not own.why_not(cohort)]


def answers_to(
    questions: Sequence[Question], cohort: Cohort, progress: Progress, *, jobs: int | None = None
) -> list[Asked]:
    """Return the questions that have an answer, with it; regions are read once for those alike."""
    answers = []
    for own, gathered in zip(
        questions, gather_together(questions, cohort, progress, jobs=jobs), strict=True
    ):
        try:
            if isinstance(gathered, UnansweredError):
                continue  # the section on the data has the reasons
            if isinstance(gathered, PanopticError):
                raise gathered
            answers.append((own, own.answered(cohort, gathered, progress)))
        except UnansweredError:
            continue
    return answers


def answers_section(
    answers: Sequence[Asked],
    teams: Sequence[str],
    pictures: Callable[[Sequence[FailureName]], Sequence[Child]],
    cohort: Cohort,
) -> list[Child]:
    """Return the section of a report on the answers to one kind of question; see `answer_parts`."""
    parts: list[Child] = []
    links = LinkMaker.of(cohort)
    for number, (question, answer) in enumerate(answers, start=1):
        slug = question.name()
        if (team := getattr(question, "team", None)) is not None:
            parts.append(element("h3", team_label(team, teams)))
            slug += f"-{number}"
        own = replace(
            links, settings=question.settings.replaced(distances=True), source=question.source
        )
        parts += answer_parts(answer, slug, teams, pictures, own)
    return parts


def answer_parts(
    answer: Answer,
    slug: str,
    teams: Sequence[str] = (),
    pictures: Callable[[Sequence[FailureName]], Sequence[Child]] = lambda _names: (),
    links: LinkMaker | None = None,
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
    links
        Writes the links of rows that are about objects of one region; None for none.
    """
    parts: list[Child] = [paragraph(named(answer.headline))]
    if answer.notes:
        parts.append(bullets(map(named, answer.notes)))
    parts += _content(answer, slug, teams, links)
    for title, names in shown_objects(answer):
        if drawings := pictures(names):
            parts += [paragraph(named(title)), *drawings]
    return parts


def _content(
    answer: Answer, slug: str, teams: Sequence[str], links: LinkMaker | None
) -> list[Child]:
    """Return plots and tables."""
    plots = enumerate((plot for plot in answer.plots if plot.is_on_pages), start=1)
    return [
        *(plot_figure(drawn(plot), f"{slug}-{number}", plot.caption) for number, plot in plots),
        *(_table(table, slug, teams, links) for table in _tables(answer)),
    ]


def _tables(answer: Answer) -> list[AnswerTable]:
    """Return the tables that a page shows: no lists without rows."""
    shown = [table for table in answer.tables if table.is_shown and not table.is_long]
    return [table for table in shown if len(table.frame) or not table.empty]


def _table(table: AnswerTable, slug: str, teams: Sequence[str], links: LinkMaker | None) -> Child:
    heading = table.heading.lower().replace(" ", "-")
    name = table.spec.file.removesuffix(".csv") or heading or "summary"
    own = slug if name == slug.partition("-")[0] else f"{slug}_{name}"
    spec = replace(table.spec, file=f"{own}.csv")
    shown: list[Record] = [
        {**row, _LINK: link}
        for row, link in zip(
            table.frame.head(MOST_ROWS).to_dict("records"), _links(table, links), strict=False
        )
    ]
    if any(row[_LINK] for row in shown):
        spec = replace(spec, columns=[*spec.columns, _LINK_COLUMN])
    if len(table.frame) > MOST_ROWS:
        of = f"The first {MOST_ROWS} of {len(table.frame)}; the CSV file has all."
        spec = replace(spec, caption=f"{spec.caption} {of}")
    if table.sentence is None:
        return spec_table(spec, table.frame, teams, rows=shown)
    listed = bullets(
        fragment(named(sentence), " ", object_link(row[_LINK]))
        for sentence, row in zip(table.sentences(MOST_SENTENCES), shown, strict=False)
    )
    as_table = None
    if len(table.frame) and spec.shown():
        as_table = spec_table(spec, table.frame, teams, rows=shown)
    return fragment(listed, None if as_table is None else folded("The same as a table", as_table))


def _links(table: AnswerTable, links: LinkMaker | None) -> list[str]:
    """Return the links of the first rows, empty for rows without one."""
    rows = range(min(MOST_ROWS, len(table.frame)))
    if links is None or table.objects is None:
        return [""] * len(rows)
    if "link" in table.frame:
        return list(table.frame["link"].head(MOST_ROWS))
    found = [table.objects(row) for row in rows]
    return [links.to(own.in_order()) if len(own.names) <= MOST_OBJECTS else "" for own in found]
