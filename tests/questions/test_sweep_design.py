"""Parameters in names of teams, and which settings are neighbours."""

from __future__ import annotations

import pytest

from napari_panoptic.questions.engines.sweep_design import parameters_in, sweep_design


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("prob0.5_nms0.3", {"prob": "0.5", "nms": "0.3"}),
        ("t=0.4,min_size=20", {"t": "0.4", "min_size": "20"}),
        ("size-20 sigma 1e-3", {"size": "20", "sigma": "1e-3"}),
        ("shift=-2", {"shift": "-2"}),
        ("0.5", {"value": "0.5"}),
        ("stardist", {}),
    ],
)
def test_parameters_are_read_from_names(name: str, found: dict[str, str]) -> None:
    assert parameters_in(name) == found


def test_neighbours_differ_in_one_parameter() -> None:
    names = ["m1_a0.5_b10", "m1_a0.5_b9", "m1_a0.1_b9", "m1_a0.3_b10"]
    design = sweep_design({name: parameters_in(name) for name in names})
    assert design.parameters == ("a", "b")  # m does not vary
    assert design.teams == ("m1_a0.1_b9", "m1_a0.3_b10", "m1_a0.5_b9", "m1_a0.5_b10")
    found = {(own.parameter, own.before, own.after) for own in design.neighbours}
    assert found == {("a", 0, 2), ("a", 1, 3), ("b", 2, 3)}
