"""Plots: every point where its figure is and with its owner, and files that do not change."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from defusedxml import ElementTree
from matplotlib.artist import Artist
from matplotlib.backend_bases import MouseEvent, RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.display.palette import TEAM_COLOURS, team_styles
from napari_panoptic.nuclei.regions.conditions import Robustness
from napari_panoptic.questions.engines.slice_conditions import Curve, failure_curve
from napari_panoptic.report import plots
from napari_panoptic.report.plots import Plot, Point, svg_text
from napari_panoptic.report.plots.theme import fit_legend
from napari_panoptic.statistics.friedman import TeamFigures, compare_teams, critical_difference
from napari_panoptic.statistics.ranks import competition_ranks
from tests.support.reports import HOSTILE_TEAMS
from tests.support.vision import VISIONS, difference

TEAMS = ("alpha", "beta", "gamma")
NAN = float("nan")
LEAST_DIFFERENCE = 17.0


@pytest.fixture
def patients() -> pd.DataFrame:
    rows = [
        ("alpha", "p1", 0.2, 0.5, 0.4),
        ("alpha", "p2", 0.4, 0.7, 0.6),
        ("alpha", "p3", 0.9, 0.9, 1.0),
        ("beta", "p1", 0.1, 0.5, 0.2),
        ("beta", "p2", NAN, NAN, NAN),
        ("gamma", "p1", NAN, NAN, NAN),
    ]
    frame = pd.DataFrame(rows, columns=["team", "patient", "pq", "sq", "dq"])
    return frame.assign(detection_precision=frame["sq"], detection_recall=frame["dq"])


def rank_lines(scores: list[list[float]], names: tuple[str, ...] = TEAMS) -> Plot:
    """Draw ranks by two conventions."""
    return plots.rank_lines(("one", "two"), dict(zip(names, scores, strict=True)), names)


def robustness(pq: Any, names: tuple[str, ...], changes: Any = ()) -> Robustness:
    values = np.array(pq, float)
    ranks = competition_ranks(values)
    counts = np.full(values.shape, 3, np.int64)
    teams = TEAMS[: len(values)]
    return Robustness(teams, names, values, values, values, counts, ranks, tuple(changes))


def every_plot(patients: pd.DataFrame, names: tuple[str, ...] = TEAMS) -> list[Plot]:
    """Draw one of each, with other names for the three teams."""
    renamed = patients.assign(team=patients["team"].map(dict(zip(TEAMS, names, strict=True))))
    counts = [
        {"team": team, "reference": r, "prediction": p, "count": 1}
        for team, r, p in itertools.product(names, ("none", "E"), ("none", "E"))
    ]
    figures = {name: [0.1 * n, 0.2, 0.3 * n, 0.4 + n] for n, name in enumerate(names)}
    found = robustness([[0.1, 0.2], [0.3, 0.1], [0.2, NAN]], ("a", "b"))
    varied = Robustness(names, *list(vars(found).values())[1:])
    causes = [
        {"team": t, "side": s, "cause": "split", "count": 1, "failures": 2, "share": 0.5}
        for t, s in itertools.product(names, ("reference", "prediction"))
    ]
    sizes = [
        {"team": t, "size": 1, "area_from": 0.0, "area_below": 9.0, "area_unit": "px"}
        | {"recall": 0.5, "precision": NAN, "mean_iou": 0.7}
        for t in names
    ]
    return [
        plots.patient_boxes({"": renamed}, names),
        plots.quality_scatter({"": renamed}, names),
        plots.detection_scatter({"a": renamed, "b": renamed}, names),
        plots.confusion_matrices(pd.DataFrame(counts), ["E"], names),
        plots.confusion_matrices(pd.DataFrame(counts), ["E"], names, normalised=True),
        plots.critical_difference_diagram(
            critical_difference(compare_teams(TeamFigures(figures))), names
        ),
        rank_lines([[0.5, 0.6], [0.5, 0.2], [NAN, 0.9]], names),
        plots.robustness_curves(varied, [0, 1], names, x_label="x"),
        plots.shift_maps(varied, [(0, 0), (0, 1)], names),
        plots.cause_dots(pd.DataFrame(causes), names),
        plots.size_lines(pd.DataFrame(sizes), names),
    ]


def of_team(plot: Plot, team: str) -> list[Point]:
    return [p for points in plot.points.values() for p in points if p.team == team]


def texts(plot: Plot) -> list[str]:
    return [text.get_text() for text in plot.figure.findobj(Text) if isinstance(text, Text)]


def test_a_box_shows_every_patient_with_a_figure_and_the_mean(patients: pd.DataFrame) -> None:
    plot = plots.patient_boxes({"": patients}, TEAMS)

    alpha = of_team(plot, "alpha")
    assert [(p.patient, p.x) for p in alpha[:3]] == [("p1", 0.2), ("p2", 0.4), ("p3", 0.9)]
    assert alpha[3].patient == ""
    assert alpha[3].x == pytest.approx(0.5)
    assert [p.patient for p in of_team(plot, "beta")] == ["p1", ""]
    assert of_team(plot, "gamma") == []
    assert "no patient has a figure" in texts(plot)


def test_a_box_spans_the_quartiles_and_whiskers_end_at_values() -> None:
    values = [0.1, 0.4, 0.45, 0.5, 0.55, 0.6, 0.95]
    frame = pd.DataFrame({"team": "alpha", "patient": [str(v) for v in values], "pq": values})

    (axes,) = plots.patient_boxes({"": frame}, TEAMS).figure.axes

    (box,) = axes.patches
    assert isinstance(box, Rectangle)
    low, median, high = np.percentile(values, [25, 50, 75])
    assert box.get_x() == pytest.approx(low)
    assert box.get_width() == pytest.approx(high - low)
    middle, *whiskers = [line.get_xdata() for line in axes.lines[:5]]
    assert list(middle) == [median, median]
    ends = sorted({float(np.asarray(line)[0]) for line in whiskers})
    assert ends == [0.4, 0.6]  # 0.1 and 0.95 are further away than 1.5 boxes


def test_a_row_per_region_keeps_its_region(patients: pd.DataFrame) -> None:
    by_region = patients.assign(region=[f"r{n}" for n in range(len(patients))])

    plot = plots.patient_boxes({"": by_region}, TEAMS)

    assert [p.region for p in of_team(plot, "alpha")] == ["r0", "r1", "r2", ""]


def test_scatters_mark_the_mean(patients: pd.DataFrame) -> None:
    quality = plots.quality_scatter({"": patients}, TEAMS)
    detection = plots.detection_scatter({"": patients}, TEAMS)

    for plot in (quality, detection):  # the table has the same numbers for both
        *each, mean = of_team(plot, "alpha")
        assert [(p.x, p.y) for p in each] == [(0.4, 0.5), (0.6, 0.7), (1.0, 0.9)]
        assert (mean.x, mean.y) == (pytest.approx(2 / 3), pytest.approx(0.7))


def test_every_artist_lies_where_its_points_say(patients: pd.DataFrame) -> None:
    for plot in every_plot(patients):
        for artist, points in plot.points.items():
            assert artist.get_picker()
            if isinstance(artist, QuadMesh):
                corners = artist.get_coordinates()
                centres = (corners[:-1, :-1] + corners[1:, 1:]) / 2
                shown = centres.reshape(-1, 2)
            else:
                shown = artist.get_xydata()  # type: ignore[attr-defined]
            np.testing.assert_allclose(shown, [(p.x, p.y) for p in points])


def test_a_click_leads_to_the_patient_under_it(patients: pd.DataFrame) -> None:
    plot = plots.quality_scatter({"": patients}, TEAMS)
    canvas = FigureCanvasAgg(plot.figure)
    canvas.draw()
    (artist, points), *_ = plot.points.items()
    axes = artist.axes
    assert axes is not None
    for number, point in enumerate(points):
        x, y = axes.transData.transform((point.x, point.y))
        hit, details = artist.contains(MouseEvent("button_press_event", canvas, x, y, 1))
        assert hit
        assert details["ind"].tolist() == [number]


def test_a_team_has_its_colour_whoever_else_is_shown(patients: pd.DataFrame) -> None:
    wanted = team_styles(TEAMS)["beta"]
    alone = patients[patients["team"] == "beta"]
    for table in (patients, alone):
        plot = plots.quality_scatter({"": table}, TEAMS)
        (artist,) = (
            a
            for a, points in plot.points.items()
            if points[0].patient == "p1" and points[0].team == "beta"
        )
        assert artist.get_color() == wanted.colour  # type: ignore[attr-defined]
        assert artist.get_marker() == wanted.marker  # type: ignore[attr-defined]


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(TEAM_COLOURS, 2)))
def test_any_two_team_colours_can_be_told_apart(one: Any, other: Any, vision: str) -> None:
    assert difference(one, other, vision) >= LEAST_DIFFERENCE


def test_no_two_of_sixty_four_teams_look_alike() -> None:
    styles = team_styles([f"team {n}" for n in range(64)])
    assert len(set(styles.values())) == 64


def test_raw_confusion_has_all_counts_and_normalised_only_matched_ones() -> None:
    cells = [("none", "E", 5), ("E", "none", 7), ("E", "E", 3), ("E", "L", 1), ("L", "none", 2)]
    frame = pd.DataFrame(cells, columns=["reference", "prediction", "count"]).assign(team="alpha")

    raw = plots.confusion_matrices(frame, ["E", "L"], TEAMS)
    normalised = plots.confusion_matrices(frame, ["E", "L"], TEAMS, normalised=True)

    (axes,) = raw.figure.axes
    assert [t.get_text() for t in axes.texts] == ["", "5", "0", "7", "3", "1", "2", "0", "0"]
    (axes,) = normalised.figure.axes
    assert [t.get_text() for t in axes.texts] == ["0.75", "0.25", "–", "–"]
    (points,) = raw.points.values()
    assert points[5].text == "E as L: 1, 0.091 of the row"


def test_a_critical_difference_diagram_places_mean_ranks_and_joins_groups() -> None:
    figures = {
        "alpha": [0.9, 0.8, 0.9, 0.7],
        "beta": [0.5, 0.4, 0.5, 0.4],
        "gamma": [0.4, 0.3, 0.4, 0.5],
    }
    critical = critical_difference(compare_teams(TeamFigures(figures)))

    plot = plots.critical_difference_diagram(critical, TEAMS)

    ranks = {team: points[0].x for team in TEAMS if (points := of_team(plot, team))}
    assert ranks == dict(zip(critical.teams, critical.mean_ranks, strict=True))
    (axes,) = plot.figure.axes
    bars = [line for line in axes.lines if line.get_linewidth() == 3.5]
    assert len(bars) == len(critical.groups)
    assert len(bars) > 0


def test_an_undefined_diagram_says_why() -> None:
    equal = critical_difference(compare_teams(TeamFigures({team: [0.5, 0.5] for team in TEAMS})))

    plot = plots.critical_difference_diagram(equal, TEAMS)

    assert texts(plot) == ["No diagram: all teams have equal figures for each of the 2 patients."]
    assert not plot.points


def test_rank_lines_show_ranks_and_draw_ties_beside_each_other() -> None:
    plot = rank_lines([[0.5, 0.6], [0.5, 0.2], [NAN, 0.9]])

    alpha, beta, gamma = (of_team(plot, team) for team in TEAMS)
    assert [round(p.x) for p in alpha] == [1, 2]
    assert [round(p.x) for p in beta] == [1, 3]
    assert alpha[0].x < beta[0].x
    assert [(p.x, p.y) for p in gamma] == [(1, 1)]  # no score under the first


def test_curves_ring_the_points_at_which_ranks_change() -> None:
    from napari_panoptic.nuclei.regions.conditions import RankChange

    change = RankChange("alpha", ("a", "b"), (1, 2))
    found = robustness([[0.3, 0.1], [0.2, 0.2]], ("a", "b"), [change])

    plot = plots.robustness_curves(found, [-1, 4], TEAMS, x_label="radius", usual=-1)

    assert [(p.x, p.y) for p in of_team(plot, "alpha")][:2] == [(-1, 0.3), (4, 0.1)]
    rings = [line for line in plot.figure.axes[0].lines if line.get_markerfacecolor() == "none"]
    assert [line.get_xydata().tolist() for line in rings] == [[[4, 0.1]]]


def test_shift_maps_show_changes_around_the_unmoved_figure() -> None:
    found = robustness([[0.5, 0.6, 0.4]], ("no shift", "right", "down"))

    plot = plots.shift_maps(found, [(0, 0), (0, 1), (1, 0)], TEAMS)

    (axes,) = plot.figure.axes
    shown = {t.get_position(): t.get_text() for t in axes.texts}
    assert shown == {(0, 0): "0.500", (1, 0): "+0.100", (0, 1): "−0.100"}
    with pytest.raises(ValueError, match="without a shift"):
        plots.shift_maps(found, [(1, 1), (0, 1), (1, 0)], TEAMS)


def curves() -> dict[str, Curve]:
    rng = np.random.default_rng(8)
    values = {
        "area_px": rng.gamma(3, 40, 900),
        "class": rng.choice(np.array(["Epithelial", "Lymphocyte"], object), 900),
    }
    fails, patients = rng.random(900) < 0.3, rng.integers(0, 8, 900)
    return {name: failure_curve(name, own, fails, patients) for name, own in values.items()}


def test_curves_over_covariates_show_the_rate_of_every_bin() -> None:
    shown = curves()
    plot = plots.covariate_curves(shown, "beta", TEAMS, rate=0.3)
    found = {
        artist.axes.get_title(): points for artist, points in plot.points.items() if artist.axes
    }
    assert list(found) == ["area px", "class"]
    for curve, points in zip(shown.values(), found.values(), strict=True):
        assert [point.y for point in points] == curve.rate.tolist()
        for point, condition in zip(points, curve.bins, strict=True):
            assert point.text.startswith(f"{condition.as_formula()}: ")
    (text,) = plots.covariate_curves({}, "beta", TEAMS, rate=0.3).figure.texts
    assert text.get_text() == "no covariate divides the objects"


def test_the_curve_of_one_covariate_shows_rates_and_bounds() -> None:
    for curve in curves().values():
        plot = plots.covariate_curve(curve, "beta", TEAMS, rate=0.3)
        (axes,) = plot.figure.axes
        assert axes.get_xlabel() == curve.covariate.replace("_", " ")
        (points,) = plot.points.values()
        assert [point.y for point in points] == curve.rate.tolist()
        drawn = np.concatenate([line.get_ydata() for line in axes.lines])
        assert np.isin(np.concatenate([curve.low, curve.high]), drawn).all()


def test_nothing_to_show_is_said(patients: pd.DataFrame) -> None:
    nothing = patients.iloc[:0]
    for plot in (
        plots.patient_boxes({"": nothing}, TEAMS),
        plots.quality_scatter({"": nothing}, TEAMS),
        rank_lines([[NAN, NAN]] * 3),
        plots.rank_lines((), {team: [] for team in TEAMS}, TEAMS),
        plots.robustness_curves(robustness([[NAN]], ("a",)), [0], TEAMS, x_label="x"),
    ):
        assert any(text.startswith("no team has a") for text in texts(plot))


@pytest.mark.long
def test_the_same_figures_give_the_same_file(patients: pd.DataFrame, tmp_path: Path) -> None:
    for one, other in zip(every_plot(patients), every_plot(patients), strict=True):
        for kind in ("svg", "png"):
            first = plots.save(one, tmp_path / f"first.{kind}").read_bytes()
            again = plots.save(other, tmp_path / f"again.{kind}").read_bytes()
            assert first == again
            assert b"Date" not in first
            assert b"date>" not in first


def test_hostile_names_stay_text(patients: pd.DataFrame) -> None:
    names = HOSTILE_TEAMS[1:]  # three of them
    for plot in every_plot(patients, names):
        svg = plots.svg_text(plot)
        root = ElementTree.fromstring(svg)
        assert {e.tag.rpartition("}")[2] for e in root.iter()} <= {
            "svg", "metadata", "RDF", "Work", "type", "format", "title", "creator", "Agent",
            "defs", "style", "g", "path", "use", "text", "tspan", "clipPath", "rect",
        }  # fmt: skip
        assert "$x_1$" in svg or "$" not in svg
        plots.png_bytes(plot, dpi=40)


def test_a_legend_stays_within_a_narrow_figure(patients: pd.DataFrame) -> None:
    plot = plots.quality_scatter({"": patients}, TEAMS)
    figure = plot.figure
    FigureCanvasAgg(figure)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    rows = []
    for width in (7.4, 2.2, 7.4):
        figure.set_size_inches(width, 3)
        fit_legend(figure)
        figure.draw_without_rendering()
        (legend,) = figure.legends
        box = legend.get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.width
        assert [text.get_text() for text in legend.get_texts()] == texts
        rows.append(round(box.height / legend.get_texts()[0].get_window_extent().height))
    assert rows[0] == rows[2] < rows[1]


def test_marks_tell_their_figures_on_hover(patients: pd.DataFrame) -> None:
    svg = plots.svg_text(plots.patient_boxes({"": patients.replace("alpha", "<a & b>")}, TEAMS))
    root = ElementTree.fromstring(svg)
    titles = [e.text for e in root.iter() if e.tag.rpartition("}")[2] == "title"]
    assert titles == ["beta, p1: PQ 0.100", "beta: mean over 1: 0.100"]
    teams = ("<a & b>", "beta", "gamma")
    svg = plots.svg_text(plots.quality_scatter({"": patients.replace("alpha", teams[0])}, teams))
    marks = [e for e in ElementTree.fromstring(svg).iter() if len(e) and e.tag.endswith("use")]
    assert [mark[0].text for mark in marks] == [
        "<a & b>, p1: DQ 0.400, SQ 0.500",
        "<a & b>, p2: DQ 0.600, SQ 0.700",
        "<a & b>, p3: DQ 1.000, SQ 0.900",
        "beta, p1: DQ 0.200, SQ 0.500",
        "<a & b>: mean over 3: 0.667, 0.700",
        "beta: mean over 1: 0.200, 0.500",
    ]


def test_other_endings_and_places_are_refused(patients: pd.DataFrame, tmp_path: Path) -> None:
    plot = plots.quality_scatter({"": patients}, TEAMS)
    with pytest.raises(PanopticError, match=r"ends in \.svg or \.png, found 'figure\.pdf'"):
        plots.save(plot, tmp_path / "figure.pdf")
    with pytest.raises(PanopticError, match="the figure cannot be written: No such file"):
        plots.save(plot, tmp_path / "missing" / "figure.svg")
    assert list(tmp_path.iterdir()) == []


def test_nothing_global_is_touched() -> None:
    program = (
        "import sys, matplotlib as mpl\n"
        "names = [name for name in mpl.rcParams.keys() if name != 'backend']\n"
        "before = [mpl.rcParams[name] for name in names]\n"
        "import pandas as pd\n"
        "from napari_panoptic.report import plots\n"
        "frame = pd.DataFrame({'team': ['a'], 'patient': ['p'], 'pq': [0.5]})\n"
        "plots.svg_text(plots.patient_boxes({'': frame}, ['a']))\n"
        "assert [mpl.rcParams[name] for name in names] == before\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


class _Pause(Artist):
    """Waits while it is drawn until the test goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.may_go_on = threading.Event(), threading.Event()

    def draw(self, renderer: RendererBase) -> None:  # noqa: ARG002
        self.reached.set()
        assert self.may_go_on.wait(60)


