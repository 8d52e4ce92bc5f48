"""The program writes where it was told, and nowhere else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.sandbox import contents, sandbox
from tests.support.small_cohort import write_first_regions

TABLES = {
    *("objects.csv", "regions.csv", "patients.csv", "patients_by_class.csv", "teams.csv"),
    *("confusion.csv", "evaluation.json"),
}
# One process for both: starting takes longer than the work.
PROGRAM = """
import sys
from napari_panoptic.cli.main import main
cohort, tables, report = sys.argv[1:]
run = ["--teams", "alpha", "--jobs", "1"]
sys.exit(main(["evaluate", cohort, "--output", tables, *run])
         or main(["report", cohort, "-o", report, *run]))
"""


def test_evaluate_and_report_write_what_they_were_told_to(tmp_path: Path) -> None:
    cohort = write_first_regions(tmp_path / "small", 1)
    before = contents(cohort)
    around = tmp_path / "around"
    environment = sandbox(around)
    places = contents(around)
    told = tmp_path / "told"
    told.mkdir()
    arguments = [str(cohort), str(told / "tables"), str(told / "report.html")]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=around / "cwd",
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert contents(around) == places
    assert contents(cohort) == before
    assert set(contents(told)) == {"tables", "report.html", *(f"tables/{name}" for name in TABLES)}
