"""Tags of a review."""

import pytest

from napari_panoptic.review.tags import (
    MOST_TAGS,
    STARTING_TAGS,
    joined_tags,
    remembered,
    split_tags,
    toggled,
)


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("", []),
        (" , ;", []),
        ("pale", ["pale"]),
        ("pale,  out  of focus;pale", ["pale", "out of focus"]),
    ],
)
def test_tags_are_separated_by_commas(text, tags):
    assert split_tags(text) == tags
    assert split_tags(joined_tags(tags)) == tags


def test_a_tag_is_added_and_removed():
    assert toggled("", "mitosis") == "mitosis"
    assert toggled("pale", "mitosis") == "pale, mitosis"
    assert toggled("pale, mitosis", "pale") == "mitosis"


def test_only_own_tags_are_remembered_the_newest_first():
    assert remembered(["old"], f"{STARTING_TAGS[0]}, new, old") == ["new", "old"]
    assert remembered(["old"], "") == ["old"]
    many = [f"t{n}" for n in range(MOST_TAGS)]
    assert remembered(many, "one more") == ["one more", *many[:-1]]
