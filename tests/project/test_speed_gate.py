"""A gate against losing speed and memory by accident: a copy too many, a loop within a loop.

No time on the wall is asserted, because the machine that runs the tests is shared and slow
machines are no fault. What is asserted:

- A *ratio* of processor times, ours to that of reading the same input once (the limit that
  docs/explanation/benchmarks.md speaks of), in turns in the same process, the least of several
  calls of each. Waiting for a processor does not count, and a slow one slows both alike; what is
  left is that others wear out the caches. Bounds are about three times the target, and twice
  that where two threads work, whose times add up; for polygons twice the most that was
  seen. In 20 repetitions on two processors with a load of 6 to 12 no ratio came above two
  thirds of its bound. What bounds are there to catch (a pass in Python, sorting all pixels,
  quadratic work) costs ten times and more. Counting instructions would be finer, but needs
  rights that containers do not give.
- The *bytes* that NumPy and Python allocate, which are the same in every run but for what
  threads have at the same time or not.
- The memory of the process, which has what compiled code allocates in it too, and leaves out
  what was never touched. One copy of an image would break either bound.

All of it runs in a process of its own, so that nothing that other tests left behind is in it.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.cases import MEDIUM
from benchmarks.stages import make_inputs
from benchmarks.workers import Row, Workers

ROUNDS = 5
IMAGE_BYTES = 4 * MEDIUM.side**2
"""One label image of M: 9 MB."""

# Ours, what it is held against, the inputs, and the most that the ratio may be.
RATIOS = [
    ("match", "LIMIT", "pair M", 24),
    ("match", "NumPy unique", "noise", 9),
    ("match both", "match", "pair M", 3),
    ("evaluate", "LIMIT", "pair M", 40),
    ("distances", "LIMIT", "distances", 45),
    ("restore removed", "read colours", "rgb", 18),
    ("restore dilated", "read colours", "rgb", 18),
    ("rasterize", "allocate", "polygons M", 60),
    ("stroke figures", "LIMIT", "pair M", 6),
]
# What, on which inputs, and how many images of M it may allocate.
ALLOCATIONS = [
    ("match", "pair M", 0.5),
    ("evaluate with distances", "pair M", 0.5),
    ("match", "covered", 0.75),
]


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    folder: Path = tmp_path_factory.mktemp("arrays")
    inputs = make_inputs((MEDIUM,))
    with Workers(folder) as running:
        running.hand_over(inputs)
        pairs = running.result(Row("match"), "pair M")
        running.hand_over({"distances": [*inputs["pair M"], pairs]})
        yield running


@pytest.mark.parametrize(("ours", "limit", "inputs", "bound"), RATIOS)
def test_speed_stays_near_the_limit(
    workers: Workers, ours: str, limit: str, inputs: str, bound: float
) -> None:
    least = dict.fromkeys((ours, limit), float("inf"))
    for _ in range(ROUNDS):
        for name in least:
            least[name] = min(least[name], workers.measure("processor", Row(name), inputs))
    assert least[ours] <= bound * least[limit]


@pytest.mark.parametrize(("ours", "inputs", "images"), ALLOCATIONS)
def test_no_image_is_copied(workers: Workers, ours: str, inputs: str, images: float) -> None:
    assert workers.measure("allocated", Row(ours), inputs) <= images * IMAGE_BYTES


@pytest.mark.parametrize(("ours", "inputs", "images"), ALLOCATIONS)
def test_no_image_is_copied_by_compiled_code(
    workers: Workers, ours: str, inputs: str, images: float
) -> None:
    extra = workers.measure("memory", Row(ours), inputs)
    if extra is None:
        pytest.skip("this system does not tell the peak of a process's memory")
    assert extra <= images * IMAGE_BYTES
