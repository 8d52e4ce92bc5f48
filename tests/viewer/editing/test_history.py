"""The order of steps, whatever happens to the layers that keep some of them."""

from __future__ import annotations

from napari_panoptic.viewer.editing.history import EditHistory, Step, StepLostError


class Strokes:
    """Keeps the last three steps, as a layer keeps its last hundred."""

    def __init__(self, said: list[str]) -> None:
        self.done: list[int] = []
        self.undone: list[int] = []
        self.forgotten = 0
        self.said = said

    def draw(self, number: int) -> None:
        self.forgotten += len(self.done) == 3
        self.done = [*self.done, number][-3:]
        self.undone.clear()

    def depth(self, *, redo: bool = False) -> int:
        return len(self.undone if redo else self.done)

    def n_forgotten(self) -> int:
        return self.forgotten

    def replay(self, *, redo: bool) -> None:
        taken, given = (self.undone, self.done) if redo else (self.done, self.undone)
        given.append(taken.pop())
        self.said.append(f"stroke {given[-1]}")

    def forget_undone(self) -> None:
        self.undone.clear()


def step(said: list[str], name: str) -> Step:
    def note() -> str:
        said.append(name)
        return ""

    return Step(note, note)


def test_a_source_that_forgets_its_oldest_steps_keeps_the_order() -> None:
    said: list[str] = []
    history, strokes = EditHistory(), Strokes(said)
    history.add_source(strokes)
    for number in range(4):
        strokes.draw(number)
        history.sync()
    history.push(step(said, "action"))
    for number in (4, 5):
        strokes.draw(number)
        history.sync()
    while history.may_undo():
        history.undo()
    assert said == ["stroke 5", "stroke 4", "action", "stroke 3"]
    said.clear()
    while history.may_undo(redo=True):
        history.undo(redo=True)
    assert said == ["stroke 3", "action", "stroke 4", "stroke 5"]


def test_a_step_that_makes_layers_again_is_undone_once() -> None:
    said: list[str] = []
    history, strokes = EditHistory(), Strokes(said)
    history.add_source(strokes)
    strokes.draw(1)

    def make_again() -> str:
        said.append("action")
        history.remove_source(strokes)
        return ""

    history.push(Step(make_again, make_again))
    assert history.undo() == ""
    assert not history.may_undo()
    assert history.undo(redo=True) == ""
    assert said == ["action", "action"]
    assert not history.may_undo(redo=True)


def test_a_step_that_is_lost_does_not_block_those_before() -> None:
    said: list[str] = []
    history = EditHistory()
    history.push(step(said, "first"))

    def fail() -> str:
        raise StepLostError("the objects have changed")

    history.push(Step(fail, fail))
    assert "have changed" in history.undo()
    assert history.undo() == ""
    assert said == ["first"]
    assert not history.may_undo()
