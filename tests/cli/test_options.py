"""Every option of every command changes what the command writes or prints, or is refused."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import cache
from io import StringIO
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from napari_panoptic.cli.main import command_parser
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.questions.question import question_names
from napari_panoptic.samples.write import write_detection_sample
from napari_panoptic.values.vocabulary import Verdict
from tests.support.builders import COLOURS
from tests.support.commands import exit_status
from tests.support.corrected import evaluation_of, failures, give
from tests.support.paths import csv_rows
from tests.support.reports import without_plots
from tests.support.review_packages import contents_of, saved, write_file
from tests.support.small_cohort import ANNOTATIONS, REGIONS, TEAMS, mask_path, write_first_regions

N_REGIONS = 3
WINDOWS = ("view", "demo")
"""Commands that open a window: their options have tests in tests/viewer/test_launch.py."""
DESCRIPTION = """
[classes]
{classes}
[ambiguous]
name = "Ambiguous"
[masks]
border = [[139, 69, 19]]
[files]
image = "{annotations}/{{patient}}/{{region}}.svs"
reference.imagescope = "{annotations}/{{patient}}/{{region}}.xml"
predictions.colour-coded = "Teams/{{team}}/{{patient}}/{{region}}_mask.png.tif"
predictions.submission = "Submissions/{{team}}/{{patient}}/{{region}}/{{class}}/*.mat"
predictions.probability = "maps/{{team}}/{{region}}.tif"
"""


@dataclass(frozen=True)
class Try:
    """How an option is tried."""

    #: The arguments behind it.
    values: str = ""
    #: Further arguments of both runs, and others in place of those in `BASES`.
    given: str = ""
    base: str = ""
    #: Whether it is refused as a mistake: exit status 2.
    is_refused: bool = False
    #: Whether the command is refused without it.
    is_needed: bool = False


PAIR = "--reference {reference} --prediction {prediction}"
"""In place of a cohort, where an option of two files is tried."""
IMPORT = "{answers} {cohort} --review {out}/review.sqlite"
TWO = f"{PAIR} {{other_prediction}}"
NO_SCORE = Try("monusac-2020-as-run", is_refused=True)
"""Commands that score nothing refuse how to score."""
ELSEWHERE = ("--no-resume",)
"""Options that need an interrupted run; test_run.py and test_cohort_report.py try them."""
LINK = f"panoptic:small@00000000-000000/{REGIONS[0].name}/reference"
"""The beginning of a link to an object."""
USUAL: Mapping[str, Try] = {
    "--allow-outside": Try(),
    "--max-pixels": Try("100"),
    "--reference": Try("{other_prediction}", base=PAIR),
    "--prediction": Try("{other_prediction}", base=PAIR),
    "--image": Try("{image}", base=PAIR),
    "--classes": Try("A", base=PAIR),
    "--teams": Try("alpha"),
    "--team": Try("beta"),
    "--protocol": Try("monusac-2020-as-run"),
    "--correct": Try("matching", given="--protocol monusac-2020-as-run"),
    "--source": Try("submission"),
    "--restoration": Try("border-dilated"),
    "--radius": Try("3", given="--restoration border-dilated"),
    "--matching": Try("centroid"),
    "--iou-threshold": Try("0.8"),
    "--ambiguous": Try("keep"),
    "--ambiguous-share": Try("0.1"),
    "--zone": Try("2"),
    "--overlaps": Try("keep"),
    "--outlines": Try("both-whole"),
    "--jobs": Try("0", is_refused=True),
    "--scheduler": Try("nowhere", is_refused=True),
    "--no-distances": Try(),
    "--held-up-to": Try("100"),
    "--distance-um": Try("1", base="{detections}"),
    "--confidence": Try("0.9", base="{detections}"),
    "--metadata": Try("{metadata}"),
    "--metric": Try("sq"),
    "--margin": Try("0.4"),
    "--seed": Try("7"),
    "--plan": Try("{plan}"),
    "--verdicts": Try("{verdicts}"),
    "--reviewer": Try("Bea"),
    "--blind": Try(),
    "--to": Try("geojson"),
}
"""How an option is tried in every command that has it, unless `OWN` has another way."""
OWN: Mapping[tuple[str, str], Try] = {
    ("correct", "--overlaps"): Try("take"),
    ("correct", "--claim"): Try("take"),
    ("correct", "--allow-outside"): Try(given="--team beta"),
    ("correct", "--review"): Try("{other_review}"),
    ("compare", "--reference"): Try("{other_prediction}", base=TWO),
    ("compare", "--prediction"): Try("{other_prediction}", base=TWO, is_refused=True),
    ("compare", "--image"): Try("{image}", base=TWO),
    ("compare", "--classes"): Try("A", base=TWO),
    ("compare", "--teams"): Try("alpha", base="{tables} {other_tables} --teams beta"),
    ("compare", "--protocol"): Try("stardist"),  # what its links open
    ("borders", "--zone"): Try("2", is_refused=True),  # it tries all
    ("compare", "--correct"): NO_SCORE,
    **{
        (command, option): NO_SCORE
        for command in (
            *("borders", "causes", "groups", "look-alikes", "scores", "slices", "sweep"),
        )
        for option in ("--protocol", "--correct")
    },
    **{
        (command, "--teams"): Try("alpha", is_refused=True)
        for command in ("ranking", "suspects", "sweep")
    },
    ("suspects", "--restoration"): Try("border-removed"),
    ("suspects", "--radius"): Try("3"),
    **{
        ("suspects", option): replace(USUAL[option], base=TWO)
        for option in ("--reference", "--prediction", "--image", "--classes")
    },
    ("dump", "--metadata"): Try("{organs}"),
    ("convert", "--allow-outside"): Try(given="--team beta"),
    ("compare", "--iou-step"): Try("0.01"),
    ("compare", "--gate"): Try(),
    ("sweep", "--settings"): Try("{other_settings}"),
    ("dump", "--missing"): Try("worst"),
    ("import-verdicts", "--review"): Try("{out}/other.sqlite"),
    ("import-verdicts", "--verdicts"): Try("{out}/table.csv", base=IMPORT, is_needed=True),
    ("import-verdicts", "--table-only"): Try(),
    ("import-verdicts", "--force"): Try(base=f"{IMPORT} --verdicts {{occupied}}", is_needed=True),
    ("sample", "--task"): Try("raters"),
    ("init", "--reference"): Try("manual"),
    ("init", "--fix"): Try("all"),
    ("init", "--picture"): Try("{out}/picture.png"),
    ("package", "--compare"): Try("alpha,beta"),
    ("package", "--plan"): Try("{other_plan}", base="{cohort} --plan {plan}"),
    ("package", "--failures"): Try("3"),
    ("package", "--seed"): Try("7", given="--compare alpha,beta"),
    ("plan", "--max-pixels"): Try("100", is_refused=True),
    ("plan", "--team"): Try("beta", given="--items 12"),
    ("plan", "--items"): Try("9"),
    ("plan", "--extend"): Try("{other_plan}", is_refused=True),
    ("estimate", "--plan"): Try("{other_plan}"),
    ("estimate", "--verdicts"): Try("{other_verdicts}"),
    ("plan", "--suspects"): Try(),
    ("estimate", "--seed"): Try("0"),
    ("report", "--group"): Try("site", given="--metadata {metadata}"),
    ("report", "--plan"): Try("{plan}", given="--verdicts {verdicts}", is_needed=True),
    ("report", "--verdicts"): Try("{verdicts}", given="--plan {plan}", is_needed=True),
    ("report", "--compare"): Try("alpha beta"),
    ("report", "--margin"): Try("0.4", given="--compare alpha beta"),
    ("report", "--date"): Try(),
    ("conventions", "--convention"): Try("pannuke"),
    ("conventions", "--published"): Try("alpha=0.5"),
    ("conventions", "--figure"): Try("aji", given="--published alpha=0.5"),
    ("conventions", "--decimals"): Try("1", given="--published alpha=0.5"),
    ("slices", "--restoration"): Try("border-dilated", given="--side prediction"),
    ("slices", "--side"): Try("prediction"),
    ("slices", "--cause"): Try("missed"),
    ("slices", "--covariates"): Try("{covariates}"),
    ("look-alikes", "--link"): Try(f"{LINK}=3"),
    ("look-alikes", "--features"): Try("area_px,solidity"),
    ("look-alikes", "--neighbours"): Try("3"),
    ("look-alikes", "--among"): Try("all"),
    ("look-alikes", "--scale"): Try("cohort"),
    ("slices", "--features"): Try("area_px,haematoxylin_sd"),
    ("slices", "--permutations"): Try("19"),
    ("convert", "--force"): Try(given="-o {occupied_folder}", is_needed=True),
}
"""The ways of some commands."""
BASES: Mapping[str, str] = {
    "evaluate": "{cohort}",
    "report": "{cohort}",
    "package": "{cohort} --failures 6",
    "import-verdicts": f"{IMPORT} --verdicts {{out}}/verdicts.csv",
    "plan": "{cohort} --team alpha --items 8",
    "estimate": "{cohort} --plan {plan} --verdicts {verdicts}",
    "correct": "{cohort} --review {review} --team alpha",
    "compare": "{cohort} alpha beta",
    "dump": "{dump}",
    "convert": "{cohort} --team alpha --to labels",
    "init": "{folder}",
    "sample": "{out}/sample",
    "sweep": "{cohort} --settings {settings}",
    "borders": "{cohort}",
    "conventions": "{cohort}",
    "ranking": "{cohort}",
    "suspects": "{cohort}",
    "look-alikes": f"{{cohort}} --team alpha --link {LINK}=2",
    **dict.fromkeys(("causes", "groups", "scores", "slices"), "{cohort} --team alpha"),
}
"""The arguments of both runs of a command."""
OUTPUTS = {"report": "page.html", "package": "page.html", "plan": "plan.csv"}


@dataclass(frozen=True)
class Outcome:
    """What one run of a command wrote and printed."""

    code: int
    printed: str
    files: Mapping[str, Any]


class World:
    """The files that the commands read, each made when it is first named."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._runs = count()
        self._files: dict[str, Path] = {}
        self._outcomes: dict[tuple[str, ...], Outcome] = {}

    def _cohort(self) -> Path:
        """Three regions of two patients and two teams with scores; one mask is a link."""
        folder = write_first_regions(self.root, N_REGIONS)
        classes = "\n".join(f"{name} = {list(rgb)}" for name, rgb in COLOURS.items())
        text = DESCRIPTION.format(classes=classes, annotations=ANNOTATIONS)
        (folder / "cohort.toml").write_text(text)
        for teams in (folder / "Teams", folder / "Submissions"):
            shutil.copytree(teams / "alpha", teams / "gamma")  # agrees with it: suspects
        rng = np.random.default_rng(1)
        for region, team in product(REGIONS[:N_REGIONS], (*TEAMS, "gamma")):
            path = folder / "maps" / team / f"{region.name}.tif"
            path.parent.mkdir(parents=True, exist_ok=True)
            tifffile.imwrite(path, rng.random(region.shape, np.float32))
        linked = mask_path(folder, "beta", REGIONS[1])
        shutil.move(linked, self.root / "outside.tif")
        linked.symlink_to(self.root / "outside.tif")
        return folder

    def _review(self, name: str = "review", first: int = 0) -> Path:
        cohort, path = open_cohort(self.file("cohort")), self.root / f"{name}.sqlite"
        for seed, region in enumerate(cohort.regions, start=first):
            for team in TEAMS:
                verdicts = failures(evaluation_of(cohort, region.name, team), seed)
                give(path, cohort, region.name, team, verdicts)
        return path

    def _other_review(self) -> Path:
        return self._review("other-review", 7)

    def _plan(self, name: str = "plan", seed: int = 0) -> Path:
        path = self.root / f"{name}.csv"
        arguments = ("--team", "alpha", "--items", 8, "--seed", seed, "-o", path)
        assert exit_status("plan", self.file("cohort"), *arguments) == 0
        return path

    def _other_plan(self) -> Path:
        return self._plan("other-plan", 5)

    def _other_verdicts(self) -> Path:
        return self._verdicts("other-verdicts", 1)

    def _verdicts(self, name: str = "verdicts", first: int = 0) -> Path:
        path = self.root / f"{name}.csv"
        rows = [
            f"{row['item']},{list(Verdict)[(int(row['item']) + first) % 3]},"
            if row["side"] != "background"
            else f"{row['item']},annotation-right,1"
            for row in csv_rows(self.file("plan"))
        ]
        path.write_text("\n".join(["item,verdict,count", *rows]) + "\n")
        return path

    def _answers(self) -> Path:
        page = self.root / "package.html"
        arguments = ("--plan", self.file("plan"), "-o", page)
        assert exit_status("package", self.file("cohort"), *arguments) == 0
        contents = contents_of(page)
        given = {
            item.item: Verdict.PREDICTION_RIGHT if item.target else 1 for item in contents.items
        }
        return write_file(self.root / "answers.json", saved(contents, given))

    def _dump(self) -> Path:
        lines = []
        for number, team in enumerate(TEAMS):
            lines.append(team)
            for patient in ("P1", "P2", "P3")[number:]:
                place = f".\\{patient}\\{patient}_1\\Epithelial\\1_mask.mat"
                lines += [place, "['1.mat']", repr(0.9 - number / 3 - int(patient[1]) / 10)]
        return self.text("dump.txt", "\n".join(lines))

    def _folder(self) -> Path:
        """Masks without a description: one team swapped the axes, another one mirrored them."""
        folder = self.root / "undescribed"
        squares = self._squares(5)
        sides = {
            "annotation": squares,
            "manual": squares,
            "teams/turned": squares.T,
            "teams/mirrored": squares[:, ::-1],
            "images": np.full((*squares.shape, 3), 200, np.uint8),
        }
        for side, pixels in sides.items():
            (folder / side).mkdir(parents=True)
            for region in ("p1_a", "p2_a"):
                tifffile.imwrite(folder / side / f"{region}.tif", np.ascontiguousarray(pixels))
        return folder

    def file(self, name: str) -> Path:
        """Return a file of its own by its name in arguments."""
        if name not in self._files:
            self._files[name] = getattr(self, f"_{name}")()
        return self._files[name]

    def text(self, name: str, text: str) -> Path:
        (self.root / name).write_text(text)
        return self.root / name

    def _metadata(self) -> Path:
        patients = dict.fromkeys(region.patient for region in REGIONS)
        rows = [f"{patient},organ {n},{n}" for n, patient in enumerate(patients)]
        return self.text("organs.csv", "\n".join(["patient,organ,site", *rows]))

    def _organs(self) -> Path:
        return self.text("organs-of-dump.csv", "patient,organ\nP1,Lung\nP2,Lung\nP3,Kidney\n")

    def _occupied(self) -> Path:
        return self.text("occupied.csv", "mine")

    def _occupied_folder(self) -> Path:
        (self.root / "occupied").mkdir()
        return self.text("occupied/mine.txt", "mine").parent

    def _tables(self, name: str = "tables", *options: str) -> Path:
        arguments = (self.file("cohort"), "--no-distances", *options, "-o", self.root / name)
        assert exit_status("evaluate", *arguments) == 0
        return self.root / name

    def _other_tables(self) -> Path:
        return self._tables("other-tables", "--source", "submission")

    def _settings(self) -> Path:
        return self.text("settings.csv", "team,threshold\nalpha,0.3\nbeta,0.5\n")

    def _other_settings(self) -> Path:
        return self.text("other.csv", "team,size\nbeta,3\nalpha,4\n")

    def _covariates(self) -> Path:
        rows = [
            f"{region.patient},{region.name},reference,{id_},{id_ % 2}"
            for region in REGIONS[:N_REGIONS]
            for id_ in range(1, 4)
        ]
        return self.text("covariates.csv", "\n".join(["patient,region,side,id,new", *rows]))

    def _detections(self) -> Path:
        return write_detection_sample(self.root / "detections")

    def _reference(self) -> Path:
        return self._labels("reference", 5)

    def _prediction(self) -> Path:
        return self._labels("first", 7)

    def _other_prediction(self) -> Path:
        return self._labels("second", 6)

    def _image(self) -> Path:
        path = self.root / "image.tif"
        size = {"resolution": (20_000, 20_000), "resolutionunit": "CENTIMETER"}
        tifffile.imwrite(path, np.full((32, 40, 3), 200, np.uint8), **size)
        return path

    def _labels(self, name: str, width: int) -> Path:
        labels = self._squares(width)
        if name != "reference":
            labels[11:16, 30:38] = 7  # found by both predictions
        tifffile.imwrite(self.root / f"{name}.tif", labels)
        return self.root / f"{name}.tif"

    @staticmethod
    def _squares(width: int) -> np.ndarray:
        labels = np.zeros((32, 40), np.uint16)
        for number, (y, x) in enumerate(product((2, 18), (2, 15, 28)), start=1):
            labels[y : y + width, x : x + 9] = number
        return labels

    def outcome(self, command: str, arguments: str) -> Outcome:
        """Run a command in an empty folder; runs with the same arguments are run once."""
        key = (command, arguments)
        if key not in self._outcomes:
            self._outcomes[key] = self._run(command, arguments)
        return self._outcomes[key]

    def _run(self, command: str, arguments: str) -> Outcome:
        out = self.root / "runs" / str(next(self._runs))
        out.mkdir(parents=True)
        words = [command, *(self._filled(word, out) for word in arguments.split())]
        if command == "init":  # it writes into the folder
            words[1] = str(shutil.copytree(words[1], out / "folder"))
        elif command not in ("import-verdicts", "sample") and "-o" not in words:
            words += ["-o", str(out / OUTPUTS.get(command, "tables"))]
        printed = StringIO()
        with redirect_stdout(printed), redirect_stderr(printed), without_plots():
            code = exit_status(*words)
        text = printed.getvalue().replace(str(out), "OUT")
        assert "Traceback" not in text
        files = {
            path.relative_to(out).as_posix(): content(path)
            for path in sorted(out.rglob("*"))
            if path.is_file()
        }
        shutil.rmtree(out)
        return Outcome(code, text, files)

    def _filled(self, word: str, out: Path) -> str:
        if word.startswith("{out}"):
            return word.replace("{out}", str(out))
        return str(self.file(word[1:-1])) if word.startswith("{") else word


