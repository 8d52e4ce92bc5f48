from __future__ import annotations

import json

import pytest

from napari_panoptic import EvaluationSettings
from napari_panoptic.common.errors import SettingsError
from napari_panoptic.values.settings import (
    PROTOCOLS,
    Correction,
    Matching,
    Restoration,
    protocol,
)


def test_words_become_enums() -> None:
    settings = EvaluationSettings(matching="centroid", corrections={"matching"})
    assert settings.matching is Matching.CENTROID
    assert settings.corrections == {Correction.MATCHING}
    assert settings == EvaluationSettings(
        matching=Matching.CENTROID, corrections=frozenset({Correction.MATCHING})
    )


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
        ({"corrections": {"all"}}, "corrections must be one of"),
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


def test_unknown_protocol() -> None:
    with pytest.raises(SettingsError, match="known are disentangled, monusac-2020-as-run and"):
        protocol("mine")
