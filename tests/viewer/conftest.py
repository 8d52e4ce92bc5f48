"""A desk in a real window, and how to wait for it."""

import functools
import gc
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from unittest.mock import patch

import napari
import pytest
import pytestqt.plugin
from app_model import Application
from napari._app_model._app import NapariApplication, _napari_names
from napari._qt._qapp_model.qactions import init_qactions
from napari._qt.qt_main_window import _QtMainWindow
from napari.plugins import _initialize_plugins
from napari.settings import NapariSettings
from npe2 import PluginManager
from qtpy.QtCore import QCoreApplication, QEvent, QEventLoop
from vispy.scene.canvas import SceneCanvas

from napari_panoptic.display.listed import Others
from napari_panoptic.display.object_rows import ObjectFilter
from napari_panoptic.display.styles import Display, Look
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.viewer import opening  # noqa: F401 - tells desks how to open cohorts
from napari_panoptic.viewer.desk.link import Link
from napari_panoptic.viewer.desk.nuclei import PARTS, desk_of
from napari_panoptic.viewer.editing import autosaving
from napari_panoptic.viewer.jobs import cohort_work
from napari_panoptic.viewer.state.preferences import PREFERENCES, Preferences, Queue
from tests.support.waiting import wait_until
from tests.viewer.finding import canvas_of, close_viewer
from tests.viewer.review_window import ReviewWindow


def pytest_collection_modifyitems(items):
    """Skip what needs a window where there is no display to show it."""
    if sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return
    reason = "no display: run under xvfb-run to test windows"
    for item in items:
        if {"make_napari_viewer", "qtbot", "qapp"} & set(item.fixturenames):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session", autouse=True)
def no_collections():
    """Leave garbage to Python: napari collects all of it whenever a layer is removed."""
    with patch("napari._vispy.canvas.gc", SimpleNamespace(collect=int)):
        yield


@pytest.fixture(scope="session", autouse=True)
def no_event_filter():
    """Let events pass: napari looks at every one in Python, in case its menu bar is hidden."""
    with pytest.MonkeyPatch.context() as patched:
        patched.delattr(_QtMainWindow, "eventFilter")
        yield


@pytest.fixture(scope="session", autouse=True)
def plugins_found_once():
    """Look for plugins once: napari reads all their manifests again for every window."""
    with patch.object(PluginManager, "discover", functools.cache(PluginManager.discover)):
        yield


@pytest.fixture(scope="session", autouse=True)
def napari_settings():
    """Keep napari's settings in memory: napari writes them for every dock that is placed."""
    with patch.object(NapariSettings, "save"):
        yield


@pytest.fixture(scope="session", autouse=True)
def own_preferences():
    """Keep what is remembered apart from the settings of whoever runs the tests."""
    with patch.object(Preferences, "_settings", lambda _self: None):
        yield


@pytest.fixture(autouse=True)
def preferences():
    """Remember nothing of an earlier test."""
    PREFERENCES._kept_here.clear()
    return PREFERENCES


