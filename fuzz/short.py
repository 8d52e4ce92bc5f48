"""The short form, for the tests: seeded, the same inputs every time, no libFuzzer.

``python -m fuzz.short INPUTS LOG``: the number of inputs per reader, half of them mutations of good
files, half of them documents with seeded mistakes. Prints failures, and nothing
else; where the process dies, the last input is in the log, see `fuzz.judge.Logbook`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

from fuzz.judge import Logbook
from fuzz.targets import TARGETS, Target

SEED = 20_201_121


def main(inputs: int, place: Path) -> int:
    log = Logbook(place)
    return sum(_failures(name, target, inputs, log) for name, target in TARGETS.items())


def _failures(name: str, target: Target, inputs: int, log: Logbook) -> int:
    judge = target.judge()
    found: dict[str, str] = {}

    def judged(data: bytes) -> None:
        log.note(0, data)
        failure = judge.failure_of(data)
        if failure is not None:
            found.setdefault(failure.key, f"{name}: {failure.described(data[:300])}")

    for data in _mutations(target.all_seeds(), inputs // 2):
        judged(data)
    chance = random.Random(SEED)  # noqa: S311 - inputs of tests
    for _ in range(inputs // 2):
        judged(target.document(chance.randbytes(chance.randint(8, 60))))
    judge.close()
    for text in found.values():
        print(text)
    return len(found)


def _mutations(seeds: list[bytes], count: int) -> Iterator[bytes]:
    """Return the seeds, then copies with bytes changed, left out, repeated, or of two files."""
    yield from seeds
    chance = random.Random(SEED)  # noqa: S311 - inputs of tests
    for _ in range(max(0, count - len(seeds))):
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 4)):
            at, end = sorted(chance.choices(range(len(data) + 1), k=2))
            match chance.randrange(5):
                case 0 if data:
                    data[at % len(data)] ^= 1 << chance.randrange(8)
                case 1 if data:
                    data[at % len(data)] = chance.choice(b"\x00\xff\x7f\x80 <>\"'[]{},:\n09-")
                case 2:
                    del data[at : min(end, at + 20)]
                case 3:
                    data[at:at] = data[at : min(end, at + 50)]
                case _:
                    data[at:] = chance.choice(seeds)[at:]
        yield bytes(data)


if __name__ == "__main__":
    sys.exit(1 if main(int(sys.argv[1]), Path(sys.argv[2])) else 0)
