"""A window in which somebody reviews, used as a reviewer uses it: by keys, mouse and sight."""

import numpy as np
from qtpy.QtCore import QCoreApplication, QEvent, Qt
from qtpy.QtGui import QTextDocument
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QAbstractButton, QLabel, QLineEdit, QProgressBar, QTextEdit

from napari_panoptic.display.object_rows import ObjectFilter
from napari_panoptic.review.file import REVIEW_FILE
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.viewer.desk.nuclei import desk_of
from tests.viewer.finding import canvas_of, click, nearest_view_middle, on_canvas

ALT, PLAIN = Qt.KeyboardModifier.AltModifier, Qt.KeyboardModifier.NoModifier
_FIELDS = (QLineEdit, QTextEdit)
VERDICT_KEYS = (Qt.Key.Key_1, Qt.Key.Key_2, Qt.Key.Key_3, Qt.Key.Key_4)


class ReviewWindow:
    """A viewer with a cohort on its desk and the panel of the review in front.

    Parameters
    ----------
    viewer
        A viewer with a window.
    cohort
        What is reviewed.
    wait_until
        Lets the window live until something is so.
    """

    def __init__(self, viewer, cohort, wait_until):
        self.viewer, self.cohort, self._wait_until = viewer, cohort, wait_until
        self.desk = desk_of(viewer)

    def open(self):
        """Show the cohort."""
        self.desk.show_cohort(self.cohort)
        self._wait_until(lambda: self.desk.is_settled)
        self.bring_to_front()

    def start_again(self):
        """Close the desk and open it once more, as on the next day."""
        self.close()
        self.desk = desk_of(self.viewer)
        self.open()

    def close(self):
        self.desk.close()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)

    def forget_reviews(self):
        for path in self.cohort.root.glob("panoptic-review*"):
            path.unlink(missing_ok=True)  # the journal of a check that has ended meanwhile

    def bring_to_front(self):
        part = next(part for part in self.desk.parts if part.title == "Review")
        self.desk.raise_part(part)
        self._wait_until(self.panel.isVisible)
        QCoreApplication.processEvents()

    # What the reviewer sees.

    @property
    def panel(self):
        return self.desk.docked()["Review"]

    @property
    def canvas(self):
        return canvas_of(self.viewer)

    @property
    def session(self):
        return self.desk.session

    def texts(self):
        """Return the texts of all labels that are shown in the panel, as they are read."""
        labels = [label for label in self.panel.findChildren(QLabel) if not label.isHidden()]
        return [_as_read(label) for label in labels]

    def state(self):
        """Return what the panel says about the last verdict."""
        return next((text for text in self.texts() if text[:1] in "✓✗" and text), "")

    def left_to_judge(self):
        """Return how many failures of the region have no verdict, as the panel says."""
        bar = self._bar("Region")
        return bar.maximum() - bar.value()

    def left_in_cohort(self):
        """Return the same of the cohort, once all of its regions are counted."""
        bar = self._bar("Cohort")
        self._wait_until(lambda: bar.maximum() == self.failures_in_cohort())
        return bar.maximum() - bar.value()

    def failures_in_cohort(self):
        """Count the failures of all regions."""
        self.settle()
        counts = [line.counts.confusion for line in self.session.summaries.values()]
        return sum(int(confusion.sum() - confusion.trace()) for confusion in counts)

    def _bar(self, place):
        bars = self.panel.findChildren(QProgressBar)
        (bar,) = (bar for bar in bars if bar.format().startswith(place))
        return bar

    def said_above(self):
        """Return the line above the image about the selected object, or the message there."""
        return self.desk.panels.title.selected.text()

    def field(self, placeholder):
        fields = [f for kind in _FIELDS for f in self.panel.findChildren(kind)]
        return next(field for field in fields if field.placeholderText() == placeholder)

    @property
    def note(self):
        return self.field("note")

    @property
    def tags(self):
        return self.field("tags")

    @property
    def name(self):
        return self.field("your name")

    def open_settings(self):
        """Open the section with the reviewer's name, the file and the comparison."""
        self.panel.settings.fold.setChecked(True)

    def button(self, start):
        """Return the button whose text starts so, in any case; None where none is shown."""
        buttons = self.panel.findChildren(QAbstractButton)
        start = start.lower()
        found = (b for b in buttons if b.text().lower().startswith(start) and not b.isHidden())
        return next(found, None)

    def stored(self, reviewer="Ada"):
        """Return the verdicts of a reviewer that are on disk."""
        if not (self.cohort.root / REVIEW_FILE).exists():
            return []
        with ReviewStore(self.cohort.root / REVIEW_FILE, reviewer=reviewer) as store:
            return store.verdicts()

    def size_on_screen(self):
        """Return height and width of the selected object on the screen, and its distance in px.

        The distance is that of the view from the one nearest to the object that the border of
        the image allows.
        """
        chosen = self.session.selection
        outcomes = self.session.evaluation.outcomes.side(chosen.side)
        y0, x0, y1, x1 = box = outcomes.bbox[chosen.row].tolist()
        scale, camera = self.viewer.layers["reference"].scale, self.viewer.scene.camera
        size = tuple(camera.zoom * scale * (y1 - y0, x1 - x0))
        middle = np.array(nearest_view_middle(self.viewer, box))
        return size, float(abs((middle - camera.center[-2:]) * camera.zoom).max())

    # What the reviewer does.

    def press(self, key, modifier=PLAIN, widget=None):
        QTest.keyClick(self.canvas if widget is None else widget, key, modifier)

    def settle(self):
        """Wait until everything asked for is shown."""
        self._wait_until(lambda: self.desk.is_settled)

    def step(self):
        """Press N, and wait until the next failure is in sight, be it in another region."""
        self.press(Qt.Key.Key_N)
        self.settle()

    def press_where_the_focus_is(self, key, modifier=PLAIN):
        window = self.panel.window()
        focused = window.focusWidget()  # an empty menu is false
        self.press(key, modifier, window if focused is None else focused)

    def give(self, number, widget=None):
        """Press the key of a verdict, 1 to 4."""
        self.press(VERDICT_KEYS[number - 1], ALT, widget)

    def end_text(self):
        """Return what the panel says in place of the buttons; empty if they are there."""
        return self.panel.verdicts.end_text()

    def undo(self):
        self.press(Qt.Key.Key_5, ALT)

    def enter_name(self, name):
        self.panel.ask_for_name()
        self.name.clear()
        QTest.keyClicks(self.name, name)
        self.press(Qt.Key.Key_Return, widget=self.name)

    def list_all(self):
        self.desk.panels.objects.set_filter(ObjectFilter())

    def click_object(self, side, row):
        """Click an object on the image, in its middle."""
        labels = self.session.edited_labels(side)
        ys, xs = (labels.index == row + 1).nonzero()
        middle = len(ys) // 2
        click(self.canvas, on_canvas(self.viewer, int(ys[middle]), int(xs[middle])))

    def failures(self):
        """Count the failures of the region."""
        return len(self.desk.panels.objects.model.failures())


def _as_read(label):
    if label.textFormat() is not Qt.TextFormat.RichText:
        return label.text()
    document = QTextDocument()
    document.setHtml(label.text())
    return document.toPlainText()
