from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dspark_deploy.plan.situation import Situation
from dspark_deploy.plan.supervised import Meant, Past
from dspark_deploy.plan.supervision import (
    Decision,
    GiveUp,
    Policy,
    Restart,
    Seen,
    Serving,
    Settle,
    Sign,
    Verdict,
    Wait,
    Watched,
    decide,
    remember,
)
from tests.samples import container

A, B = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
POLICY = Policy()
GENERATES, IDLE, BUSY = Sign("generates"), Sign("quiet"), Sign("quiet", busy=True)


def situation(head: Any = A, worker: Any = A) -> Situation:
    """A release that runs there, None for no container, or changes of one (`state="exited"`)."""
    own = {}
    for node, what in (("head", head), ("worker", worker)):
        changes = {"release": what} if isinstance(what, str) else {"release": A, **(what or {})}
        own[node] = () if what is None else (container(node, **changes),)
    return Situation(own, {"head": (), "worker": ()})


WHOLE, DEAD = situation(), {"state": "exited", "exit_code": 137}


def seen(now: float = 0.0, there: Situation = WHOLE, **changes: Any) -> Seen:
    known = Seen(now, there, Meant(A, "`dspark up` of you at noon"), sign=GENERATES if there.release == A else None)
    return replace(known, **changes)


def after(*looks: Seen, policy: Policy = POLICY) -> tuple[Watched, Decision]:
    """What is remembered and decided after the last of these looks."""
    watched = Watched(0.0)
    for look in looks:
        watched = remember(watched, look, policy)
    return watched, decide(watched, looks[-1], policy)


def decided(*looks: Seen, policy: Policy = POLICY) -> Decision:
    return after(*looks, policy=policy)[1]


@pytest.mark.parametrize(
    ("there", "changes", "kind", "why"),
    [
        pytest.param(situation(worker=DEAD), {}, "died", "the worker is exited with exit code 137", id="killed"),
        pytest.param(situation(head=DEAD, worker=DEAD), {}, "died", "head is exited", id="both"),
        pytest.param(situation(head=None, worker=None), {}, "gone", "the head has no rank", id="no-container"),
        pytest.param(
            situation(worker={**DEAD, "oom_killed": True}), {}, "out-of-memory", "lack of memory", id="oom-killed"
        ),
        pytest.param(
            situation(worker=DEAD), {"rebooted": ("worker",)}, "rebooted", "worker was started anew", id="rebooted"
        ),
    ],
)
def test_a_rank_that_is_gone_is_restarted_with_its_reason(
    there: Situation, changes: dict[str, Any], kind: str, why: str
) -> None:
    found = decided(seen(), seen(5.0, there, **changes))
    assert isinstance(found, Restart)
    assert (found.kind, found.release) == (kind, A)
    assert why in found.why


@pytest.mark.parametrize(
    ("look", "says"),
    [
        pytest.param(
            seen(there=situation(None, None), meant=Meant(None, "`dspark down` of you")), "nothing is meant", id="down"
        ),
        pytest.param(seen(meant=Meant(None, "`dspark down`")), "head and worker is left alone", id="down-and-runs"),
        pytest.param(seen(there=situation(B, B)), f"{B} on the head and {B} on the worker", id="another-release"),
        pytest.param(seen(there=situation(A, B)), f"{B} on the worker", id="mixed"),
        pytest.param(seen(there=situation(None, B)), f"{B} on the worker", id="half-of-another"),
        pytest.param(seen(there=situation(None, A), silent={"head": "no answer"}), "no answer", id="unreachable"),
        pytest.param(seen(sign=Sign("no-api", "not yet")), "not yet", id="boots"),
    ],
)
def test_it_stands_aside(look: Seen, says: str) -> None:
    found = decided(look)
    assert isinstance(found, Wait)
    assert says in found.why


def test_a_stop_that_is_owed_comes_before_everything_else() -> None:
    assert decided(seen(there=situation(None, None), owed=("worker",))) == Settle(("worker",))
    assert isinstance(decided(seen(owed=("worker",), silent={"worker": "no answer"})), Wait)


def turns(sign: Sign, seconds: int, every: int = 10) -> list[Seen]:
    return [seen(float(now), sign=sign) for now in range(every, seconds + 1, every)]


@pytest.mark.parametrize(
    ("sign", "limit_s", "kind"),
    [
        (BUSY, POLICY.wedge_s, "wedged"),
        (Sign("silent"), POLICY.wedge_s, "wedged"),
        (Sign("refuses"), POLICY.refuse_s, "refuses"),
        (Sign("no-api"), POLICY.stall_s, "stalled"),
        (Sign("other-api"), POLICY.stall_s, "stalled"),
    ],
)
def test_what_shows_no_sign_of_life_is_restarted_after_its_time(sign: Sign, limit_s: float, kind: str) -> None:
    before = decided(seen(), *turns(sign, int(limit_s) - 10))
    assert isinstance(before, Wait)
    found = decided(seen(), *turns(sign, int(limit_s)))
    assert isinstance(found, Restart)
    assert found.kind == kind


def test_one_sign_of_life_starts_the_time_anew() -> None:
    looks = [seen(), *turns(BUSY, 590), seen(595.0), *(seen(float(now), sign=BUSY) for now in range(600, 1190, 10))]
    assert not isinstance(decided(*looks), Restart)


