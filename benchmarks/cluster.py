"""One slide over a Dask cluster: throughput with one and two workers, and what scheduling costs.

Writes a seeded slide as `benchmarks.slide` does, starts a scheduler and workers of one thread
on this machine, and evaluates it. ``python -m benchmarks.cluster [--quick]``.
"""

import argparse
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from distributed import Client

from benchmarks.slide import QUICK, SIDES, X, write_slide
from napari_panoptic.nuclei.slide_cluster import ClusterWorkers, SlideFiles
from napari_panoptic.nuclei.values.cohort import MONUSAC_CLASSES, MaskFiles, Source
from napari_panoptic.nuclei.values.settings import EvaluationSettings
from napari_panoptic.nuclei.windowed_evaluation import evaluate_tiles


@contextmanager
def cluster(n_workers: int) -> Iterator[Client]:
    """Start a scheduler and workers of one thread, each a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    address = f"tcp://127.0.0.1:{port}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    roles = [["scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"]]
    roles += [["worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]] * n_workers
    started = [
        subprocess.Popen([sys.executable, "-m", f"distributed.cli.dask_{role}", *options], **quiet)  # noqa: S603
        for role, *options in roles
    ]
    try:
        with Client(address, timeout=60) as client:
            client.wait_for_workers(n_workers, timeout=60)
            yield client
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def measured(client: Client, files: SlideFiles, settings: EvaluationSettings) -> dict[str, float]:
    """Evaluate once; seconds by the clock, and those that workers computed and sent."""
    pair = files.open()
    start = time.time()
    found = evaluate_tiles(pair, settings, elsewhere=ClusterWorkers(client, files))
    seconds = time.time() - start
    spent = {"compute": 0.0, "transfer": 0.0}
    tasks = client.get_task_stream(start=start)
    for task in tasks:
        for part in task["startstops"]:
            if part["action"] in spent:
                spent[part["action"]] += part["stop"] - part["start"]
    return {
        "seconds": seconds,
        "tasks": len(tasks),
        "computed_s": spent["compute"],
        "sent_s": spent["transfer"],
        "pq": found.metrics.pq,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10,000 px instead of 40,000")
    slide = QUICK if parser.parse_args().quick else X
    with tempfile.TemporaryDirectory(prefix="slide-") as name:
        folder = Path(name)
        write_slide(folder, slide)
        reference, prediction = (
            MaskFiles(Source.LABELS, {"": (folder / f"{side}.tif",)}) for side in SIDES
        )
        shape = (slide.side, slide.side)
        files = SlideFiles(reference, prediction, MONUSAC_CLASSES, shape, 0.25)
        for distances in (False, True):
            settings = EvaluationSettings(distances=distances)
            print("with distances" if distances else "without distances")
            start = time.time()
            evaluate_tiles(files.open(), settings)
            print(f"  threads of one process, opening included: {time.time() - start:.1f} s")
            for n_workers in (1, 2):
                with cluster(n_workers) as client:
                    measured(client, files, settings)  # opens the slide, loads the kernels
                    found = measured(client, files, settings)
                n = found["tasks"]
                rest = n_workers * found["seconds"] - found["computed_s"]
                print(
                    f"  {n_workers} worker(s): {found['seconds']:.1f} s, {n:.0f} tasks of "
                    f"{1000 * found['computed_s'] / max(n, 1):.0f} ms, sending "
                    f"{found['sent_s']:.2f} s, workers idle {rest:.1f} s, PQ {found['pq']:.6f}"
                )


if __name__ == "__main__":
    main()
