"""A question is one file: command, files, section, cell of a notebook and panel come from it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from napari_panoptic import open_cohort, questions
from napari_panoptic.cli.main import main
from napari_panoptic.common.progress import Progress, StoppedError
from napari_panoptic.questions import question
from napari_panoptic.questions.answer import UnansweredError
from napari_panoptic.report.nuclei.cohort_report import ReportRequest, cohort_report
from napari_panoptic.report.nuclei.page import report_page
from napari_panoptic.values.settings import DEFAULT_PROTOCOL, EvaluationSettings

EDGE = '''
"""Count how many nuclei touch the frame."""

from dataclasses import dataclass

import numpy as np

from napari_panoptic.questions.answer import Answer, AnswerTable
from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.questions.question import TeamQuestion, option
from napari_panoptic.tables.columns import TableSpec, name_column, number, whole
from napari_panoptic.values.vocabulary import SIDES

EDGE = TableSpec(
    "edge.csv", "side", [name_column("side"), whole("objects"), whole("touching"), number("share")]
)


@dataclass(frozen=True, kw_only=True)
class Edge(TeamQuestion):
    title = "Edge"
    about = "Count the nuclei that touch the frame."
    hint = "Press it."
    tables = (EDGE,)

    margin: int = option("pixels from the frame that count as touching", 0, read=int, metavar="PX")

    def part(self, evaluation, region):
        height, width = evaluation.pair.reference.index.shape
        found = []
        for side in SIDES:
            own = evaluation.outcomes.side(side)
            y0, x0, y1, x1 = own.bbox.T
            m = self.margin
            is_near = (y0 <= m) | (x0 <= m) | (y1 >= height - m) | (x1 >= width - m)
            names = [FailureName(self.team, region.name, side, int(i)) for i in own.ids[is_near]]
            found.append((len(own), names))
        return found

    def answered(self, cohort, gathered, progress=None):
        rows, sets = [], []
        for side, own in zip(SIDES, zip(*gathered.parts)):
            names = [name for _, some in own for name in some]
            n = sum(count for count, _ in own)
            share = len(names) / n if n else np.nan
            rows.append({"side": side, "objects": n, "touching": len(names), "share": share})
            sets.append(FailureSet(f"{side} at the edge", frozenset(names)))
        table = AnswerTable(EDGE, EDGE.frame(rows), lambda row: sets[row], has_others=True)
        headline = f"{self.team}: {rows[0]['touching']} of {rows[0]['objects']} touch the frame."
        return Answer(headline, (), (table,), (), self.team_record(cohort, gathered, rows=rows))
'''


@pytest.fixture
def edge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put one more file beside the questions, as far as Python sees."""
    folder = tmp_path / "beside"
    folder.mkdir()
    (folder / "edge.py").write_text(EDGE, "utf-8")
    monkeypatch.setattr(questions, "__path__", [*questions.__path__, str(folder)])
    for cached in (question.question_names, question.question_kind):
        cached.cache_clear()
    yield "edge"
    for cached in (question.question_names, question.question_kind):
        cached.cache_clear()
    sys.modules.pop("napari_panoptic.questions.edge", None)


def test_one_file_is_a_command_with_files(
    edge: str, nuclei_sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    assert "count how many nuclei touch the frame" in " ".join(capsys.readouterr().out.split())
    out = tmp_path / "out"
    assert (
        main([edge, str(nuclei_sample), "--team", "merger", "--margin", "2", "-o", str(out)]) == 0
    )
    printed = capsys.readouterr().out
    assert "merger: " in printed
    found = pd.read_csv(out / "edge.csv")
    for share in found["share"]:  # as panels and the report write it
        assert f" {share:.3f}\n" in printed
    assert (found["touching"] > 0).all()
    assert (found["touching"] < found["objects"]).all()
    assert (out / "edge.json").is_file()


def test_one_file_is_a_cell_of_a_notebook_whose_rows_lead_to_objects(
    edge: str, nuclei_sample: Path
) -> None:
    cohort = open_cohort(nuclei_sample)
    few, many = (cohort.ask(edge, team="merger", margin=margin) for margin in (0, 9))
    row = few.tables["edge.csv"].iloc[0]
    assert len(few.objects("edge.csv", 0)) == row["touching"]
    assert row["touching"] < many.tables["edge.csv"].iloc[0]["touching"]
    assert str(row["touching"]) in few._repr_html_()


def test_one_file_is_a_section_of_the_report(edge: str, nuclei_sample: Path) -> None:
    cohort = open_cohort(nuclei_sample).cohort
    settings = EvaluationSettings(distances=False)
    report = cohort_report(ReportRequest(cohort, settings, DEFAULT_PROTOCOL, ("merger",)))
    assert report is not None
    asked = [own.name() for own, _ in report.answers]
    assert edge in asked
    page = report_page(report, [], only=[edge])
    assert "touch the frame." in page


def test_questions_are_the_modules_of_the_folder() -> None:
    names = question.question_names()
    files = {path.stem for path in Path(questions.__path__[0]).glob("*.py")}
    modules = files - {"__init__", "answer", "question"}
    assert set(names) == {name.replace("_", "-") for name in modules}
    for name in names:
        kind = question.question_kind(name)
        assert kind.name() == name
        assert kind.file_names()[-1] == f"{name}.json"


def test_equal_questions_are_equal_and_late_options_need_no_new_reading(edge: str) -> None:
    kind = question.question_kind(edge)
    assert kind(team="a") == kind(team="a") != kind(team="b")
    assert kind(team="a", margin=1).gathering != kind(team="a").gathering


def test_questions_gathered_together_have_the_answers_of_each_alone(
    edge: str, nuclei_sample: Path
) -> None:
    cohort = open_cohort(nuclei_sample).cohort
    kinds = {name: question.question_kind(name) for name in ("suspects", edge, "slices", "groups")}
    nobody = replace(cohort, predictions={})
    asked = [
        kinds[edge](team="merger"),
        kinds["suspects"](teams=("merger", "careful", "splitter")),
        kinds["groups"](team="merger"),
        kinds["slices"](team="careful"),
        kinds[edge](team="careful", margin=2),
    ]
    shares: list[float] = []
    watched = Progress(report=lambda share, _: shares.append(share))
    gathered = question.gather_together(asked, cohort, watched)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    for own, found in zip(asked, gathered, strict=True):
        together, alone = own.answered(cohort, found), own.answer(cohort)
        assert together.headline == alone.headline
        assert together.record.findings == alone.record.findings
        for name, frame in alone.files.items():
            pd.testing.assert_frame_equal(together.files[name], frame)
    for own, found in zip(asked, question.gather_together(asked, nobody), strict=True):
        with pytest.raises(UnansweredError) as alone:
            own.gather(nobody)
        assert isinstance(found, UnansweredError)
        assert (str(found), found.findings) == (str(alone.value), alone.value.findings)


def test_questions_gathered_together_stop_when_cancelled(edge: str, nuclei_sample: Path) -> None:
    cohort = open_cohort(nuclei_sample).cohort
    asked = [question.question_kind(name)(team="merger") for name in (edge, "slices")]
    with pytest.raises(StoppedError):
        question.gather_together(asked, cohort, Progress(lambda: False))
