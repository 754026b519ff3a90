"""Two logs as they come in: a cause ends the wait at once, an echo waits for the cause."""

from __future__ import annotations

from dspark_deploy.boot.pair import GRACE_S, PairReader
from dspark_deploy.boot.phases import Phase
from dspark_deploy.boot.rules import Rules
from tests.boot.corpus import BOOTS, expand

INFO = b"INFO 07-18 13:29:28 [module.py:1] "
ECHO = b"[rank0]:[W718 13:29:41.1 TCPStore.cpp:125] [c10d] recvValue failed: Failed to recv, got 0 bytes.\n"
CAUSE = (
    b"(Worker pid=1) " + INFO + b"ValueError: Free memory on device cuda:0 (104.9/121.63 GiB) on startup is less than "
)
CAUSE += b"desired GPU memory utilization (0.87, 105.8 GiB).\n"


def test_a_cause_ends_the_wait_with_its_line(rules: Rules) -> None:
    pair = PairReader(rules, 0)
    assert pair.verdict(5) is None
    pair.feed("worker", CAUSE, 5)
    diagnosis = pair.verdict(5)
    assert diagnosis is not None
    assert diagnosis.answer is not None
    assert (diagnosis.answer.failure, diagnosis.answer.node) == ("F29", "worker")


def test_an_echo_waits_for_the_cause_that_is_on_its_way(rules: Rules) -> None:
    pair = PairReader(rules, 0)
    pair.feed("head", ECHO, 10)
    assert pair.verdict(10) is None
    pair.feed("worker", CAUSE, 10.3)
    diagnosis = pair.verdict(10.3)
    assert diagnosis is not None
    assert diagnosis.answer is not None
    assert diagnosis.answer.failure == "F29"


def test_an_echo_alone_ends_the_wait_within_a_second(rules: Rules) -> None:
    pair = PairReader(rules, 0)
    pair.feed("head", ECHO, 10)
    diagnosis = pair.verdict(10 + GRACE_S)
    assert diagnosis is not None
    assert diagnosis.answer is not None
    assert diagnosis.answer.failure == "F55"
    assert GRACE_S < 1


def test_a_rank_that_ends_without_a_word_ends_the_wait_too(rules: Rules) -> None:
    pair = PairReader(rules, 0)
    pair.feed("head", b"(EngineCore pid=1) " + INFO + b"DP group leader: node_rank=0", 3)
    assert pair.verdict(3) is None
    pair.ended("head", 4)
    assert pair.verdict(4) is None
    diagnosis = pair.verdict(4 + GRACE_S)
    assert diagnosis is not None
    assert diagnosis.answer is None
    assert {rank.node: rank.phase for rank in diagnosis.ranks} == {"head": "engine", "worker": None}


def test_positions_tell_phase_time_and_bar(rules: Rules) -> None:
    pair = PairReader(rules, 0)
    pair.feed("head", b"(Worker_TP0 pid=1) " + INFO + b"Loading model from scratch...\n", 14)
    pair.feed("head", b"\rLoading safetensors checkpoint shards:  50% Completed | 24/48 [01:14<01:21]\r", 90)
    head = pair.position("head")
    assert (head.phase, head.since_s, head.heard_s, head.percent) == (Phase.WEIGHTS, 90, 90, 50)
    assert pair.position("worker").phase is None


def test_a_healthy_boot_is_never_ended_and_becomes_ready(rules: Rules) -> None:
    for name in ("anemll-agent-1m", "cold-caches", "noisy-but-fine", "stage-c-twelve"):
        case = expand(BOOTS / "healthy" / f"{name}.yaml")
        pair = PairReader(rules, 0)
        for now_s, (head, worker) in enumerate(
            zip(*(log.splitlines(True) for log in case.logs.values()), strict=False)
        ):
            pair.feed("head", head, now_s)
            pair.feed("worker", worker, now_s)
            assert pair.verdict(now_s) is None, head
        for line in case.logs["head"].splitlines(True)[now_s:]:
            pair.feed("head", line, now_s)
        assert pair.verdict(10**6) is None
        assert pair.ready


def test_a_restart_takes_the_rank_back_to_its_beginning(rules: Rules) -> None:
    pair = PairReader(rules, 0)
    ready = []
    for message in (b"INFO:     Application startup complete.", INFO + b"non-default args: {'model': 'a/b'}"):
        pair.feed("head", b"(APIServer pid=1) " + message + b"\n", 1)
        ready.append(pair.ready)
    assert ready == [True, False]
    assert pair.position("head").phase is Phase.ARGUMENTS
