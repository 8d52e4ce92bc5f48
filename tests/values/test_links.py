"""Links to objects: they come back as they were, and hostile ones are refused in words."""

from __future__ import annotations

import random
import string
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from napari_panoptic.values.cohort import MONUSAC_CLASSES, Cohort, Region, Source, Team
from napari_panoptic.values.conventions import CONVENTIONS
from napari_panoptic.values.links import (
    LONGEST,
    MOST_OBJECTS,
    CohortKey,
    LinkError,
    LinkMaker,
    ObjectLink,
    check_link,
)
from napari_panoptic.values.settings import (
    AmbiguousPolicy,
    EvaluationSettings,
    Matching,
    Outlines,
    Overlaps,
    Restoration,
)
from napari_panoptic.values.vocabulary import Side

LETTERS = [*string.ascii_letters, *string.digits, *"\\ ._-%/@=+&?#'\"<>(),;:!$*~[]{}|^`"]
FURTHER = [*"äßÅéèñ日本語한국ا́مΩ🙂", "\udcff", "e\u0301"]
KEY = CohortKey("monusac", "5f3a91c2", "77ab3e")
HEAD = "panoptic:monusac@5f3a91c2-77ab3e"


def cohort_of(
    regions: tuple[str, ...] = ("A_1", "A_2", "B_1"),
    teams: tuple[str, ...] = ("alpha", "Team B"),
    root: str = "/data/one",
    name: str = "one",
) -> Cohort:
    return Cohort(
        name=name,
        root=Path(root),
        scheme=MONUSAC_CLASSES,
        regions=tuple(Region(own, own[0], None, None) for own in regions),
        teams=tuple(map(Team, teams)),
        predictions={},
    )


def random_name(chance: random.Random) -> str:
    letters = LETTERS if chance.random() < 0.7 else LETTERS + FURTHER
    name = "".join(chance.choices(letters, k=chance.randint(1, 25)))
    name = chance.choice(["Re", "Ω", "team "]) + name
    return name.replace("/.", "/").replace("\\.", "\\")  # a path otherwise


def random_settings(chance: random.Random) -> EvaluationSettings:
    if chance.random() < 0.3:
        return EvaluationSettings()
    settings = EvaluationSettings(
        matching=chance.choice([*Matching]),
        iou_threshold=chance.choice([0.5, 0.4, chance.random() or 0.1, 1e-7]),
        ambiguous=chance.choice([*AmbiguousPolicy]),
        restoration=chance.choice([*Restoration]),
        radius=chance.randint(-20, 20),
        distances=chance.random() < 0.5,
        outlines=chance.choice([*Outlines]),
        near_iou=chance.choice([0.1, chance.random() or 0.1]),
    )
    if chance.random() < 0.5:
        return settings.replaced(overlaps=Overlaps.KEEP)
    names = [*CONVENTIONS, "monusac-2020-as-run+matching+per-patient"]
    return settings.replaced(convention=chance.choice(names))


def random_link(chance: random.Random) -> ObjectLink:
    key = CohortKey.of(cohort_of(name=random_name(chance)))
    region = random_name(chance) if chance.random() < 0.9 else ""
    team = random_name(chance) if region and chance.random() < 0.9 else ""
    count = chance.choice([0, 1, 1, 1, 2, 5, 40]) if region else 0
    ids = chance.sample(range(1, 10**6), count)
    if count == 1 and chance.random() < 0.1:
        ids = [2**63 - 1]
    objects = tuple((chance.choice([*Side]), id_) for id_ in ids)
    source = chance.choice([None, None, Source.SUBMISSION, Source.GEOJSON])
    return ObjectLink(key, region, team, objects, random_settings(chance), source)


def test_a_thousand_random_states_come_back() -> None:
    chance = random.Random(2024)  # noqa: S311
    for _ in range(1000):
        link = random_link(chance)
        assert ObjectLink.parse(link.text) == link
        assert ObjectLink.parse(f" {link.text}\n").text == link.text
        assert link.text.isascii()
        assert link.text.isprintable()
        assert not set(link.text) & set(" '\"<>&?#;|$`*()[]{}\\!")  # safe in shells and pages


def test_a_link_is_short_and_can_be_read() -> None:
    link = ObjectLink(
        KEY,
        "TCGA-55-1594_1",
        "Team B",
        ((Side.PREDICTION, 3), (Side.REFERENCE, 14), (Side.REFERENCE, 12)),
        EvaluationSettings(iou_threshold=0.4, convention="monusac-2020-as-run"),
        Source.SUBMISSION,
    )
    assert link.text == (
        f"{HEAD}/TCGA-55-1594_1/Team%20B/reference=14+12/prediction=3/iou-threshold=0.4/"
        "convention=monusac-2020-as-run/source=submission"
    )
    assert ObjectLink(KEY, "A_1", "alpha", ((Side.REFERENCE, 12),)).text == (
        f"{HEAD}/A_1/alpha/reference=12"
    )


