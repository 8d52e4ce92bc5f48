"""Used for long, a window leaves nothing behind; ``benchmarks.long_use`` is the long form."""

from benchmarks.long_use import census, use


def test_switches_and_strokes_leave_nothing_behind(open_desk, wait_until):
    desk = open_desk
    regions = len(desk.session.cohort.regions)
    use(desk, regions, 30, seed=1)  # every region was seen, everything made that is made once
    wait_until(lambda: desk.is_settled)
    before = census(desk).counts
    for seed in (2, 3):
        use(desk, regions, 60, seed=seed)
    wait_until(lambda: desk.is_settled)
    now = census(desk).counts
    grown = {name: (before[name], n) for name, n in now.items() if n > before[name]}
    assert grown == {}
    assert now["Session"] == 1
    assert now["LiveEvaluation"] == 0  # edits were discarded
