"""List annotations that may be wrong, since several teams agree on something else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.common.records import fields_of
from napari_panoptic.common.text import counted
from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.nuclei.regions.looks import Teams
from napari_panoptic.questions.answer import Answer, AnswerRecord, AnswerTable, UnansweredError
from napari_panoptic.questions.engines.suspects import (
    LIKELY_SCORE,
    Agreement,
    Suspect,
    agreement,
    find_suspects,
)
from napari_panoptic.questions.question import Gathered, Question, option, why_nothing
from napari_panoptic.tables.columns import (
    CellContent,
    Record,
    TableColumn,
    TableSpec,
    link_column,
    name_column,
    number,
    unshown,
    words,
)
from napari_panoptic.tables.markup import named
from napari_panoptic.values.cohort import Cohort, Region
from napari_panoptic.values.links import LinkMaker
from napari_panoptic.values.settings import EvaluationSettings, Restoration
from napari_panoptic.values.vocabulary import Side

SUSPECT_SETTINGS = EvaluationSettings(restoration=Restoration.BORDER_DILATED)
"""The default settings. They restore the borders that teams draw over objects: outlines count."""
CAUTION = "A suspect is not an error: teams can make the same errors. Look at the image."
NONE = "No suspects: the teams agree on nothing but the annotation."


def _classes(row: Record) -> CellContent:
    """Return the class in the annotation and, behind an arrow, the one that teams predict."""
    return CellContent(" → ".join(filter(None, (row["class"], row["suggested_class"]))))


def _agreeing(row: Record) -> CellContent:
    return CellContent(named(row["teams"].replace(" | ", ", ")))


SUSPECTS = TableSpec(
    "suspects.csv",
    "suspect, the most suspect first",
    [
        number("score", about="from 0 to 1; higher is more suspect"),
        words("kind", about="overlooked, badly-located, wrong-class, split or merged"),
        name_column("patient"),
        name_column("region"),
        unshown("side", about="prediction if the annotation overlooks the object, else reference"),
        unshown("team", about="of the prediction; empty for a reference object"),
        unshown("id", about="of the object"),
        unshown("other_ids", about="of a split object, separated by spaces"),
        TableColumn("class", _classes, ("class",), "of the object"),
        unshown("suggested_class", about="if the class is suspect"),
        TableColumn("teams", _agreeing, ("teams",), "which agree, separated by ` | `"),
        unshown("centroid_y_px", "centroid_x_px"),
        unshown("reason", about="in words"),
        link_column(),
    ],
    "Places where teams agree with each other, but not with the annotation. The score orders them; "
    "it is no probability.",
)


@dataclass(frozen=True, eq=False)
class CohortSuspects:
    """The suspects of a cohort."""

    #: The most suspect first.
    suspects: tuple[Suspect, ...]
    #: Number of regions that were compared.
    regions: int
    #: Number of their reference objects.
    objects: int
    #: Warnings about the inputs, and the reasons why regions were left out.
    findings: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True)
class Suspects(Question):
    """Annotations that may be wrong."""

    title = "Suspects"
    heading = "Annotations that may be wrong"
    key = "Alt-u"
    about = (
        "Compare what several teams agree on with the annotation, and write suspects.csv (the most "
        "suspect first) and suspects.json: objects that the annotation misses, outlines badly, "
        "assigns to another class, splits or merges. No review is needed. Suspects are not errors: "
        "teams can make the same errors. Exit status: 0 done, 1 nothing could be compared, 2 wrong "
        "arguments."
    )
    verb = "Search"
    hint = (
        "Press “Search” to find where several teams agree with each other, but not with the "
        "annotation, over the whole cohort."
    )
    tables = (SUSPECTS,)
    done = "compared"
    takes_pair = True
    looks_at_once = True
    own_settings = SUSPECT_SETTINGS

    settings: EvaluationSettings = SUSPECT_SETTINGS
    teams: tuple[str, ...] = option(
        "names of two or more teams, separated by commas (default: all but the annotation's own "
        "colour-coded version)",
        metavar="A,B",
    )

    @classmethod
    def suited(cls, settings: EvaluationSettings) -> EvaluationSettings:
        """Return the settings of the search, which only follow the ambiguous policy."""
        return SUSPECT_SETTINGS.replaced(
            ambiguous=settings.ambiguous, ambiguous_share=settings.ambiguous_share
        )

    def why_not(self, cohort: Cohort) -> str:
        """Return why the teams cannot be compared; empty if they can."""
        if len(self.teams) > 1:
            return ""
        found = counted(len(self.teams), "team")
        return f"Suspects are found where two or more teams agree; found {found}. Add another one."

    @property
    def matching(self) -> EvaluationSettings:
        """The settings without distances."""
        return self.settings.replaced(distances=False)

    def look(
        self, region: Region, teams: Teams, image: SlideImage | None
    ) -> Agreement | Finding | None:
        """Compare the teams in a region."""
        evaluations = {
            team: own.evaluation for team, own in teams.items() if own.evaluation is not None
        }
        is_team_at_fault = all(own.labels is None and own.of_team for own in teams.values())
        if not evaluations and not is_team_at_fault:
            return None
        if len(evaluations) < 2:
            message = (
                f"region {region.name} is left out: it has readable predictions of "
                f"{counted(len(evaluations), 'team')}, and the search for suspects needs two"
            )
            return Finding(FindingKind.MISSING, message, region=region.name)
        return agreement(evaluations, patient=region.patient, region=region.name)

    def joined(self, cohort: Cohort, gathered: Gathered) -> CohortSuspects:
        """Rank the places where the teams agree on something else."""
        if not gathered.parts:
            raise UnansweredError(why_nothing(cohort, self.teams), gathered.findings)
        return CohortSuspects(
            suspects=find_suspects(gathered.parts),
            regions=len(gathered.parts),
            objects=sum(len(own.reference) for own in gathered.parts),
            findings=gathered.findings,
        )

    def answered(
        self, cohort: Cohort, gathered: CohortSuspects, progress: Progress = UNWATCHED
    ) -> Answer:
        """List the suspects."""
        suspects = gathered.suspects
        links = LinkMaker.of(cohort, self.settings, self.source)
        rows = [_row(suspect, links) for suspect in suspects]
        return Answer(
            headline=_headline(gathered) if suspects else NONE,
            notes=(CAUTION,),
            tables=(
                AnswerTable(
                    SUSPECTS,
                    SUSPECTS.frame(rows),
                    lambda row: object_of(suspects[row], cohort.team_names),
                    has_others=True,
                    tooltip=lambda row: reason_of(suspects[row]),
                    is_of_objects=True,
                    printed=0,
                ),
            ),
            plots=(),
            record=AnswerRecord(
                {
                    "cohort": cohort.name,
                    "settings": self.settings.as_record(),
                    "teams": list(self.teams),
                    "regions": gathered.regions,
                    "reference_objects": gathered.objects,
                },
                gathered.findings,
                self.teams,
            ),
        )


def object_of(suspect: Suspect, teams: Sequence[str]) -> FailureSet:
    """Return the object that shows a suspect, beside each team where that has one of its own.

    Parameters
    ----------
    suspect
        The suspect.
    teams
        All teams of the cohort, beside which a reference object can be shown.
    """
    region, side = suspect.region, suspect.side
    if side is Side.REFERENCE:
        ids = dict.fromkeys(teams, suspect.id)
    else:
        ids = dict(zip(suspect.teams, suspect.team_ids, strict=True))
    by_team = {team: FailureName(team, region, side, id_) for team, id_ in ids.items()}
    return FailureSet(
        f"Suspects · {suspect.kind}",
        frozenset({by_team[suspect.team or suspect.teams[0]]}),
        agreeing={
            name: tuple(other for other in suspect.teams if other != team)
            for team, name in by_team.items()
        },
        instead=by_team,
    )


def reason_of(suspect: Suspect) -> str:
    """Return the object and the reason why it is suspect."""
    return f"{suspect.region}, {suspect.side} {suspect.id}: {suspect.sentence}"


def _headline(found: CohortSuspects) -> str:
    likely = Counter(suspect.kind for suspect in found.suspects if suspect.score >= LIKELY_SCORE)
    kinds = ", ".join(f"{number} {kind}" for kind, number in likely.most_common())
    return (
        f"{counted(likely.total(), 'suspect')} (score {LIKELY_SCORE} or more) in "
        f"{counted(found.regions, 'region')} with "
        f"{counted(found.objects, 'annotated object')}" + (f": {kinds}." if kinds else ".")
    )


def _row(suspect: Suspect, links: LinkMaker) -> Record:
    return {
        **fields_of(suspect, "score", "kind", "patient", "region", "side"),
        "team": suspect.team or "",
        "id": suspect.id,
        "other_ids": " ".join(map(str, suspect.other_ids)),
        "class": suspect.class_name,
        "suggested_class": suspect.suggested_class,
        "teams": " | ".join(suspect.teams),
        "centroid_y_px": suspect.centroid_yx_px[0],
        "centroid_x_px": suspect.centroid_yx_px[1],
        "reason": suspect.sentence,
        "link": links.to(_objects(suspect)),
    }


def _objects(suspect: Suspect) -> list[FailureName]:
    """Return the objects that a link to a suspect leads to, all pieces of a split one."""
    team = suspect.team or suspect.teams[0]
    ids = (suspect.id, *suspect.other_ids)
    return [FailureName(team, suspect.region, suspect.side, id_) for id_ in ids]