def test_a_moment_of_quiet_in_a_busy_pair_is_no_trouble() -> None:
    watched, found = after(seen(), seen(20.0, sign=BUSY))
    assert isinstance(found, Serving)
    assert watched.trouble_at is None
    assert after(seen(), seen(40.0, sign=BUSY))[0].trouble_at == 40.0


def test_an_idle_pair_is_left_alone_for_ever() -> None:
    assert isinstance(decided(seen(), *turns(IDLE, 7200)), Serving)


def test_a_pair_that_is_idle_but_failed_when_it_was_asked_is_in_trouble() -> None:
    looks = [seen(), seen(10.0, sign=Sign("silent")), *(seen(float(now), sign=IDLE) for now in range(20, 620, 10))]
    assert isinstance(decided(*looks), Restart)


def test_a_boot_that_works_is_never_cut_short() -> None:
    looks = [seen(float(now), sign=Sign("no-api"), works=True) for now in range(0, 7200, 10)]
    assert isinstance(decided(*looks), Wait)


def test_a_rank_that_something_started_alone_takes_the_other_with_it() -> None:
    alone = situation(worker={"started_at": "2026-09-01T11:00:00.000000000Z"})
    found = decided(seen(), seen(5.0, alone, sign=Sign("silent")))
    assert isinstance(found, Restart)
    assert (found.kind, "on the worker" in found.why) == ("alone", True)
    assert isinstance(decided(seen(), seen(5.0, alone)), Serving)  # it serves: nobody touches it


def test_both_started_anew_are_a_boot() -> None:
    new = {"started_at": "2026-09-01T11:00:00.000000000Z"}
    assert isinstance(decided(seen(), seen(5.0, situation(new, new), sign=Sign("no-api"))), Wait)


def test_the_trouble_begins_when_the_node_fell_silent() -> None:
    watched, _ = after(seen(), seen(10.0, silent={"worker": "gone"}), seen(30.0, situation(worker=DEAD)))
    assert watched.trouble_at == 10.0
    assert after(seen(), seen(10.0, silent={"worker": "gone"}), seen(30.0))[0].trouble_at is None


@pytest.mark.parametrize(
    ("past", "there", "says"),
    [
        (Past(restarts=3), situation(worker=DEAD), "3 restarts within 60 min did not keep it serving"),
        (Past(failed=3, last="the worker rank ended"), situation(None, None), "failed, the last one with: the worker"),
        (
            Past(restarts=1, out_of_memory=1),
            situation(worker={**DEAD, "oom_killed": True}),
            "lack of memory again after a restart for just that",
        ),
    ],
)
def test_it_gives_up(past: Past, there: Situation, says: str) -> None:
    found = decided(seen(5.0, there, past=past))
    assert isinstance(found, GiveUp)
    assert says in found.why


def test_what_serves_is_not_given_up_whatever_came_before() -> None:
    assert isinstance(decided(seen(past=Past(restarts=9, failed=9))), Serving)


def test_a_restart_waits_for_its_pause() -> None:
    look = seen(5.0, situation(None, None), past=Past(restarts=2))
    assert isinstance(decide(Watched(0.0, trouble_at=0.0, calm_until=6.0), look, POLICY), Wait)
    assert isinstance(decide(Watched(0.0, trouble_at=0.0, calm_until=5.0), look, POLICY), Restart)


def test_the_pauses_double_up_to_the_longest() -> None:
    assert [POLICY.backoff(number) for number in (0, 1, 2, 3, 6, 5000)] == [0, 30, 60, 120, 900, 900]


VERDICTS: list[Verdict] = ["generates", "quiet", "silent", "no-api", "other-api", "refuses"]
CONTAINERS = st.sampled_from([A, B, None, DEAD, {**DEAD, "oom_killed": True}, {"started_at": "2026-09-01T11:00:00Z"}])
LOOKS = st.builds(
    Seen,
    now=st.just(0.0),
    situation=st.builds(situation, CONTAINERS, CONTAINERS),
    meant=st.sampled_from([Meant(A, "up"), Meant(B, "up"), Meant(None, "down")]),
    past=st.builds(Past, st.integers(0, 4), st.integers(0, 2), st.integers(0, 4), st.just("it failed")),
    silent=st.sampled_from([{}, {}, {"worker": "no answer"}]),
    owed=st.sampled_from([(), (), ("head",)]),
    rebooted=st.sampled_from([(), ("worker",)]),
    sign=st.builds(Sign, st.sampled_from(VERDICTS), st.just(""), st.booleans()),
    works=st.booleans(),
)


@settings(deadline=None)  # a loaded machine is no fault
@given(st.lists(st.tuples(LOOKS, st.floats(0.1, 700.0)), min_size=1, max_size=12))
def test_a_restart_is_always_of_what_is_meant_and_never_of_what_lives(story: list[tuple[Seen, float]]) -> None:
    watched, now, alive_at = Watched(0.0), 0.0, 0.0
    for look, pause in story:
        now += pause
        there = replace(look, now=now)
        watched = remember(watched, there, POLICY)
        found = decide(watched, there, POLICY)
        if there.sign and there.sign.verdict == "generates":
            alive_at = now
        if not isinstance(found, Restart):
            continue
        assert found.release == there.meant.release
        assert not there.silent
        assert not there.owed
        assert max(there.past.restarts, there.past.failed) < POLICY.limit
        running = [rank for node in ("head", "worker") if (rank := there.situation.alive(node))]
        assert all(rank.labels["dspark.release"] == found.release for rank in running)
        if found.kind == "wedged":
            assert now - alive_at >= POLICY.wedge_s
