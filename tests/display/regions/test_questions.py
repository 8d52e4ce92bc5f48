"""What is asked about a region, and the example that the guide for developers has."""

import re
from dataclasses import replace

import numpy as np
import pytest

from napari_panoptic import EvaluationSettings, evaluate_pair
from napari_panoptic.common.errors import SettingsError
from napari_panoptic.display.regions.ambiguous import NO_AREA, Ambiguous
from napari_panoptic.display.regions.groups import NO_GROUPS, SHARED_PIXELS, RegionGroups
from napari_panoptic.display.regions.here import Here
from napari_panoptic.display.regions.question import region_questions
from napari_panoptic.display.regions.teams import RegionTeams
from napari_panoptic.explain.failures import FailureName
from napari_panoptic.explain.policy_audit import audit_policies
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.notebook import Comparison
from napari_panoptic.questions.answer import UnansweredError
from napari_panoptic.report.nuclei.cohort_report import ReportRequest
from napari_panoptic.report.nuclei.region import about_region, region_section
from napari_panoptic.tables.columns import texts
from napari_panoptic.tables.markup import fragment
from napari_panoptic.values.settings import AmbiguousPolicy
from napari_panoptic.values.vocabulary import Side
from tests.support.region_guide import TOUCHING, added_to_questions

R, P = Side.REFERENCE, Side.PREDICTION


def labels(*boxes):
    """Draw rectangles, given as slices of rows and columns, as objects 1, 2, …"""
    image = np.zeros((30, 60), np.int32)
    for number, (rows, columns) in enumerate(boxes, start=1):
        image[slice(*rows), slice(*columns)] = number
    return image


def pair(**settings):
    """Evaluate two objects that one prediction merges, and one that lies in an ambiguous area."""
    area = np.zeros((30, 60), bool)
    area[:, 40:] = True
    return evaluate_pair(
        labels(((2, 12), (2, 10)), ((2, 12), (12, 20)), ((15, 25), (38, 50))),
        labels(((2, 12), (2, 20)), ((15, 25), (30, 44))),
        ambiguous=area,
        settings=EvaluationSettings(**settings),
    )


@pytest.fixture
def guided(tmp_path):
    """Add the module of the guide to the questions, as a file in their folder."""
    with added_to_questions(tmp_path) as kind:
        yield kind


def test_a_module_of_the_folder_is_a_question():
    assert set(region_questions()) == {"ambiguous", "groups", "teams"}
    with pytest.raises(SettingsError, match="no question 'causes' about a region"):
        pair().ask("causes")


def test_a_pair_answers_with_the_tables_of_the_panel():
    shown = pair().ask("groups")
    assert repr(shown).startswith("<ShownAnswer to groups: All mended: PQ ")
    assert shown.tables["all kinds"][["kind", "annotated", "predicted"]].to_numpy().tolist() == [
        ["merger", 2, 1]
    ]
    assert list(shown.tables) == ["all kinds", "split", "merger", "duplicate", "mixed"]
    html = shown._repr_html_()
    assert "All mended: PQ" in html
    assert "merger" in html


def test_several_predictions_are_compared():
    both = Comparison({"old": pair(), "new": pair(ambiguous="clip")})
    table = both.ask("teams").answer.tables[0]
    heading, rows = texts(table.spec.shown(), table.frame.to_dict("records"))
    pq = both["old"].metrics.pq
    assert heading[:5] == ["Id", "Class", "Found", f"old\n{pq:.3f}", f"new\n{pq:.3f}"]
    assert {row[2] for row in rows} <= {"0 / 2", "1 / 2", "2 / 2"}
    assert table.objects(0).names == {
        FailureName(team, "", R, int(table.frame["id"][0])) for team in both.results
    }
    of_one = both["new"].ask("groups").answer
    assert both.ask("groups", team="new").answer.headline == of_one.headline


