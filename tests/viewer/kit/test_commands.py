"""Keys and commands of a desk: bound together, released together, apart in two windows."""

from __future__ import annotations

from typing import Any

import pytest
from napari._app_model import get_app_model
from napari.components import ViewerModel
from qtpy.compat import isalive

from napari_panoptic.viewer.kit.commands import PREFIX, bind, bind_commands
from napari_panoptic.viewer.kit.keys import DESK_KEYS, DETECTION_KEYS, RATED_KEYS, Shortcut

NEXT = Shortcut("n", "next failure", "test_next")


def call_bound(viewer: Any, key: str) -> None:
    viewer.keymap[next(k for k in viewer.keymap if str(k) == key)](viewer)


def palette(viewer: Any) -> dict[str, bool]:
    """Return the ids of the commands listed in the palette of a window, and which are enabled."""
    window = viewer.window._qt_window
    window._command_palette.update_context(window)
    listed = window._command_palette._list
    context = listed._app_model_context
    return {
        command.id: is_enabled(command, context)
        for command in listed.all_commands
        if command.id.startswith(PREFIX)
    }


def is_enabled(command: Any, context: Any) -> bool:
    """Evaluate a command as the palette does: a name that is missing disables it."""
    try:
        return command.enablement is None or bool(command.enablement.eval(context))
    except NameError:
        return False


def run(command: str) -> None:
    get_app_model().commands.execute_command(PREFIX + command)


def test_earlier_keys_come_back() -> None:
    viewer, called = ViewerModel(), []
    viewer.bind_key("n", lambda _viewer: called.append("earlier"))
    release = bind(viewer, {"n": lambda: called.append("own"), "m": lambda: called.append("m")})
    call_bound(viewer, "N")
    call_bound(viewer, "M")
    release()
    release()
    call_bound(viewer, "N")
    assert called == ["own", "m", "earlier"]
    assert "M" not in map(str, viewer.keymap)


def test_commands_are_listed_as_long_as_they_are_bound(make_napari_viewer: Any) -> None:
    viewer, called = make_napari_viewer(), []
    only_listed = Shortcut("", "export objects", "test_export")
    keys = {NEXT: lambda: called.append(1), only_listed: lambda: called.append(2)}
    release = bind_commands(viewer, keys)
    commands = get_app_model().commands
    assert commands[f"{PREFIX}test_next"].title == "Next failure (N)"
    assert commands[f"{PREFIX}test_export"].title == "Export objects"
    listed = palette(viewer)
    assert listed[f"{PREFIX}test_next"]
    assert listed[f"{PREFIX}test_export"]
    run("test_next")
    run("test_export")
    assert called == [1, 2]
    release()
    assert not {f"{PREFIX}test_next", f"{PREFIX}test_export"} & set(palette(viewer))
    assert f"{PREFIX}test_next" not in commands


@pytest.mark.long
def test_two_windows_do_not_collide(
    make_napari_viewer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = make_napari_viewer(), make_napari_viewer()
    called: list[str] = []
    release_one = bind_commands(one, {NEXT: lambda: called.append("one")})
    assert [palette(viewer).get(f"{PREFIX}test_next") for viewer in (one, two)] == [True, None]
    release_two = bind_commands(two, {NEXT: lambda: called.append("two")})
    assert [palette(viewer)[f"{PREFIX}test_next"] for viewer in (one, two)] == [True, True]
    for viewer in (one, two, ViewerModel()):
        monkeypatch.setattr("napari.current_viewer", lambda viewer=viewer: viewer)
        run("test_next")
    assert called == ["one", "two"]
    release_one()
    assert not palette(one).get(f"{PREFIX}test_next")
    assert palette(two)[f"{PREFIX}test_next"]
    release_two()
    assert f"{PREFIX}test_next" not in palette(two)


@pytest.mark.long
def test_a_window_that_was_destroyed_is_left_alone(make_napari_viewer: Any, qtbot: Any) -> None:
    """napari keeps the palette of a closed window connected to the list of commands."""
    gone, other = make_napari_viewer(), make_napari_viewer()
    release_gone = bind_commands(gone, {NEXT: lambda: None})
    palette_of_gone = gone.window._qt_window._command_palette
    gone.close()
    qtbot.waitUntil(lambda: not isalive(palette_of_gone))
    release_gone()
    release = bind_commands(other, {NEXT: lambda: None})
    assert palette(other)[f"{PREFIX}test_next"]
    release()
    assert f"{PREFIX}test_next" not in palette(other)


@pytest.mark.parametrize("keys", [DESK_KEYS, DETECTION_KEYS, RATED_KEYS])
def test_every_key_of_a_desk_is_a_command(keys: tuple[Shortcut, ...]) -> None:
    ids = [line.action for line in keys]
    assert all(ids)
    assert len(set(ids)) == len(ids)
