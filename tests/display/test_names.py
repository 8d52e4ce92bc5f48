"""Short names: what all names share goes, and what distinguishes them stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_panoptic.display.names import cut_off, distinct_names, short_name


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (
            ["TCGA-2Z-A9JG-01Z-00-DX1_1", "TCGA-49-6743-01Z-00-DX2_001"],
            ["2Z-A9JG-01Z-00-DX1_1", "49-6743-01Z-00-DX2_001"],
        ),
        # A number alone says too little: the word before it stays.
        (["TCGA-2Z-DX1_1", "TCGA-2Z-DX1_2"], ["DX1_1", "DX1_2"]),
        (["team-1", "team-2"], ["team-1", "team-2"]),
        (["a-team-1", "a-team-2"], ["team-1", "team-2"]),
        # Shared letters within a word, and within a number, are no shared part.
        (["otsu", "otter"], ["otsu", "otter"]),
        (["prob0.5_nms0.35", "prob0.5_nms0.3"], ["nms0.35", "nms0.3"]),
        (["scan.a", "scan.b"], ["a", "b"]),
        # Nothing is left of the first name without the prefix.
        (["net_", "net_b"], ["net_", "net_b"]),
        (["net", "net b", "net c"], ["net", "net b", "net c"]),
        (["the net", "the net b"], ["net", "net b"]),
        (["only-one"], ["only-one"]),
        (["same-name", "same-name"], ["same-name", "same-name"]),
        ([], []),
    ],
)
def test_shared_prefix_goes_at_a_separator(names: list[str], short: list[str]) -> None:
    assert distinct_names(names) == short


@given(st.lists(st.text(alphabet="ab1._- ", max_size=8), max_size=5))
def test_names_stay_different_and_keep_their_ends(names: list[str]) -> None:
    short = distinct_names(names)
    assert len(set(short)) == len(set(names))
    gone = {name.removesuffix(rest) for name, rest in zip(names, short, strict=True)}
    assert len(gone) <= 1
    assert not gone or gone.pop()[-1:] in ("", ".", "_", "-", " ")


def test_names_lose_their_end() -> None:
    assert cut_off("otsu-watershed", 14) == "otsu-watershed"
    assert cut_off("otsu-watershed", 8) == "otsu-wa…"


def test_names_of_regions_stand_without_their_patient() -> None:
    assert short_name("TCGA-2Z_1", "TCGA-2Z") == "…_1"
    assert short_name("TCGA-2Z", "TCGA-2Z") == "TCGA-2Z"
    assert short_name("other_1", "TCGA-2Z") == "other_1"
    assert short_name("region", "") == "region"