HOSTILE = {
    "": "begins with 'panoptic:'",
    "http://example.org/a": "begins with 'panoptic:'",
    "PANOPTIC:one@5f3a91c2-77ab3e": "begins with 'panoptic:'",
    "panoptic:": "expected COHORT@FINGERPRINT",
    "panoptic:/home/other/cohort@5f3a91c2-77ab3e": "expected COHORT@FINGERPRINT",
    "panoptic:%2Fhome%2Fother@5f3a91c2-77ab3e": "a path",
    "panoptic:..@5f3a91c2-77ab3e": "a path",
    "panoptic:%7Eother@5f3a91c2-77ab3e": "a path",
    "panoptic:one@5F3A91C2-77ab3e": "expected a fingerprint",
    "panoptic:one@5f3a91c2": "expected a fingerprint",
    "panoptic:one@5f3a91c2-77ab3e-1": "expected a fingerprint",
    f"{HEAD}/%2Fetc%2Fpasswd": "found the path '/etc/passwd'",
    f"{HEAD}/..%2F..%2Fother": "found the path",
    f"{HEAD}/A%2F..%2F..%2Fother": "found the path",
    f"{HEAD}/~other%2Ffile": "found the path",
    f"{HEAD}/C%3A%5Cother": "found the path",
    f"{HEAD}/A_1/%5C%5Chost%5Cshare": "found the path",
    f"{HEAD}/A\x00_1": r"found '\\x00'",
    f"{HEAD}/A\x1b[2J": r"found '\\x1b' and '\['",
    f"{HEAD}/A\n_1": r"found '\\n'",
    f"{HEAD}/A\u202e_1": r"found '\\u202e'",
    f"{HEAD}/A%00_1": "control characters",
    f"{HEAD}/A%1B%5B2J": "control characters",
    f"{HEAD}/A%0A_1": "control characters",
    f"{HEAD}/A_1/%C2%85": "control characters",
    f"{HEAD}/A_1/%E2%80%A8": "control characters",
    f"{HEAD}/A%ZZ": "two digits",
    f"{HEAD}/A%": "two digits",
    f"{HEAD}/A%c3%a4": "two digits",
    f"{HEAD}/A%FF%FE": "UTF-8",
    f"{HEAD}/A%C0%AF": "UTF-8",  # an overlong slash
    f"{HEAD}/A_1/alpha/more": "in this order",
    f"{HEAD}//alpha": "in this order",
    f"{HEAD}/A_1/": "in this order",
    f"{HEAD}/reference=1/A_1": "in this order",
    f"{HEAD}/reference=1": "names their region",
    f"{HEAD}/A_1/alpha/reference=": "expected ids",
    f"{HEAD}/A_1/alpha/reference=0": "expected ids",
    f"{HEAD}/A_1/alpha/reference=-1": "expected ids",
    f"{HEAD}/A_1/alpha/reference=1.5": "expected ids",
    f"{HEAD}/A_1/alpha/reference=1+": "expected ids",
    f"{HEAD}/A_1/alpha/reference=9223372036854775808": "expected ids",
    f"{HEAD}/A_1/alpha/reference={'9' * 3000}": "expected ids",
    f"{HEAD}/A_1/alpha/reference=1+1": "an object twice",
    f"{HEAD}/A_1/alpha/reference=1/reference=2": "'reference=' twice",
    f"{HEAD}/A_1/alpha/reference={'+'.join(map(str, range(1, MOST_OBJECTS + 2)))}": "up to 200 obj",
    f"{HEAD}/A_1/alpha/referenze=1": "unknown entry 'referenze='; known are reference",
    f"{HEAD}/A_1/alpha/=1": "unknown entry '='",
    f"{HEAD}/A_1/__class__=1": "unknown entry",
    f"{HEAD}/A_1/iou-threshold=nan": "unknown value",
    f"{HEAD}/A_1/iou-threshold=1_0": "unknown value",
    f"{HEAD}/A_1/iou-threshold=1": "must lie between 0 and 1",
    f"{HEAD}/A_1/iou-threshold=1e999": "must lie between 0 and 1",
    f"{HEAD}/A_1/radius=1e300": "must be a whole number",
    f"{HEAD}/A_1/radius=1e999": "unknown value",
    f"{HEAD}/A_1/radius=1.5": "unknown value",
    f"{HEAD}/A_1/distances=1": "unknown value",
    f"{HEAD}/A_1/ambiguous=%2Fetc": "unknown value",
    f"{HEAD}/A_1/ambiguous=none": "ambiguous must be one of",
    f"{HEAD}/A_1/convention=none": "unknown protocol 'none'",
    f"{HEAD}/A_1/source=..%2Fother": "names no format",
    HEAD + "/A" * LONGEST: f"up to {LONGEST} characters, found",
    "x" * 10**7: f"up to {LONGEST} characters, found 10000000",
}


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[1:40])
def test_hostile_links_are_refused_in_words(text: str) -> None:
    with pytest.raises(LinkError, match=HOSTILE[text]) as raised:
        ObjectLink.parse(text)
    message = str(raised.value)
    assert message.isprintable()
    assert len(message) < 1000
    assert message.endswith((".",))  # what to do


