"""The command ``view``, and the window that it opens."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_panoptic.cli.options import add_cohort, add_screenshot, check_cohort_or_pair
from napari_panoptic.cli.printing import say
from napari_panoptic.common.errors import PanopticError, SettingsError

if TYPE_CHECKING:
    from napari_panoptic.values.cohort import Cohort
    from napari_panoptic.values.links import ObjectLink

ABOUT = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_cohort(parser, or_pair=True)
    parser.add_argument("--region", metavar="NAME", help="the region to open (default: the first)")
    parser.add_argument(
        "--link",
        metavar="LINK",
        help="open what a copied link (panoptic:…) leads to: in the window that shows its cohort, "
        "else in a new one, with COHORT or one that was shown lately",
    )
    add_screenshot(parser)


def run(options: argparse.Namespace) -> int:
    """Open a cohort, or the files of one image, in a window."""
    from napari_panoptic.cli.inputs import cohort_from
    from napari_panoptic.io.formats.saving import check_not_in_cohort

    link = None if options.link is None else _link_from(options)
    if link is None or options.cohort is not None:
        check_cohort_or_pair(options)
    if options.screenshot is not None and options.cohort is not None:
        check_not_in_cohort([options.screenshot], options.cohort)
    elif options.screenshot is not None and link is None:
        _check_not_given(options)
    if link is not None:
        return _open_link(link, options)
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


def _link_from(options: argparse.Namespace) -> ObjectLink:
    """Return the link that is given, and check that nothing is given that it states itself."""
    from napari_panoptic.values.links import LinkError, ObjectLink

    for name in ("region", "reference", "prediction", "image", "classes"):
        if getattr(options, name) is not None:
            raise SettingsError(f"--{name} cannot be given with --link, which states what to open")
    try:
        return ObjectLink.parse(options.link)
    except LinkError as error:
        raise LinkError(f"--link: {error}") from error


def _open_link(link: ObjectLink, options: argparse.Namespace) -> int:
    """Open a link: in a window that shows its cohort, else in a new one."""
    cohort = None if options.cohort is None else _cohort_of(link, options)
    _check_display()
    is_new = options.screenshot is not None  # a picture of another window would change it
    if not is_new and _is_sent(link, cohort):
        return 0
    if cohort is None:
        with _window_needed():
            from napari_panoptic.viewer.launch import recent_cohort, run_link

        cohort = recent_cohort(link)
        if cohort is None and is_new:
            raise PanopticError(
                f"no cohort that was shown lately is '{link.cohort.name}' of the link; name its "
                "folder: napari-panoptic view COHORT --link LINK"
            )
        if cohort is None:
            return run_link(link)
        if not is_new and _is_sent(link, cohort):  # another version is open
            return 0
    return open_window(cohort, screenshot=options.screenshot, link=link)


def _cohort_of(link: ObjectLink, options: argparse.Namespace) -> Cohort:
    """Return the cohort that is given, which must have what a link leads to."""
    from napari_panoptic.cli.inputs import cohort_from
    from napari_panoptic.io.cohorts.tasks import task_of
    from napari_panoptic.values.cohort import Task
    from napari_panoptic.values.links import LinkError, check_link

    task = task_of(options.cohort)
    if task is not Task.NUCLEI:
        raise SettingsError(f"--link: links lead to nuclei, and this cohort is about {task}")
    cohort = cohort_from(options)
    try:
        check_link(link, cohort)
    except LinkError as error:
        raise LinkError(f"--link: {error}") from error
    return cohort


def _is_sent(link: ObjectLink, cohort: Cohort | None) -> bool:
    """Send a link to a window that shows a cohort, or that of the link; returns whether it did."""
    with _window_needed():
        from napari_panoptic.viewer.kit.link_socket import send_link
    from napari_panoptic.values.links import CohortKey

    key = link.cohort if cohort is None else CohortKey.of(cohort)
    if not send_link(link, key):
        return False
    say(f"opened in the window that shows {key.name}")
    return True


def open_window(
    cohort: Path | Cohort,
    *,
    region: str | None = None,
    screenshot: Path | None,
    allow_outside: bool = False,
    link: ObjectLink | None = None,
) -> int:
    """Open a cohort in a window, and return the exit status when it is closed.

    Raises
    ------
    PanopticError
        Without a display, or without napari and Qt.
    """
    _check_display()
    # napari and Qt take seconds to import: only a window needs them.
    with _window_needed():
        from napari_panoptic.viewer.launch import run_view

    more: dict[str, Any] = {} if link is None else {"link": link}
    return run_view(
        cohort, region=region, screenshot=screenshot, allow_outside=allow_outside, **more
    )


def _check_display() -> None:
    """Check that a window can be opened; Qt ends the process without a display."""
    platform = os.environ.get("QT_QPA_PLATFORM", "")
    if platform.partition(":")[0] in ("offscreen", "minimal", "linuxfb", "vnc"):
        raise PanopticError(
            f"expected a display with OpenGL, found QT_QPA_PLATFORM={platform}, which has none; "
            f"unset it, and use 'xvfb-run -a napari-panoptic ...' where there is no display"
        )
    needed = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    if sys.platform.startswith("linux") and not any(os.environ.get(name) for name in needed):
        raise PanopticError(
            "there is no display to open a window on; with Xvfb installed, 'xvfb-run -a "
            "napari-panoptic ...' and --screenshot save a picture; 'evaluate' and 'report' need no "
            "display"
        )


@contextmanager
def _window_needed() -> Iterator[None]:
    """Report that napari or Qt cannot be imported."""
    try:
        yield
    except ImportError as error:
        raise PanopticError(
            f"the window needs napari and Qt, which cannot be imported ({error}); install them "
            'with: pip install "napari-panoptic[pyqt6]"'
        ) from error