@pytest.fixture(scope="module", autouse=True)
def no_preferences():
    """Remember nothing of an earlier module in the window that a module shares."""
    PREFERENCES._kept_here.clear()


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """Keep what is cached apart from the cache of whoever runs the tests, and from other tests."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(cohort_work, "user_cache_path", lambda _name: folder)
    return folder


@pytest.fixture(scope="session", autouse=True)
def autosaves(tmp_path_factory):
    """Keep autosaves apart from the cache of whoever runs the tests, and from other desks."""

    def own_folder(_name):
        return tmp_path_factory.mktemp("autosaves")

    with patch.object(autosaving, "user_cache_path", own_folder):
        yield


@pytest.fixture(scope="session", autouse=True)
def sockets():
    """Keep the sockets of desks apart from those of open windows; their paths must be short."""
    if os.environ.get("WAYLAND_DISPLAY"):
        yield
        return
    with tempfile.TemporaryDirectory() as runtime, pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_RUNTIME_DIR", runtime)
        yield


@pytest.fixture(scope="session")
def sample_folder(nuclei_sample, tmp_path_factory):
    """Copy the sample cohort for all windows: they keep reviews in it."""
    return shutil.copytree(nuclei_sample, tmp_path_factory.mktemp("viewer") / "cohort")


@pytest.fixture(scope="session")
def cohort(sample_folder):
    """Open a part of the sample cohort: five regions, two teams."""
    cohort = open_cohort(sample_folder)
    teams = tuple(team for team in cohort.teams if team.name in ("careful", "merger"))
    return replace(cohort, regions=cohort.regions[:5], teams=teams)


@pytest.fixture(scope="session", autouse=True)
def undrawn():
    """Give a context in which canvases draw nothing, which takes a fourth of the time of windows.

    They are told that they are drawn. Taking a picture draws them again.
    """
    is_undrawn, draw_scene = False, SceneCanvas._draw_scene

    def draw(canvas, *arguments, **options):
        if not is_undrawn:
            draw_scene(canvas, *arguments, **options)

    @contextmanager
    def undrawing():
        nonlocal is_undrawn
        before, is_undrawn = is_undrawn, True
        try:
            yield
        finally:
            is_undrawn = before

    with patch.object(SceneCanvas, "_draw_scene", draw):
        yield undrawing


@pytest.fixture(scope="session", autouse=True)
def undrawn_between_tests(undrawn):
    """Draw nothing when events are handled before and after a test."""
    process_events = pytestqt.plugin._process_events

    def processed():
        with undrawn():
            process_events()

    with patch.object(pytestqt.plugin, "_process_events", processed):
        yield


@pytest.fixture(scope="session", name="wait_until")
def wait_until_in_a_window(undrawn):
    """Give a function that lets the window live until something is so."""

    def handle_events():
        with undrawn():
            QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 10)

    return partial(wait_until, meanwhile=handle_events)


@pytest.fixture(autouse=True)
def looking(wait_until):
    """Let the image be painted before a selected object is judged or mended, as users look first.

    Give the property as it is without that.
    """
    why_unseen = Link.why_unseen

    def seen_at_last(link):
        wait_until(lambda: not link.painting.is_due)
        return why_unseen.fget(link)

    with patch.object(Link, "why_unseen", property(seen_at_last)):
        yield why_unseen


@pytest.fixture
def hasty(looking):
    """Press keys and buttons without waiting for the image."""
    with patch.object(Link, "why_unseen", looking):
        yield


@pytest.fixture
def close_desk():
    """Give a function that closes a desk and lets Qt delete what is to be deleted later."""

    def close(desk):
        desk.close()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)

    return close


@pytest.fixture
def window(shared_viewer, qapp):
    """Give the window that a module shares; what a test leaves in it is removed in the end."""

    def orphans():
        return {widget for widget in qapp.topLevelWidgets() if widget.parent() is None}

    shared_viewer.window.resize(1280, 800)
    initial = orphans()
    yield shared_viewer
    shared_viewer.layers.clear()
    docked = [getattr(w, "native", w) for w in shared_viewer.window.dock_widgets.values()]
    shared_viewer.window.remove_dock_widget("all")
    for widget in docked:
        widget.deleteLater()
    shared_viewer.dims.reset()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    if orphans() - initial:
        gc.collect()  # there may be wrappers that nobody holds
    assert not orphans() - initial, "widgets without a parent were left behind"


@pytest.fixture
def new_desk(window, close_desk, cohort, wait_until):
    """Open the sample cohort on a desk for one test, and wait until everything is there."""
    desk = desk_of(window)
    desk.show_cohort(cohort)
    wait_until(lambda: desk.is_settled)
    yield desk
    close_desk(desk)


@pytest.fixture(scope="module")
def napari_application():
    """Give a module's own window a napari application of its own.

    napari's fixture of this kind serves single tests only.
    """
    _initialize_plugins.cache_clear()
    init_qactions.cache_clear()
    application = NapariApplication("module_app")
    application.injection_store.namespace = _napari_names
    with patch.object(NapariApplication, "get_app_model", return_value=application):
        yield
    Application.destroy("module_app")
    _initialize_plugins.cache_clear()
    init_qactions.cache_clear()


@pytest.fixture(scope="module")
def shared_viewer(qapp, napari_application):  # noqa: ARG001
    """Open a window once for all tests of a module; each leaves it as it was."""
    viewer = napari.Viewer()
    viewer.window.resize(1280, 800)
    yield viewer
    close_viewer(viewer)
    del viewer
    qapp.processEvents()
    gc.collect()  # napari looks for windows that are left only among young objects


@pytest.fixture(scope="module")
def shown_cohort(cohort):
    """Give what a desk shared by a module shows; modules may give something else."""
    return cohort


@pytest.fixture(scope="module")
def shown_parts():
    """Give the panels beside the table on such a desk; modules may want fewer."""
    return PARTS


@pytest.fixture(scope="module")
def open_desk(shared_viewer, shown_cohort, shown_parts, wait_until):
    """Open a desk once for all tests of a module."""
    with patch("napari_panoptic.viewer.desk.nuclei.PARTS", shown_parts):
        desk = desk_of(shared_viewer)
    desk.show_cohort(shown_cohort)
    wait_until(lambda: desk.is_settled)
    yield desk
    desk.close()
    wait_until(lambda: desk.is_settled)


@pytest.fixture
def fresh_desk(open_desk, request, wait_until):
    """Return that desk as it was just after opening: the first region, nothing selected.

    `FIRST_TEAM` of a module is the team that is shown, if not the careful one.
    """
    desk, session = open_desk, open_desk.session
    # Another display opens the eyes that were closed by hand.
    desk.state.look = Look(display=Display.FILL)
    desk.state.look = Look()
    desk.state.queue = Queue.REGION
    desk.panels.objects.others.choose(Others.SHOWN)
    desk.panels.objects.set_filter(ObjectFilter())
    session.set_team(getattr(request.module, "FIRST_TEAM", "careful"))
    first = session.cohort.regions[0].name
    if session.snapshot.region.name != first or session.settings != session.protocol:
        desk.link.request(region=first, settings=session.protocol)
    wait_until(lambda: desk.is_settled)
    session.select(None)
    desk.link.failures.leave()
    desk.link.scene.camera.fit()
    return desk


@pytest.fixture
def at_first():
    """Do nothing; a module overrides this to prepare such a desk for its tests."""


@pytest.fixture
def desk(fresh_desk, at_first):  # noqa: ARG001
    """Return the desk that a module shares, as the module needs it at first."""
    return fresh_desk


@pytest.fixture
def viewer(shared_viewer):
    """Return the viewer that a module shares."""
    return shared_viewer


@pytest.fixture
def canvas(viewer):
    """Return the Qt widget that a viewer draws in."""
    return canvas_of(viewer)


@pytest.fixture(scope="module")
def review_viewer(shared_viewer, nuclei_sample, tmp_path_factory, wait_until):
    """Open a window for reviews of a cohort of its own: two regions, one team, two panels."""
    folder = shutil.copytree(nuclei_sample, tmp_path_factory.mktemp("review") / "cohort")
    for place in [*folder.glob("*/careful")]:
        place.rename(place.with_name("R&D's"))
    cohort = open_cohort(folder)
    teams = tuple(team for team in cohort.teams if team.name == "R&D's")
    cohort = replace(cohort, regions=cohort.regions[:2], teams=teams)
    parts = tuple(part for part in PARTS if part.title == "Review")
    with patch("napari_panoptic.viewer.desk.nuclei.PARTS", parts):
        window = ReviewWindow(shared_viewer, cohort, wait_until)
        yield window
        window.close()


@pytest.fixture
def review(review_viewer):
    """Give that window with the cohort just opened, no verdict yet, and Ada as reviewer."""
    review_viewer.forget_reviews()
    review_viewer.open()
    review_viewer.enter_name("Ada")
    review_viewer.list_all()
    return review_viewer
