"""What stands around the names of regions in the names of files."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from napari_panoptic.io.cohorts.file_groups import affixes_of
from tests.support.examples import seeds


@pytest.mark.parametrize("seed", seeds(20))
def test_affixes_are_those_of_each_name_and_region(seed: int) -> None:
    """Against every region in every name, which was quadratic: 4.9 s for 4,000 names."""
    generator = random.Random(seed)  # noqa: S311
    pieces = ["a", "ab", "1", "12", "x-1", "r_1", "r_12", "-", "_", "mask"]
    names = ["".join(generator.choices(pieces, k=generator.randint(1, 5))) for _ in range(40)]
    regions = {"".join(generator.choices(pieces, k=2)) for _ in range(15)}
    expected: Counter[tuple[str, str]] = Counter()
    for name in names:
        for region in regions:
            expected += affixes_of([name], [region])
            before, found, after = name.partition(region)
            assert affixes_of([name], [region]) in (Counter(), Counter({(before, after): 1}))
            assert found or not affixes_of([name], [region])
    assert affixes_of(names, regions) == expected