class TestAmbiguous:
    def test_without_a_choice_the_policy_of_the_evaluation_is_compared(self):
        for policy, other in (("clip", "majority"), ("majority", "clip"), ("keep", "majority")):
            evaluation = pair(ambiguous=policy)
            audit = audit_policies(evaluation, policy, other)
            headline = evaluation.ask("ambiguous").answer.headline
            assert f"{audit.first.metrics.pq:.3f} → {audit.second.metrics.pq:.3f}" in headline

    def test_lists_have_the_objects_of_the_audit(self):
        evaluation = pair()
        here = Here("", "", {"": evaluation})
        chosen = Ambiguous(first=AmbiguousPolicy.CLIP, second=AmbiguousPolicy.KEEP)
        effect, changed, inside, spill = chosen.answered(here).tables
        objects = audit_policies(evaluation, "clip", "keep").objects
        assert effect.is_summary
        assert len(changed.frame) == objects["flips"].sum()
        assert inside.frame["id"].tolist() == objects["id"][objects["ambiguous_px"] > 0].tolist()
        assert spill.frame[["side", "id"]].to_numpy().tolist() == [["prediction", 2]]
        assert spill.row_of == {FailureName("", "", P, 2): 0}
        assert "Counted as usual: " in spill.tooltip(0)

    def test_without_an_area_it_says_what_to_do(self):
        without = evaluate_pair(labels(((2, 12), (2, 10))), labels(((2, 12), (2, 10))))
        with pytest.raises(UnansweredError, match=re.escape(NO_AREA)):
            without.ask("ambiguous")


class TestGroups:
    def test_a_row_names_all_objects_of_its_group_and_its_members_two_each(self):
        groups = RegionGroups().answered(Here("", "", {"": pair()})).tables[0]
        names = {FailureName("", "", side, id_) for side, id_ in ((R, 1), (R, 2), (P, 1))}
        assert groups.objects(0).names == names
        members = groups.members(0)
        assert members.frame[["reference", "prediction"]].to_numpy().tolist() == [[1, 1], [2, 1]]
        assert members.objects(1).names == names - {FailureName("", "", R, 1)}
        assert set(groups.row_of) == names

    def test_what_has_no_groups_says_why(self):
        right = labels(((2, 12), (2, 10)))
        with pytest.raises(UnansweredError, match=re.escape(NO_GROUPS)):
            evaluate_pair(right, right).ask("groups")

    def test_objects_that_share_pixels_have_none(self, monkeypatch):
        evaluation = pair()
        monkeypatch.setattr(type(evaluation.pair), "has_planes", property(lambda _self: True))
        with pytest.raises(UnansweredError, match=re.escape(SHARED_PIXELS)):
            RegionGroups().answered(Here("", "", {"": evaluation}))


class TestTeams:
    def test_a_place_names_the_fps_of_each_team(self):
        fp = labels(((2, 12), (2, 10)), ((15, 25), (5, 15)))
        one = evaluate_pair(labels(((2, 12), (2, 10))), fp)
        both = Here("x", "a", {"a": one, "b": replace(one)})
        places = RegionTeams().answered(both).tables[-1]
        assert places.objects(0).names == {FailureName(team, "x", P, 2) for team in ("a", "b")}
        assert RegionTeams().answered(Here("x", "a", {"a": one})).notes


class TestGuide:
    def test_it_is_short(self):
        assert len(TOUCHING.splitlines()) <= 120

    def test_a_notebook_answers_it(self, guided):
        shown = pair().ask("touching")
        assert shown.answer.headline == "2 objects touch an ambiguous area."
        assert shown.tables["Touching"][["side", "id"]].to_numpy().tolist() == [
            ["reference", 3],
            ["prediction", 2],
        ]
        assert "29 %" in shown._repr_html_()
        assert guided.title == "Touching"

    @pytest.mark.usefixtures("guided")
    def test_a_report_has_it(self, nuclei_sample):
        cohort = open_cohort(nuclei_sample)
        request = ReportRequest(cohort, EvaluationSettings(), "default", ("careful", "merger"))
        about = about_region(request, "Sample-B_1")
        text = str(fragment(*region_section(about, request.team_names, None)))
        assert text.count("touch an ambiguous area.") == 2
        for kind in region_questions().values():
            assert (kind.heading or kind.title) in text
