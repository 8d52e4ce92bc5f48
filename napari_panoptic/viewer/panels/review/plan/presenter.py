"""Presenter of a planned review: draw the plan, step through its items, show estimates."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.text import counted as number_of
from napari_panoptic.display.object_queue import ListedQueue, QueueGap
from napari_panoptic.review.file import ReviewError
from napari_panoptic.review.plan.corrected import ALL
from napari_panoptic.review.plan.design import Plan, extend
from napari_panoptic.review.plan.estimates import Estimates, ItemVerdict
from napari_panoptic.review.plan.goal import Offer, PlanSetup, offer, reached
from napari_panoptic.review.plan.items import PlanItem, item_at
from napari_panoptic.review.plan.units import Population
from napari_panoptic.review.reviewing import Reviewing
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.review.verdicts import Share
from napari_panoptic.values.vocabulary import Verdict
from napari_panoptic.viewer.jobs.jobs import Latest, show_failure
from napari_panoptic.viewer.kit.questions import folder_from
from napari_panoptic.viewer.kit.shown import show_error, show_info
from napari_panoptic.viewer.panels.part import Connections, Surroundings
from napari_panoptic.viewer.panels.question.asking import Asked, Asker, ask_together
from napari_panoptic.viewer.panels.region_panel import SeenPresenter
from napari_panoptic.viewer.panels.review.plan import words
from napari_panoptic.viewer.panels.review.plan.navigation import PlanNavigation
from napari_panoptic.viewer.panels.review.plan.panel import PlanPanel
from napari_panoptic.viewer.panels.review.plan.work import (
    CurrentPlan,
    PlanEstimates,
    PlanItems,
    estimated,
    spelt,
    written,
)
from napari_panoptic.viewer.panels.review.presenter import ReviewPresenter
from napari_panoptic.viewer.panels.settings import SettingsPresenter

T = TypeVar("T")
NOTHING_TO_UNDO = "Nothing to undo: this window has no verdict on an item."


class PlanPresenter(SeenPresenter[PlanPanel]):
    """Plan a review of the cohort, step through its items, and show the estimates.

    It uses reviewer and file of the review without a plan.
    """

    title = "Plan"
    key = "Alt-b"  # P is the mnemonic of napari's menu Plugins
    shows_outcomes = False
    panel_type = PlanPanel

    def __init__(self, around: Surroundings, panel: PlanPanel) -> None:
        super().__init__(around, panel)
        self._review = self.link.presenter(ReviewPresenter)
        self._review.keys.taker = self._key_taker
        self._items = Asker(
            began=partial(panel.ask.counting.show_progress, 0.0),
            progressed=panel.ask.counting.show_progress,
            taken=self._on_items,
            failed=self._on_not_counted,
        )
        self._offering: Latest[Offer] = Latest(self._on_offer, failed=self._on_failed)
        self._estimating: Latest[PlanEstimates] = Latest(self._on_found, failed=self._on_failed)
        self._extending: Latest[Plan] = Latest(self._on_extended)
        self._exporting: Latest[list[Path]] = Latest(self._on_exported)
        self._work = (self._offering, self._estimating, self._extending, self._exporting)
        self._navigation = PlanNavigation(around)
        self._offer: Offer | None = None
        self._reviewed_by: tuple[ReviewStore | None, str] = (None, "")
        self._asks_anew = False
        self._current: CurrentPlan | None = None
        self._found: PlanEstimates | None = None
        self.item: PlanItem | None = None
        """The item under review; None if the review is paused or all items are reviewed."""
        self.is_on = False
        """Whether items are being reviewed: verdicts then apply to them."""
        cohort = self.session.cohort
        names = [team.name for team in (*cohort.competing_teams, *cohort.teams)]
        panel.ask.offer_teams(list(dict.fromkeys(names)), self.session.team)

    @property
    def is_busy(self) -> bool:
        """Whether something is being computed or written."""
        return self._items.is_asking or any(each.is_busy for each in self._work)

    def connections(self) -> Connections:
        """Listen to session, review and panel."""
        session, panel, ask = self.session, self.panel, self.panel.ask
        return [
            (session.region_changed, self._navigation.follow_region),
            (session.settings_changed, self.refresh),
            (session.copies_changed, self._show_notes),
            (session.source_changed, self.refresh),
            (self._reviewing.changed, self._on_review),
            (self._sight.changed, self._on_sight),
            (ask.changed, self.refresh),
            (ask.draw.pushed, self.draw),
            (ask.counting.start.pushed, self._on_count),
            (ask.counting.stop.pushed, self._on_stop),
            (ask.back.pushed, self._on_back),
            (panel.enter_name.pushed, self._review.ask_for_name),
            (panel.begin.pushed, self.begin_review),
            (panel.pause.pushed, self.pause),
            (panel.item.verdicts.given, self.give),
            (panel.undo.pushed, self.undo),
            (panel.previous.pushed, self._on_previous),
            (panel.following.pushed, self.go_on),
            (panel.again.pushed, self._go_again),
            (panel.of_class.chosen, self._show_found),
            (panel.export.pushed, self._on_export),
            (panel.extension.pushed, self._on_more),
            (panel.new.pushed, self._on_new),
        ]

    def close(self) -> None:
        """Stop all work and remove the square."""
        self._items.stop()
        for each in self._work:
            each.close()
        self.is_on = False
        self._navigation.close(is_window_gone=self.is_window_gone)

    # View.

    def compute_now(self) -> None:
        """Show the plan or its form, and compute the population and the estimates."""
        panel, reviewing = self.panel, self._reviewing
        self._current = self._read_plan()
        if not reviewing.reviewer:
            panel.show_hint(words.ASK_FOR_NAME, wants_name=True)
        elif not panel.ask.team.values:
            panel.show_hint(words.NO_TEAM)
        elif self._current is None or self._asks_anew:
            panel.show_asking(has_plan=self._current is not None)
            self._plan_for_goal()
        else:
            self._show_plan(self._current)
            self._show_found()
            self._compute_estimates(self._current)

    def _read_plan(self) -> CurrentPlan | None:
        """Return the plan in the review file, or None."""
        store = self._reviewing.store
        self._reviewed_by = store, self._reviewing.reviewer
        try:
            stored = None if store is None else store.plan.stored()
            if stored is None:
                return None
            setup = PlanSetup.of(stored.settings)
        except PanopticError as error:
            show_error(str(error))
            return None
        return CurrentPlan(spelt(stored.plan, self.session.cohort), setup)

    def _plan_for_goal(self) -> None:
        """Compute the plan for the goal in the form."""
        ask, session = self.panel.ask, self.session
        goal = ask.goal
        if goal is None:
            return
        self._offer = None
        wanted = PlanItems(
            settings=session.settings,
            source=session.source,
            held_up_to_px=session.held_up_to_px,
            teams=goal.teams,
            has_suspects=ask.wants_suspects,
        )
        items = self._counted(wanted)
        if items is None:
            ask.show_offer(words.COUNTING if self._items.is_asking else "", may_draw=False)
            return
        ask.counting.show_progress(None, may_start=False)
        ask.draw.setEnabled(False)
        self._offering.start(partial(offer, items.units, goal, ask.seed.value(), ask.wanted_items))

    def _counted(self, wanted: PlanItems) -> Population | None:
        """Return the items that are asked for; None while they are counted, or if that stopped."""
        asked = Asked(self.session.cohort, wanted)
        if (found := self._items.found(asked)) is not None:
            items: Population = found.gathered
            return items
        if asked != self._items.asked:
            ask_together({self._items: asked})
        elif self._items.is_stopped:
            self.panel.ask.counting.show_progress(None)
        return None

    @property
    def _drawn_from(self) -> Population | None:
        """The items that the plan was drawn from; None if they were not counted last."""
        if self._current is None:
            return None
        wanted = self._current.items(self.session.held_up_to_px)
        found = self._items.found(Asked(self.session.cohort, wanted))
        return None if found is None else found.gathered

    def _show_plan(self, current: CurrentPlan) -> None:
        """Show the plan, and whether its items are being reviewed."""
        goal, is_blind = current.goal, self.link.state.is_blind
        name = words.QUANTITY_WORDS[goal.quantity] if is_blind else words.goal_words(goal)
        name += f" · {number_of(len(current.plan), 'item')} · seed {current.plan.seed}"
        is_begun = self.is_on or bool(self._answers())
        self.panel.show_plan(name, is_on=self.is_on, is_begun=is_begun)

    def _compute_estimates(self, current: CurrentPlan) -> None:
        """Compute the estimates from the verdicts once the population is known."""
        items = self._counted(current.items(self.session.held_up_to_px))
        answers = self._answers()
        if items is not None and answers is not None:
            self._estimating.start(
                partial(estimated, current.plan, items.units, answers, current.goal)
            )

    def _show_progress(self, current: CurrentPlan) -> None:
        """Show the progress and the current estimate, if known."""
        found, estimates, answers = self._found, self._estimates, self._answers()
        if answers is None:
            return
        share = Share(len(answers), len(current.plan))
        interval = None if estimates is None else reached(current.goal, estimates)
        precision = "Evaluating the cohort for the estimates …"
        if found is not None:
            precision = words.precision_text(current.goal, interval, found.at_end)
        elif self.panel.problem_text():
            precision = ""
        self.panel.show_progress(
            share, words.progress_text(share, current.goal, interval), precision
        )

    def _show_found(self, _class: object = None) -> None:
        """Show the progress and the estimates, if known."""
        current, estimates = self._current, self._estimates
        if current is None:
            return
        self._show_progress(current)
        if estimates is None:
            self.panel.show_results(None, (), ())
        elif self.link.state.is_blind:
            self.panel.show_results(words.AFTER_PAUSE, (), ())
        else:
            rows = words.result_rows(estimates, self.panel.of_class.choice or ALL)
            told = words.result_sentences(current.goal, estimates)
            self.panel.show_results(told, rows, [ALL, *current.plan.units.class_names])
        self._show_notes()

    def _show_notes(self) -> None:
        """Show the design, the agreement, and what is not part of the estimates."""
        current, estimates = self._current, self._estimates
        if current is None:
            return
        items, design = self._drawn_from, ""
        if items is not None:
            design = words.design_text(current.plan, len(items.units), estimates)
        told = "" if estimates is None else words.result_sentences(current.goal, estimates)
        findings = () if estimates is None or self.link.state.is_blind else estimates.findings
        notes = [words.note(at) for at in findings]
        notes = [text for text in notes if text not in told]
        notes += self._agreement()
        if self.session.has_any_edits:
            notes.append(words.NOT_EDITED)
        self.panel.show_design(design, "\n".join([*notes, self._outside()]))

    def _outside(self) -> str:
        """Describe the verdicts that were given without a plan."""
        store, current = self._reviewing.store, self._current
        shared = current is not None and current.setup.is_shared
        records = self._ask_store(lambda at: at.verdicts(include_others=shared))
        if store is None or not records:
            return words.OUTSIDE
        wrong = (Verdict.PREDICTION_RIGHT, Verdict.BOTH_WRONG)
        errors = sum(record.verdict in wrong for record in records)
        return (
            f"{words.OUTSIDE} Such verdicts in this file: {len(records)} ({errors} report errors)."
        )

    def _agreement(self) -> list[str]:
        """Describe the agreement of this reviewer with the others who reviewed the plan."""
        own = self._reviewing.reviewer
        found = self._ask_store(
            lambda at: {
                other: at.plan.agreement(own, other)
                for other in at.plan.reviewers()
                if other != own
            }
        )
        return [
            f"{own} and {other} agree on {kappa.observed:.0%} of {kappa.n} items that both have "
            f"judged (Cohen's kappa {kappa.kappa:.2f})."
            for other, kappa in (found or {}).items()
            if kappa.n
        ]

    def _answers(self) -> list[ItemVerdict] | None:
        """Return the verdicts that the estimates use."""
        shared = self._current is not None and self._current.setup.is_shared
        return self._ask_store(lambda at: at.plan.pooled_answers() if shared else at.plan.answers())

    def _ask_store(self, question: Callable[[ReviewStore], T]) -> T | None:
        """Query the review file; report an error and return None if that fails."""
        store = self._reviewing.store
        if store is None:
            return None
        try:
            return question(store)
        except ReviewError as error:
            self.panel.state.show_state(str(error), saved=False)
            show_error(str(error))
            return None

    def _write(self, change: Callable[[ReviewStore], object]) -> bool:
        """Change the review file; report an error and return False if that fails."""

        def changed(store: ReviewStore) -> bool:
            change(store)
            return True

        return bool(self._ask_store(changed))

    # Results of workers.

    def _on_items(self) -> None:
        self.panel.ask.counting.show_progress(None, may_start=False)
        self.refresh()

    def _on_not_counted(self, error: PanopticError | None) -> None:
        self._show_failed(words.STOPPED if error is None else str(error))
        if error is not None:
            show_failure(error)

    def _on_offer(self, found: Offer) -> None:
        goal = self.panel.ask.goal
        if goal is None:
            return
        self._offer = found
        self.panel.ask.show_offer(words.offer_text(goal, found), may_draw=True)

    def _on_found(self, found: PlanEstimates) -> None:
        self._found = found
        self.panel.show_problem("")
        self._show_found()

    def _on_failed(self, error: PanopticError) -> None:
        show_failure(error)
        self._show_failed(str(error))

    def _show_failed(self, why: str) -> None:
        self.panel.ask.counting.show_progress(None)
        self.panel.ask.show_offer(why, may_draw=False)
        self.panel.show_problem(why)
        self._show_found()

    # User actions.

    def draw(self) -> None:
        """Save the plan for the goal in the form; the older one stays in the file."""
        ask, session, found = self.panel.ask, self.session, self._offer
        store = self._reviewing.opened()
        if store is None or found is None:
            return  # the error was reported
        setup = PlanSetup(
            ask.goal,
            session.settings,
            session.source,
            is_shared=ask.is_shared.isChecked(),
            is_blind=ask.is_blind.isChecked(),
        )
        if not self._write(lambda at: at.plan.save(found.plan, setup.as_record())):
            return
        self._forget()
        self._asks_anew = False
        self.refresh()
        self.panel.state.show_state(f"Plan saved in {store.path.name}.")

    def begin_review(self) -> None:
        """Go to the first item without a verdict; verdicts apply to items from now on."""
        current = self._current
        if current is None:
            return
        self._set_on(True)
        self._take_settings(current.setup)
        self.go_on()

    def pause(self) -> None:
        """Let verdicts apply to any object again."""
        self.item = None
        self._set_on(False)
        self._navigation.leave()
        if self._current is not None:
            self._show_plan(self._current)

    def give(self, verdict: Verdict) -> None:
        """Save a verdict on the item that is shown, and go to the next one without a verdict."""
        store, item = self._reviewing.store, self.item
        if store is None or item is None:
            self.panel.state.show_state(words.WHAT_NEXT)
            return
        if not self._navigation.is_shown(item, verdict):
            self._go(item)
            self._say(words.SHOWN_AGAIN.format(item.number))
            return
        if reason := self.link.why_unseen:
            self._say(reason)
            return
        count = None
        if item.tile_yx_px is not None and verdict is not Verdict.CANNOT_TELL:
            if verdict is not Verdict.ANNOTATION_RIGHT:
                self._say(words.COUNT_NEEDED)
                return
            count = self.panel.item.nuclei.value()
        if not self._write(lambda at: at.plan.answer(item.number, verdict, count=count)):
            return
        self.panel.state.show_state(f"Item {item.number} saved.", saved=True)
        self._after_verdict()
        self.go_on()

    def undo(self) -> None:
        """Withdraw the last verdict on an item in this window, and show the item."""
        undone = self._ask_store(lambda at: at.plan.undo())
        if undone is None:
            self._say(NOTHING_TO_UNDO)
            return
        self.panel.state.show_state(f"Item {undone}: verdict withdrawn.")
        self._after_verdict()
        self._go_to(undone)

    def go_on(self) -> None:
        """Go to the first item without a verdict."""
        current, answers = self._current, self._answers()
        if current is None or answers is None:
            return
        done = {answer.item for answer in answers}
        place = self._queue.step(is_wanted=lambda number: number not in done)
        if place is not None:
            self._go_to(self._queue.item(place))
        else:
            self.item = None
            self._navigation.leave()
            self._show_plan(current)
            self.panel.item.show_end(words.ALL_DONE, words.WHAT_NEXT)

    def write(self) -> None:
        """Save the number of nuclei in a square; an item of a plan has no note."""
        if self.item is not None and self.item.tile_yx_px is not None:
            self.give(Verdict.ANNOTATION_RIGHT)

    def types(self, digit: int) -> bool:
        """Return whether the number of nuclei in a square is asked for, and begin with a digit."""
        if self.item is None or self.item.tile_yx_px is None:
            return False
        self.panel.item.type_digit(digit)
        return True

    def _on_more(self) -> None:
        """Draw more items for the plan."""
        current, items = self._current, self._drawn_from
        if current is None or items is None:
            self._say("The cohort is still being evaluated. Try again when it has finished.")
            return
        wanted = len(current.plan) + self.panel.more.value()
        self._extending.start(partial(extend, current.plan, items.units, wanted))

    def _on_extended(self, plan: Plan) -> None:
        current = self._current
        if current is None:
            return
        added = len(plan) - len(current.plan)
        if added and not self._write(lambda at: at.plan.extend(plan)):
            return
        self.refresh()
        if self.is_on and self.item is None:
            self.go_on()
        why = f"{number_of(added, 'item')} added." if added else "This cohort has no more items."
        self.panel.state.show_state(why)

    def _on_export(self) -> None:
        root = self.session.cohort.root
        chosen = folder_from(self.panel, "Folder for the CSV files", root)
        if chosen is not None:
            self.export(chosen)

    def export(self, folder: Path) -> None:
        """Write plan, verdicts and estimates in the same files as the command line."""
        current, items, estimates = self._current, self._drawn_from, self._estimates
        if current is None or items is None or estimates is None:
            return
        answers = self._answers() or []
        self._exporting.start(partial(written, folder, current.plan, items, estimates, answers))

    def _on_exported(self, paths: list[Path]) -> None:
        self.panel.state.show_state(
            f"{number_of(len(paths), 'file')} written to {paths[0].parent}."
        )

    def _on_new(self) -> None:
        self.pause()
        self._asks_anew = True
        self.refresh()

    def _on_back(self) -> None:
        self._asks_anew = False
        if self._items.is_stopped:
            self._items.forget()
        self.refresh()

    def _on_count(self) -> None:
        self._items.forget()
        self.refresh()

    def _on_stop(self) -> None:
        self._items.stop()
        self.panel.ask.counting.show_progress(None)
        self.panel.ask.show_offer(words.STOPPED, may_draw=False)

    # From item to item.

    @property
    def _queue(self) -> ListedQueue[int]:
        """The numbers of the items, in order."""
        n_items = 0 if self._current is None else len(self._current.plan)
        return ListedQueue(range(1, n_items + 1))

    def _set_on(self, is_on: bool) -> None:
        self.is_on = is_on
        is_blind = self._current is not None and self._current.setup.is_blind
        if self.link.state.is_blind != (is_on and is_blind):
            self.link.state.is_blind = is_on and is_blind
            self._show_found()

    def _on_previous(self) -> None:
        standing = None if self.item is None else QueueGap.at(self.item.number - 1)
        place = self._queue.step(-1, standing)
        if place is not None:
            self._go_to(self._queue.item(place))

    def _go_again(self) -> None:
        if self.item is not None:
            self._go(self.item)

    def _go_to(self, number: int) -> None:
        if self._current is not None:
            self._go(item_at(self._current.plan, number))

    def _go(self, item: PlanItem) -> None:
        """Show an item and its verdict."""
        current = self._current
        if current is None:
            return
        self.item = item
        self._set_on(True)
        self._show_plan(current)
        title = f"Item {item.number} of {len(current.plan)}"
        if not current.setup.is_blind:
            title += f": {item.words}"
        own = self._ask_store(lambda at: at.plan.answers()) or []
        given = next((answer for answer in own if answer.item == item.number), None)
        verdict = None if given is None else given.verdict
        self._navigation.go_to(item)
        if item.tile_yx_px is None:
            self.panel.item.show_object(title, verdict)
            self.return_keys()
        else:
            self.panel.item.show_tile(title, verdict, None if given is None else given.count)

    def _take_settings(self, setup: PlanSetup) -> None:
        """Apply the settings of the plan, so that its items match the objects on screen."""
        settings = self.link.presenter(SettingsPresenter)
        now, before = self.session.settings, setup.settings
        if now.replaced(distances=before.distances) != before:
            show_info("Settings changed to those of the plan.")
            settings.choose(before.replaced(distances=now.distances))
        if self.session.source != setup.source:
            settings.choose_source(setup.source)

    def _after_verdict(self) -> None:
        if self._current is not None:
            self._show_progress(self._current)
            self._compute_estimates(self._current)

    def _say(self, text: str) -> None:
        self.panel.state.show_state(text)
        show_info(text)

    # Reactions to other panels.

    def _on_review(self) -> None:
        """Follow another reviewer or another file; ignore verdicts without a plan."""
        if self._reviewed_by != (self._reviewing.store, self._reviewing.reviewer):
            self._reviewed_by = self._reviewing.store, self._reviewing.reviewer
            self._forget()
            self.refresh()

    def _forget(self) -> None:
        """Discard the state of the previous plan."""
        self._estimating.drop()
        self._found, self.item = None, None
        self._set_on(False)
        self._navigation.leave()
        self.panel.show_problem("")
        self.panel.state.show_state("")

    def _key_taker(self) -> PlanPresenter | ReviewPresenter:
        """Return the target of the verdict keys: the item under review if in view, else None."""
        return self if self.is_on and self.is_in_sight else self._review

    @property
    def _reviewing(self) -> Reviewing:
        return self._review.reviewing

    @property
    def _estimates(self) -> Estimates | None:
        """The estimates, if known."""
        return None if self._found is None else self._found.estimates
