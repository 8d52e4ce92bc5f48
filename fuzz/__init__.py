"""Readers under libFuzzer; if NAPARI_PANOPTIC_CHECKED is 1, with kernels that check all indices."""

import os

if os.environ.get("NAPARI_PANOPTIC_CHECKED") == "1":
    import tests.support.checked_kernels  # noqa: F401 - before any kernel
