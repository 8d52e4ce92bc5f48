"""Work in two threads."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import weakref

import numpy as np
import pytest

from napari_panoptic.kernels.threads import in_threads


class TestInThreads:
    def test_results_come_in_the_order_of_the_parts(self) -> None:
        assert in_threads(lambda n: n * n, [3, 1, 2, 5]) == [9, 1, 4, 25]

    @pytest.mark.parametrize("bad", range(3))
    def test_an_error_of_any_part_is_raised_when_none_is_at_work_any_more(self, bad: int) -> None:
        at_work = set()

        def work(part: int) -> int:
            at_work.add(part)
            try:
                time.sleep(0.01 * part)
                return 1 // (part != bad)
            finally:
                at_work.remove(part)

        with pytest.raises(ZeroDivisionError):
            in_threads(work, [0, 1, 2])
        assert not at_work

    def test_parts_may_be_shared_out_again(self) -> None:
        sums = in_threads(lambda n: sum(in_threads(abs, [n, -n])), [1, 2, 3])
        assert sums == [2, 4, 6]

    def test_nothing_is_kept_alive(self) -> None:
        parts = [np.zeros(3), np.zeros(3)]
        kept = [weakref.ref(part) for part in parts]
        in_threads(np.sum, parts)
        del parts
        assert [ref() for ref in kept] == [None, None]

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks on this system")
    def test_a_fork_has_threads_of_its_own(self) -> None:
        program = (
            "import os\n"
            "from napari_panoptic.kernels.threads import in_threads\n"
            "in_threads(abs, [1, 2])\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    os._exit(sum(in_threads(abs, [3, -4])))\n"
            "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        )
        result = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
        )
        assert result.stdout.strip() == "7"
