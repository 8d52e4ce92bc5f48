from __future__ import annotations

import json

import pytest

from napari_panoptic import EvaluationSettings
from napari_panoptic.common.errors import SettingsError
from napari_panoptic.values.conventions import CONVENTIONS, Mistake, corrections_of
from napari_panoptic.values.settings import (
    PROTOCOLS,
    AmbiguousPolicy,
    Matching,
    Restoration,
    protocol,
)


def test_words_become_enums() -> None:
    settings = EvaluationSettings(matching="centroid", ambiguous="keep")
    assert settings.matching is Matching.CENTROID
    assert settings.ambiguous is AmbiguousPolicy.KEEP
    assert settings == EvaluationSettings(
        matching=Matching.CENTROID, ambiguous=AmbiguousPolicy.KEEP
    )


def test_the_name_of_a_convention_says_what_is_scored() -> None:
    usual = EvaluationSettings()
    assert usual.convention == "disentangled"
    assert not usual.takes_class_masks
    assert usual.disentangled == usual
    for corrected in (
        EvaluationSettings(convention="monusac-2020-as-run+per-patient+matching"),
        EvaluationSettings(convention="monusac-2020-as-run+matching+per-patient"),
    ):
        assert corrected.convention == "monusac-2020-as-run+matching+per-patient"
        assert corrections_of(corrected.convention) == {Mistake.MATCHING, Mistake.PER_PATIENT}
        assert corrected.takes_class_masks
        assert corrected.disentangled == usual
    pannuke = EvaluationSettings(convention="pannuke", iou_threshold=0.6)
    assert not pannuke.takes_class_masks
    assert pannuke.score.name == "mpq"
    assert pannuke.disentangled == EvaluationSettings(iou_threshold=0.6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"matching": "iou"}, "matching must be one of strict-iou and centroid, found 'iou'"),
        ({"iou_threshold": 0.0}, "between 0 and 1"),
        ({"iou_threshold": 1.0}, "between 0 and 1"),
        ({"iou_threshold": float("nan")}, "between 0 and 1"),
        ({"near_iou": 2.0}, "near_iou must lie between 0 and 1"),
        ({"radius": 1.5}, "whole number"),
        ({"radius": 99}, "from -20 to 20"),
        ({"ambiguous": "drop"}, "clip, clip-predictions, majority and keep"),
        ({"convention": "monusac-2020-as-run+all"}, "corrections must be one of"),
        ({"convention": "pannuke+matching"}, "unknown protocol 'pannuke"),
    ],
)
def test_what_is_not_allowed_is_refused_in_words(wrong: dict, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        EvaluationSettings(**wrong)


def test_one_to_one_is_enforced_below_one_half_only() -> None:
    assert EvaluationSettings(iou_threshold=0.49).one_to_one_enforced
    assert not EvaluationSettings(iou_threshold=0.5).one_to_one_enforced
    assert not EvaluationSettings(iou_threshold=0.3, matching="centroid").one_to_one_enforced


def test_radius_has_no_effect_when_borders_are_removed() -> None:
    assert EvaluationSettings(radius=3).dilation_radius == 0
    assert EvaluationSettings(radius=3, restoration="border-dilated").dilation_radius == 3


def test_differences_name_what_differs() -> None:
    default = protocol("disentangled")
    changed = default.replaced(restoration="border-dilated")
    assert changed.differences(default) == {
        "restoration": (Restoration.BORDER_DILATED, Restoration.BORDER_REMOVED)
    }
    assert default.differences(default) == {}


def test_records_are_json() -> None:
    for settings in PROTOCOLS.values():
        assert json.loads(json.dumps(settings.as_record()))["matching"] == "strict-iou"
    corrected = protocol("monusac-2020-as-run+matching").as_record()
    assert corrected["convention"] == "monusac-2020-as-run+matching"
    assert "scoring" not in corrected


def test_unknown_protocol() -> None:
    with pytest.raises(SettingsError, match="unknown protocol 'mine'; known are ") as found:
        protocol("mine")
    for name in CONVENTIONS:
        assert f"{name}," in str(found.value) or f"{name} and" in str(found.value)