def test_a_figure_written_elsewhere_reverts_no_parameter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another plugin changes a parameter while a worker writes a figure: the change stays."""
    monkeypatch.setitem(mpl.rcParams, "lines.linewidth", 1.5)
    before = mpl.rcParams["svg.hashsalt"]
    figure, pause = Figure(), _Pause()
    figure.add_artist(pause)
    worker = threading.Thread(target=svg_text, args=(figure,))
    worker.start()
    assert pause.reached.wait(60)
    mpl.rcParams["lines.linewidth"] = 7.25
    pause.may_go_on.set()
    worker.join(60)
    assert mpl.rcParams["lines.linewidth"] == 7.25
    assert mpl.rcParams["svg.hashsalt"] == before


def test_two_workers_that_write_figures_leave_no_parameter_behind() -> None:
    before = mpl.rcParams["svg.hashsalt"]
    figures, pauses, workers = [Figure(), Figure()], [_Pause(), _Pause()], []
    for number, (figure, pause) in enumerate(zip(figures, pauses, strict=True)):
        figure.add_artist(pause)
        workers.append(
            threading.Thread(target=svg_text, args=(figure,), kwargs={"salt": str(number)})
        )
    workers[0].start()
    assert pauses[0].reached.wait(60)
    workers[1].start()
    pauses[1].reached.wait(0.2)  # with one writer at a time it is not reached yet
    pauses[0].may_go_on.set()
    workers[0].join(60)
    pauses[1].may_go_on.set()
    workers[1].join(60)
    assert mpl.rcParams["svg.hashsalt"] == before