def content(path: Path) -> Any:
    """Return what a file says, without what only repeats the arguments."""
    if path.suffix == ".json":
        record = json.loads(path.read_text("utf-8"))
        if isinstance(record, dict):
            for name in ("settings", "versions", "inputs", "protocol", "tables"):
                record.pop(name, None)
        return record
    if path.suffix == ".html":
        text = path.read_text("utf-8")
        return re.sub(r'<section id="(settings|methods)".*?</section>', "", text, flags=re.DOTALL)
    if path.suffix == ".sqlite":
        with closing(sqlite3.connect(path)) as connection:
            rows = connection.execute("SELECT * FROM changes").fetchall()
        return [re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+", "", str(row)) for row in rows]
    return path.read_bytes()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("options"))


@cache
def options() -> list[tuple[str, str]]:
    """Return command and option of every option, by its longest name."""
    (choice,) = (action for action in command_parser()._actions if action.dest == "command")
    found = []
    for command, parser in choice.choices.items():
        if command not in WINDOWS:
            parser.load().add_arguments(parser)
            actions = [a for a in parser._actions if a.dest not in ("help", "output")]
            names = [max(a.option_strings, key=len) for a in actions if a.option_strings]
            found += [(command, name) for name in names if name not in ELSEWHERE]
    return found


def is_long(command: str, option: str) -> bool:
    """Return whether other tries suffice: one command asks all questions, with shared options."""
    asked = [at for at, name in options() if name == option and at in question_names()]
    is_shared = command in asked[1:-1] and (command, option) not in OWN
    return is_shared or command == "report"


@pytest.mark.parametrize(
    ("command", "option"),
    [pytest.param(*each, marks=pytest.mark.long if is_long(*each) else ()) for each in options()],
)
def test_an_option_changes_the_outcome_or_is_refused(
    command: str, option: str, world: World
) -> None:
    way = OWN.get((command, option)) or USUAL[option]
    base = f"{way.base or BASES[command]} {way.given}"
    without = world.outcome(command, base)
    outcome = world.outcome(command, f"{base} {option} {way.values}")
    assert way.is_needed or without.code in (0, 1, 3, 4), without.printed
    if outcome.code == 2:
        assert way.is_refused, outcome.printed
    else:
        assert (outcome.code, outcome.printed, outcome.files) != (
            without.code,
            without.printed,
            without.files,
        )