def test_random_texts_are_links_or_refused() -> None:
    chance = random.Random(7)  # noqa: S311
    for _ in range(3000):
        text = list(random_link(chance).text)
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(text))
            text[place] = chance.choice([chr(chance.randrange(256)), "", "%", "/", "=", "@", "+"])
        try:
            link = ObjectLink.parse("".join(text))
        except LinkError:
            continue
        assert ObjectLink.parse(link.text) == link


def test_what_cannot_be_linked_is_refused() -> None:
    with pytest.raises(LinkError, match=r"the region 'A.*control characters.*Rename the region"):
        ObjectLink(KEY, "A\x07")
    with pytest.raises(LinkError, match="up to 200 objects, found 201"):
        ObjectLink(KEY, "A", "t", tuple((Side.REFERENCE, n) for n in range(1, 202)))
    with pytest.raises(LinkError, match="Select fewer objects"):
        ObjectLink(KEY, "A", "t", tuple((Side.REFERENCE, 2**62 + n) for n in range(1, 201)))


# --- fingerprints ---------------------------------------------------------------------------------


def test_a_copy_elsewhere_has_the_same_fingerprint() -> None:
    one = CohortKey.of(cohort_of())
    other = CohortKey.of(
        cohort_of(("B_1", "A_2", "A_1"), ("Team B", "alpha"), root="/home/else/copy", name="copy")
    )
    assert one.fingerprint == other.fingerprint
    assert one.name == "one"
    assert one.differences(other) == ""


def test_other_regions_and_teams_have_other_fingerprints() -> None:
    one = CohortKey.of(cohort_of())
    assert one.differences(CohortKey.of(cohort_of(teams=("alpha",)))) == "teams"
    assert one.differences(CohortKey.of(cohort_of(regions=("A_1",)))) == "regions"
    fewer = CohortKey.of(cohort_of(regions=("A_1",), teams=()))
    assert one.differences(fewer) == "regions and teams"


def test_letters_of_two_characters_do_not_matter() -> None:
    one, other = cohort_of(regions=("R\u00e9_1",)), cohort_of(regions=("Re\u0301_1",))
    assert CohortKey.of(one) == CohortKey.of(other)
    assert ObjectLink(KEY, "Re\u0301_1") == ObjectLink(KEY, "R\u00e9_1")


@pytest.mark.parametrize(
    ("name", "known"),
    [("PanNuke 1/3", "PanNuke 1-3"), ("../../x", "-..-x"), ("~root", "root"), ("a\x1bb", "a-b")],
)
def test_the_name_of_a_cohort_is_never_a_path(name: str, known: str) -> None:
    key = CohortKey.of(cohort_of(name=name))
    assert key.name == known
    assert ObjectLink.parse(ObjectLink(key).text).cohort == key


# --- many links -----------------------------------------------------------------------------------


def test_links_of_a_table() -> None:
    maker = LinkMaker.of(cohort_of(), EvaluationSettings(radius=2, distances=False), Source.GEOJSON)
    text = maker.text("A_1", "Team B", "reference", 12)
    link = maker.link("A_1", "Team B", [(Side.REFERENCE, 12)])
    assert text == link.text == maker.text("A_1", "Team B", Side.REFERENCE, 12)
    assert text.endswith("/A_1/Team%20B/reference=12/radius=2/source=geojson")
    assert maker.text("A\x07", "alpha", "reference", 12) == ""
    assert maker.text("A_1", "alpha", "reference", 0) == ""


def test_links_to_several_objects() -> None:
    maker = LinkMaker.of(cohort_of())
    places = [("A_1", Side.PREDICTION, 3), ("A_1", Side.REFERENCE, 2), ("A_1", Side.REFERENCE, 2)]
    names = [SimpleNamespace(team="alpha", region=r, side=s, id=n) for r, s, n in places]
    assert maker.to(names).endswith("/A_1/alpha/reference=2/prediction=3")
    assert [id_ for _, id_ in maker.to_all(names[::-1]).objects] == [2, 3]
    further = SimpleNamespace(team="alpha", region="A_2", side=Side.REFERENCE, id=1)
    assert maker.to([*names, further]) == maker.to([]) == ""
    with pytest.raises(LinkError, match="one region and team, found 2 places"):
        maker.to_all([*names, further])


def test_a_link_is_checked_with_a_cohort() -> None:
    link = ObjectLink(KEY, "A_1", "Team B")
    assert check_link(link, cohort_of()) == link
    for other, message in (
        (replace(link, region="A_9"), "no region 'A_9'.*did you mean A_2 or A_1. Open"),
        (replace(link, team="Team C"), f"no team 'Team C'.*the link, “{KEY.name}”"),
        (replace(link, source=Source.GEOJSON), "format 'geojson', found none"),
    ):
        with pytest.raises(LinkError, match=message):
            check_link(other, cohort_of())
