"""A second window on a review file, in a process of its own: ``python -m`` with the file."""

import json
import sys
from pathlib import Path

from napari_panoptic.values.vocabulary import Verdict
from tests.review.test_reviewing import EACH, closing_review, keep_giving, missed_row, see_all


def main() -> None:
    with closing_review(missed_row(2 * EACH), Path(sys.argv[1])) as reviewing:
        print("ready", flush=True)  # noqa: T201
        sys.stdin.readline()
        for number in range(EACH):
            keep_giving(reviewing, 2 * number + 1, Verdict.CANNOT_TELL)
        see_all(reviewing)
        rows = {row: str(record.verdict) for (_, row), record in reviewing.judged.records.items()}
        print(json.dumps(dict(sorted(rows.items()))), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
