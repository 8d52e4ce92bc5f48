"""The command ``view``, and the window that it opens."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from napari_panoptic.cli.options import add_cohort, add_screenshot, check_cohort_or_pair
from napari_panoptic.common.errors import PanopticError, SettingsError

if TYPE_CHECKING:
    from napari_panoptic.values.cohort import Cohort

ABOUT = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_cohort(parser, or_pair=True)
    parser.add_argument("--region", metavar="NAME", help="the region to open (default: the first)")
    add_screenshot(parser)


def run(options: argparse.Namespace) -> int:
    """Open a cohort, or the files of one image, in a window."""
    from napari_panoptic.cli.inputs import cohort_from
    from napari_panoptic.io.formats.saving import check_not_in_cohort

    check_cohort_or_pair(options)
    if options.screenshot is not None and options.cohort is not None:
        check_not_in_cohort([options.screenshot], options.cohort)
    elif options.screenshot is not None:
        _check_not_given(options)
    return open_window(
        options.cohort if options.reference is None else cohort_from(options),
        region=options.region,
        screenshot=options.screenshot,
        allow_outside=options.allow_outside,
    )


def _check_not_given(options: argparse.Namespace) -> None:
    """Check that the picture of the window replaces none of the files that are compared."""
    given = [options.reference, *options.prediction, *filter(None, [options.image])]
    if options.screenshot.resolve() in [path.resolve() for path in given]:
        raise SettingsError(f"--screenshot would replace {options.screenshot}; choose another name")


def open_window(
    cohort: Path | Cohort,
    *,
    region: str | None = None,
    screenshot: Path | None,
    allow_outside: bool = False,
) -> int:
    """Open a cohort in a window, and return the exit status when it is closed.

    Raises
    ------
    PanopticError
        Without a display, or without napari and Qt.
    """
    if not _has_display():
        raise PanopticError(
            "there is no display to open a window on; with Xvfb installed, 'xvfb-run -a "
            "napari-panoptic ...' and --screenshot save a picture; 'evaluate' and 'report' need no "
            "display"
        )
    # napari and Qt take seconds to import: only a window needs them.
    try:
        from napari_panoptic.viewer.launch import run_view
    except ImportError as error:
        raise PanopticError(
            f"the window needs napari and Qt, which cannot be imported ({error}); install them "
            'with: pip install "napari-panoptic[pyqt6]"'
        ) from error

    return run_view(cohort, region=region, screenshot=screenshot, allow_outside=allow_outside)


def _has_display() -> bool:
    """Return whether a window can be opened; Qt ends the process without a display."""
    needed = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    return not sys.platform.startswith("linux") or any(os.environ.get(name) for name in needed)
