"""What the package does in many places, it does in one way: counted in its code."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.support.sources import nodes


def called_in(name: str) -> set[str]:
    """Return the modules that call a function, class or method of a name, or of a module's."""
    return {
        module
        for module, node in nodes()
        if isinstance(node, ast.Call)
        and name
        in (getattr(node.func, "id", ""), getattr(node.func, "attr", ""), ast.unparse(node.func))
    }


@pytest.mark.parametrize(
    ("name", "modules"),
    [
        # A box that asks has a harmless answer, which Esc gives.
        ("QMessageBox", ["viewer/kit/questions.py"]),
        # Cells that a spreadsheet would run are made harmless where tables become text.
        ("to_csv", ["common/spreadsheets.py"]),
        ("csv_bytes", ["report/columns.py", "report/writing.py", "tables/columns.py"]),
        # The regions of a cohort are gone through by one walk, with its findings and progress.
        ("ProcessPoolExecutor", ["nuclei/regions/run.py"]),
        # Tables are written by their specification; formats of objects have CSV files besides.
        (
            "csv.writer",
            [
                "io/cohorts/comparison.py",
                "io/formats/labels/arrays.py",
                "io/formats/labels/label_tiff.py",
            ],
        ),
        ("csv.DictWriter", []),
        # Each face asks a question in one place: the command of two versions has its own inputs.
        (
            "answered",
            [
                "cli/compare.py",
                "notebook.py",
                "questions/question.py",
                "report/answers.py",
                "report/nuclei/region.py",
                "viewer/panels/question/asking.py",
                "viewer/panels/region_question.py",
            ],
        ),
        # Questions are asked by one object of the window, alone or together.
        (
            "gather_together",
            [
                "questions/question.py",
                "report/answers.py",
                "viewer/panels/question/asking.py",
            ],
        ),
    ],
)
def test_it_is_done_in_one_place(name: str, modules: list[str]) -> None:
    assert sorted(called_in(name)) == modules


def test_questions_gather_in_one_way() -> None:
    found = {
        module
        for module, node in nodes()
        if isinstance(node, ast.FunctionDef) and node.name == "gather"
        if "progress" in {argument.arg for argument in node.args.args}
    }
    assert found == {
        "questions/question.py",
        "questions/sweep.py",  # compares in batches
        "viewer/jobs/cohort_work.py",  # the window's ranking is the pass of a report
        "viewer/panels/review/plan/work.py",  # lists the population of a plan
    }


def test_reviews_are_stored_in_one_kind_of_file() -> None:
    found = {
        module
        for module, node in nodes()
        if isinstance(node, ast.Import) and "sqlite3" in {name.name for name in node.names}
    }
    formats = {"io/formats/dicom_files.py", "io/formats/polygons/annotation_store.py"}
    assert found - formats == {
        "review/file.py",
        "review/earlier.py",  # reads the files of earlier versions
    }


def test_queues_of_objects_know_no_window() -> None:
    found = {
        module
        for module, node in nodes()
        if isinstance(node, ast.ClassDef)
        and any("ObjectQueue" in ast.unparse(base) for base in node.bases)
    }
    assert found
    assert all(module.startswith("display/") for module in found), found


def test_one_value_limits_the_pixels_that_are_held() -> None:
    found = [
        module
        for module, node in nodes()
        if isinstance(node, ast.Assign) and "HELD_UP_TO_PX" in map(ast.unparse, node.targets)
    ]
    assert found == ["values/reading.py"]


def test_no_class_name_has_two_meanings() -> None:
    names = Counter(node.name for _, node in nodes() if isinstance(node, ast.ClassDef))
    assert [name for name, n in names.items() if n > 1 and not name.startswith("_")] == []
