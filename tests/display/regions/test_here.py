"""What workers get of a region, also of one under edit."""

import numpy as np
import pytest

from napari_panoptic.display.regions.here import present
from napari_panoptic.explain.consensus import consensus
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.session import Session
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.vocabulary import Side


@pytest.fixture(scope="module")
def session(nuclei_sample):
    """Load the first region of the sample, without a window."""
    cohort = open_cohort(nuclei_sample)
    session = Session(cohort)
    name = cohort.regions[0].name
    request = session.request(region_name=name)
    session.deliver(request, load_region(cohort, name, session.settings))
    return session


def test_without_edits_evaluations_are_used_as_they_are(session):
    here = present(session)
    assert not here.pairs
    assert here.complete().evaluations == dict(session.snapshot.evaluations)


def test_with_edits_all_teams_meet_the_edited_reference(session):
    before = present(session).complete().evaluations
    team = session.team
    ids = session.snapshot.reference.ids
    y, x = np.nonzero(session.snapshot.reference.index == 1)
    session.edit(Side.REFERENCE, y, x, 0)
    try:
        done = present(session).complete().evaluations
        result = consensus(done)
        assert ids[0] not in result.reference.ids
        assert len(result.reference) == len(before[team].outcomes.reference) - 1
        pair = LabelPair(
            session.edited_labels(Side.REFERENCE),
            before[team].pair.prediction,
            before[team].pair.ambiguous,
            before[team].pair.mpp,
        )
        assert done[team].metrics.pq == evaluate(pair, session.settings).metrics.pq
        assert present(session, (team,)).teams == (team,)
    finally:
        session.discard_edits()
