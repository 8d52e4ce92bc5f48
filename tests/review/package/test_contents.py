"""The contents of a package as one text."""

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_panoptic.review.identity import Fingerprint
from napari_panoptic.review.package.contents import (
    Contents,
    PackageItem,
    Target,
    package_id,
    seal,
    unseal,
)
from napari_panoptic.values.vocabulary import Side
from tests.support.examples import examples

NAMES = st.text(st.characters(), max_size=12)  # lone surrogates too, as of a file name
PLACES = st.floats(0, 1e5)
TARGETS = st.builds(
    Target,
    st.sampled_from(Side),
    st.integers(1, 2**40),
    st.builds(Fingerprint, NAMES, PLACES, PLACES, st.integers(1, 10**6)),
)
ITEMS = st.builds(PackageItem, NAMES, NAMES, NAMES, st.none() | TARGETS)
CONTENTS = st.builds(
    Contents,
    NAMES,
    st.none() | NAMES,
    st.none() | NAMES,
    st.dictionaries(NAMES, NAMES, max_size=3),
    st.lists(ITEMS, max_size=5).map(tuple),
)


@given(CONTENTS)
@settings(max_examples=examples(50), derandomize=True, deadline=None)
def test_contents_come_back_as_they_were(contents):
    sealed = seal(contents)
    assert sealed.isascii()
    assert unseal(sealed) == contents
    assert package_id(sealed) == package_id(seal(contents))


def changed(**item):
    own = {"side": "reference", "object_id": 1}
    own["fingerprint"] = {
        "class_name": "E",
        "centroid_y_px": 1.0,
        "centroid_x_px": 1.0,
        "area_px": 4,
    } | item.pop("fingerprint", {})
    items = [{"item": "1", "team": "T", "region": "R", "target": own | item}]
    record = {"cohort": "C", "source": None, "plan": None, "images": {}, "items": items}
    return base64.b64encode(json.dumps(record).encode()).decode()


def test_a_text_by_hand_is_read():
    assert unseal(changed()).items[0].subject.object_id == 1


@pytest.mark.parametrize(
    "sealed",
    [
        "no base64!",
        "é",
        base64.b64encode(b"{").decode(),
        base64.b64encode(b"[" * 100_000).decode(),
        base64.b64encode(b"{}").decode(),
        changed(side="neither"),
        changed(object_id="1"),
        changed(object_id=2**70),
        changed(more=1),
        changed(fingerprint={"area_px": -1}),
        *(
            changed(fingerprint={f"centroid_{axis}_px": value})
            for axis in "yx"
            for value in (float("nan"), float("-inf"), 1e308, -1e308, 10**400)
        ),
    ],
)
def test_other_texts_are_refused(sealed):
    with pytest.raises(ValueError):  # noqa: PT011 - the caller says what it means
        unseal(sealed)
