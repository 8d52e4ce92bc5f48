"""Verdicts are imported by the identity of their objects: all of them or none, and once."""

import shutil
from dataclasses import replace

import pytest

from napari_panoptic.cli.main import main
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.review.judged import Subjects, judged_as_one
from napari_panoptic.review.package.contents import Contents, PackageItem, Target
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.values.vocabulary import Side, Verdict
from tests.support.builders import noise, write_svs
from tests.support.commands import exit_status
from tests.support.paths import csv_rows
from tests.support.review_packages import (
    READING,
    contents_of,
    saved,
    write_file,
    write_small_package,
)
from tests.support.small_cohort import ANNOTATIONS, MPP, REGIONS

N = 12
VERDICTS = list(Verdict)


@pytest.fixture(scope="module")
def contents(small_folder, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "review.html"
    return contents_of(write_small_package(path, open_cohort(small_folder), N))


@pytest.fixture
def review(tmp_path):
    return tmp_path / "review.sqlite"


@pytest.fixture
def imports(small_folder, tmp_path, review):
    """Give a function that imports a file by the command line, and gives its exit status."""

    def imported(file, *options, cohort=small_folder):
        path = write_file(tmp_path / "verdicts.json", file)
        place = () if "--review" in options else ("--review", str(review))
        return exit_status("import-verdicts", path, cohort, *place, *options)

    return imported


def rows(review, reviewer="Ada"):
    with ReviewStore(review, reviewer=reviewer, create=False) as store:
        return [record.values() for record in store.verdicts()]


def all_given(contents):
    return {item.item: VERDICTS[n % 4] for n, item in enumerate(contents.items)}


def test_the_rows_are_those_of_the_window(small_folder, contents, imports, review, tmp_path):
    assert len(contents.items) == N
    assert imports(saved(contents, all_given(contents), note="as seen")) == 0
    # As the window gives them: by the objects of the evaluated regions.
    cohort, other = open_cohort(small_folder), tmp_path / "window.sqlite"
    with ReviewStore(other, reviewer="Ada") as store:
        for item in contents.items:
            found = load_region(cohort, item.region, READING.settings).evaluations[item.team]
            row = found.outcomes.side(item.target.side).row_of(item.target.object_id)
            place = judged_as_one(found, item.target.side, row)
            subject = Subjects(found, region=item.region, team=item.team).of(*place)
            store.give(subject, all_given(contents)[item.item], note="as seen")
    own, others = rows(review), rows(other)
    assert [row.pop("given_at") for row in own][3] == "2026-03-01T10:00:03.125000+00:00"
    for row in others:
        del row["given_at"]
    assert own == others


def test_objects_with_other_ids_are_found(contents, imports, review):
    renumbered = tuple(
        replace(item, target=replace(item.target, object_id=item.target.object_id + 1000))
        for item in contents.items
    )
    file = saved(replace(contents, items=renumbered), all_given(contents))
    assert imports(file) == 0
    ids = {item.target.object_id for item in contents.items}
    assert {row["object_id"] for row in rows(review)} == ids


def test_a_file_is_imported_once(contents, imports, review, capsys):
    file = saved(contents, all_given(contents))
    assert imports(file) == 0
    before = rows(review)
    assert imports(file) == 1
    assert "were imported before, as those of Ada" in capsys.readouterr().err
    assert imports(file, "--reviewer", "Bo") == 1
    assert rows(review) == before
    assert rows(review, "Bo") == []


def test_a_later_file_adds_what_is_new(contents, imports, review, capsys):
    verdicts = all_given(contents)
    items = list(verdicts)
    assert imports(saved(contents, {item: verdicts[item] for item in items[:5]})) == 0
    assert imports(saved(contents, verdicts)) == 0
    assert "7 verdicts of Ada imported" in (out := capsys.readouterr().out)
    assert "5 were imported before and are unchanged" in out
    assert len(rows(review)) == N


def test_a_newer_verdict_stays(contents, imports, review, capsys):
    first = contents.items[0]
    with ReviewStore(review, reviewer="Ada") as store:
        store.give(first.subject, Verdict.CANNOT_TELL, note="in the window, now")
    assert imports(saved(contents, {first.item: Verdict.BOTH_WRONG})) == 0
    assert f"newer verdicts of the reviewer stay: item {first.item}" in capsys.readouterr().out
    (row,) = rows(review)
    assert (row["verdict"], row["note"]) == ("cannot-tell", "in the window, now")


def test_an_earlier_verdict_is_replaced_and_stays_in_the_history(contents, imports, review):
    first = contents.items[0]
    assert imports(saved(contents, {first.item: Verdict.BOTH_WRONG})) == 0
    assert imports(saved(contents, {first.item: Verdict.CANNOT_TELL}, second=9)) == 0
    assert [row["verdict"] for row in rows(review)] == ["cannot-tell"]
    with ReviewStore(review, reviewer="Ada") as store:
        assert len(store.history(first.subject)) == 2


def test_what_was_undone_in_the_window_stays_undone(contents, imports, review):
    given = dict(list(all_given(contents).items())[:2])
    assert imports(saved(contents, given)) == 0
    with ReviewStore(review, reviewer="Ada") as store:
        store.withdraw(store.verdicts()[0])
    assert imports(saved(contents, all_given(contents))) == 0
    assert len(rows(review)) == N - 1


def test_of_two_items_on_one_object_the_later_verdict_stands(contents, imports, review):
    twice = (contents.items[0], replace(contents.items[0], item="again"))
    given = {"again": Verdict.BOTH_WRONG, contents.items[0].item: Verdict.CANNOT_TELL}
    assert imports(saved(replace(contents, items=twice), given)) == 0
    assert [row["verdict"] for row in rows(review)] == ["cannot-tell"]


def test_a_removed_object_keeps_its_verdict_by_its_place(contents, imports, review, capsys):
    gone = Target(Side.REFERENCE, 77, replace(contents.items[0].target.fingerprint, area_px=1))
    far = replace(gone, fingerprint=replace(gone.fingerprint, centroid_y_px=1e4))
    item = replace(contents.items[0], item="gone", target=far)
    file = saved(
        replace(contents, items=(*contents.items, item)),
        {**all_given(contents), "gone": Verdict.BOTH_WRONG},
    )
    assert imports(file) == 0
    assert "not in the cohort any more, imported by their places: item gone" in (
        capsys.readouterr().out
    )
    assert rows(review)[-1]["centroid_y_px"] == 1e4
    assert len(rows(review)) == N + 1


def another_image(root, tmp_path):
    other = shutil.copytree(root, tmp_path / "other")
    for region in REGIONS:
        path = other / ANNOTATIONS / region.patient / f"{region.name}.svs"
        write_svs(path, noise(*region.shape, seed=99), mpp=MPP)
    return other


def test_a_copy_of_the_cohort_is_the_same_cohort(small_folder, contents, imports, review, tmp_path):
    other = shutil.copytree(small_folder, tmp_path / "copy")
    assert imports(saved(contents, all_given(contents)), cohort=other) == 0
    assert len(rows(review)) == N


def test_another_cohort_is_refused(
    small_folder, contents, imports, review, nuclei_sample, tmp_path, capsys
):
    file = saved(contents, all_given(contents))
    for cohort, reason in {
        nuclei_sample: "it has no region",
        another_image(small_folder, tmp_path): "its image of region",
    }.items():
        assert imports(file, cohort=cohort) == 1
        message = capsys.readouterr().err
        assert reason in message
        assert "Nothing was imported; choose the cohort" in message
    strange = [
        replace(item, target=replace(item.target, fingerprint=place))
        for item in contents.items
        for place in [replace(item.target.fingerprint, centroid_x_px=5e4)]
    ]
    assert imports(saved(replace(contents, items=tuple(strange)), all_given(contents))) == 1
    assert f"{N} of the {N} judged objects are not in it" in capsys.readouterr().err
    unknown = tuple(replace(item, team="gamma") for item in contents.items)
    assert imports(saved(replace(contents, items=unknown), all_given(contents))) == 1
    assert "it has no team gamma" in capsys.readouterr().err
    assert not review.exists()


def test_a_name_is_needed(contents, imports, review, capsys):
    file = saved(contents, all_given(contents), reviewer=" ")
    assert imports(file) == 2
    assert "give --reviewer NAME" in capsys.readouterr().err
    assert imports(file, "--reviewer", "Bo") == 0
    assert len(rows(review, "Bo")) == N


def test_the_usual_review_file_is_the_one_of_the_window(
    small_folder, contents, tmp_path, monkeypatch
):
    cohort = shutil.copytree(small_folder, tmp_path / "copy")
    path = write_file(tmp_path / "verdicts.json", saved(contents, all_given(contents)))
    monkeypatch.chdir(cohort)
    assert main(["import-verdicts", str(path)]) == 0  # the current folder is the cohort
    assert len(rows(cohort / "panoptic-review.sqlite")) == N


# --- plans ---------------------------------------------------------------------------------------


@pytest.fixture
def planned(contents):
    tiles = tuple(
        PackageItem(str(number), contents.items[0].team, contents.items[0].region, None)
        for number in (101, 102)
    )
    return Contents("cohort", None, "plan", {}, (*contents.items, *tiles))


def test_a_single_square_is_counted_in_the_singular(planned, imports, capsys):
    one = Contents("cohort", None, "plan", {}, planned.items[:-1])
    assert imports(saved(one, {**all_given(one), "101": 3})) == 2
    assert "answers on 1 square of background" in capsys.readouterr().err


def test_the_table_for_estimates(planned, imports, review, tmp_path, capsys):
    given = {**all_given(planned), "101": 3, "102": None}
    file, path = saved(planned, given), tmp_path / "verdicts.csv"
    assert imports(file) == 2  # the counts would be lost
    assert "answers on 2 squares of background" in capsys.readouterr().err
    assert imports(file, "--verdicts", str(path)) == 0
    assert len(rows(review)) == N
    found = csv_rows(path)
    assert list(found[0]) == ["item", "verdict", "count"]
    assert found[0] == {"item": "1", "verdict": "annotation-right", "count": ""}
    assert found[-2:] == [
        {"item": "101", "verdict": "", "count": "3"},
        {"item": "102", "verdict": "cannot-tell", "count": ""},
    ]
    assert len(found) == N + 2


def test_a_table_is_not_replaced_without_a_word(planned, imports, review, tmp_path, capsys):
    file, path = saved(planned, {"1": Verdict.BOTH_WRONG}), tmp_path / "verdicts.csv"
    path.write_text("mine")
    assert imports(file, "--verdicts", str(path)) == 1
    assert "--force" in capsys.readouterr().err
    assert path.read_text() == "mine"
    assert not review.exists()
    assert imports(file, "--verdicts", str(path), "--force", "--table-only") == 0
    assert len(csv_rows(path)) == 1
    assert not review.exists()


def test_without_a_plan_there_is_no_table(contents, imports, tmp_path, capsys):
    file = saved(contents, all_given(contents))
    assert imports(file, "--verdicts", str(tmp_path / "verdicts.csv")) == 2
    assert "not made from a plan" in capsys.readouterr().err
    assert imports(file, "--table-only") == 2
    assert "give --verdicts CSV" in capsys.readouterr().err
