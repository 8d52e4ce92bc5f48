"""Files of verdicts: those of the page are read, all others are refused with a reason."""

import json

import pytest

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.review.identity import Fingerprint
from napari_panoptic.review.package.answers import read_answers
from napari_panoptic.review.package.contents import Contents, PackageItem, Target, package_id, seal
from napari_panoptic.values.vocabulary import Side, Verdict
from tests.support.review_packages import saved, signed, write_file

OBJECT = Target(Side.REFERENCE, 3, Fingerprint("E", 5.0, 6.0, 30))
CONTENTS = Contents(
    "cohort",
    None,
    "plan",
    {},
    (
        PackageItem("1", "T", "R", OBJECT),
        PackageItem("2", "T", "R", None),
        PackageItem("3", "T", "R", OBJECT),
    ),
)
GIVEN = {"1": Verdict.BOTH_WRONG, "2": 4}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "verdicts.json"


def test_a_file_is_read(path):
    file = saved(CONTENTS, {"3": Verdict.CANNOT_TELL, **GIVEN}, note='é 𝄞 "a"\n\\ \x7f\u2028')
    answers = read_answers(write_file(path, file))
    assert answers.contents == CONTENTS
    assert answers.reviewer == "Ada"
    # In the order of the package, not of the file.
    assert [(a.item.item, a.verdict, a.count) for a in answers.answers] == [
        ("1", Verdict.BOTH_WRONG, None),
        ("2", None, 4),
        ("3", Verdict.CANNOT_TELL, None),
    ]
    assert answers.answers[0].note == 'é 𝄞 "a"\n\\ \x7f\u2028'
    assert answers.answers[0].given_at.isoformat() == "2026-03-01T10:00:01.125000+00:00"


def edit_verdict(file):
    file["verdicts"][0]["verdict"] = "prediction-right"


def edit_note(file):
    file["verdicts"][0]["note"] = "?"


def edit_count(file):
    file["verdicts"][1]["count"] = 5


def move_a_letter(file):
    """The same letters in the same order, on another side of a border."""
    file["verdicts"][0] |= {"item": "", "verdict": "1both-wrong"}


def remove_one(file):
    del file["verdicts"][0]


def repeat_one(file):
    file["verdicts"].append(file["verdicts"][0])


def edit_reviewer(file):
    file["reviewer"] = "Bo"


def edit_items(file):
    others = Contents("cohort", None, "plan", {}, CONTENTS.items[::-1])
    file["items"] = seal(others)


def edit_package(file):
    file["package"] = "0" * 32


EDITS = (
    *(edit_verdict, edit_note, edit_count, move_a_letter, remove_one, repeat_one, edit_reviewer),
    *(edit_items, edit_package),
)


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_an_altered_file_is_refused(edit, path):
    file = saved(CONTENTS, GIVEN)
    edit(file)
    with pytest.raises(UnreadableFileError, match=r"altered.*Nothing was imported.*save the"):
        read_answers(write_file(path, file))


def two_answers(file):
    file["verdicts"].append(file["verdicts"][0] | {"verdict": "cannot-tell"})


def unknown_item(file):
    file["verdicts"][0]["item"] = "99"


def unknown_verdict(file):
    file["verdicts"][0]["verdict"] = "right"


def no_verdict(file):
    file["verdicts"][0]["verdict"] = ""


def counted_object(file):
    file["verdicts"][0]["count"] = 1


def judged_tile(file):
    file["verdicts"][1] |= {"verdict": "both-wrong", "count": None}


def negative_count(file):
    file["verdicts"][1]["count"] = -1


def time_without_zone(file):
    file["verdicts"][0]["given_at"] = "2026-03-01T10:00:00"


def other_items(file):
    file["items"] = "AAAA"
    file["package"] = package_id("AAAA")


@pytest.mark.parametrize(
    "edit",
    [
        *(two_answers, unknown_item, unknown_verdict, no_verdict, counted_object, judged_tile),
        *(negative_count, time_without_zone, other_items),
    ],
    ids=lambda edit: edit.__name__,
)
def test_a_digest_made_afterwards_does_not_help_what_no_page_offers(edit, path):
    file = saved(CONTENTS, GIVEN)
    edit(file)
    with pytest.raises(UnreadableFileError, match="altered"):
        read_answers(write_file(path, signed(file)))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[1, 2]",
        b"[" * 100_000,
        json.dumps({"format": "napari-panoptic verdicts"}).encode(),
    ],
)
def test_other_files_are_refused(content, path):
    path.write_bytes(content)
    with pytest.raises(UnreadableFileError, match="a file of verdicts that the page"):
        read_answers(path)


def test_a_newer_version_is_refused(path):
    file = saved(CONTENTS, GIVEN)
    with pytest.raises(UnreadableFileError, match=r"version 2; update the program"):
        read_answers(write_file(path, signed(file | {"version": 2})))


def test_a_huge_file_is_not_read(path):
    with path.open("wb") as file:
        file.truncate(2**24 + 1)
    with pytest.raises(UnreadableFileError, match="up to 16 MiB"):
        read_answers(path)
