"""The corpus: failing boots with the right failure as first answer, healthy ones without a fatal one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from dspark_deploy.boot.diagnosis import Diagnosis, diagnose, phase_seconds
from dspark_deploy.boot.rules import Rules
from tests.boot.conftest import Read
from tests.boot.corpus import BOOTS, Case, expand, load, real

Judge = Callable[..., Diagnosis]

FIRST = load("first")  # written, and their recipes frozen, before there was a signature
CORPUS = [*FIRST, *load("more")]
FAILING = [*CORPUS, *load("later")]  # rarer ones, added since
HEALTHY = [*real(), *load("healthy")]


@pytest.mark.parametrize("case", FAILING, ids=lambda case: case.name)
def test_a_failing_boot_has_its_failure_as_first_answer(case: Case, judge: Judge) -> None:
    diagnosis = judge(**case.logs)
    assert diagnosis.answer is not None
    assert diagnosis.answer.failure == case.failure
    assert case.lines > 1000


@pytest.mark.parametrize("case", FAILING, ids=lambda case: case.name)
def test_it_is_the_same_answer_when_nobody_says_whose_log_it_is(case: Case, judge: Judge) -> None:
    diagnosis = judge(**{f"log{number}": log for number, log in enumerate(case.logs.values())})
    assert diagnosis.answer is not None
    assert diagnosis.answer.failure == case.failure


@pytest.mark.parametrize("case", HEALTHY, ids=lambda case: case.name)
def test_a_healthy_boot_raises_nothing_fatal(case: Case, judge: Judge) -> None:
    diagnosis = judge(**case.logs)
    assert diagnosis.failures == ()
    assert diagnosis.outcome in {"ready", "unfinished", "stopped"}
    assert set(case.costly) <= {each.failure for each in diagnosis.warnings}


def test_the_corpus_is_as_large_as_it_has_to_be() -> None:
    assert len(CORPUS) >= 40
    assert len(HEALTHY) >= 10
    assert len(FIRST) * 2 >= len(CORPUS)
    assert len({case.failure for case in CORPUS}) >= 30


def test_what_was_written_before_the_signatures_is_unchanged() -> None:
    frozen = [line.split("  ") for line in (BOOTS / "FROZEN.sha256").read_text(encoding="utf-8").splitlines()]
    assert {name for _, name in frozen} >= {f"first/{case.name}.yaml" for case in FIRST}
    for digest, name in frozen:
        assert hashlib.sha256((BOOTS / name).read_bytes()).hexdigest() == digest, name


def test_a_recipe_always_makes_the_same_log() -> None:
    path = BOOTS / "first" / "shard-truncated.yaml"
    assert expand(path).logs == expand(path).logs


def test_the_cause_is_told_from_the_echo(judge: Judge) -> None:
    [case] = [case for case in FIRST if case.name == "memory-short-on-worker"]
    diagnosis = judge(**case.logs)
    [answer, *others] = diagnosis.failures
    assert (answer.failure, answer.node, answer.role) == ("F29", "worker", "cause")
    assert "gpu_memory_utilization to 0.86 or less" in answer.remedy
    assert ("F55", "head", "echo") in {(each.failure, each.node, each.role) for each in others}


def test_all_switches_of_the_other_family_are_named(judge: Judge) -> None:
    [case] = [case for case in HEALTHY if case.name == "foreign-switches"]
    [warning] = [each for each in judge(**case.logs).warnings if each.failure == "F05"]
    assert "VLLM_DSPARK_LOCAL_ARGMAX, VLLM_USE_B12X_WO_PROJECTION is a switch" in warning.means


def test_uneven_memory_is_a_warning(judge: Judge) -> None:
    head, worker = (
        f"(Worker_TP{rank} pid=1) INFO 07-18 13:33:35 [w.py:1] Available KV cache memory: {gib} GiB\n".encode()
        for rank, gib in ((0, "18.08"), (1, "8.72"))
    )
    [warning] = judge(head=head, worker=worker).warnings
    assert (warning.failure, warning.also, warning.node) == ("F36", ("F33",), "worker")


def test_phase_times_are_those_of_the_log(read: Read) -> None:
    [case] = [case for case in HEALTHY if case.name == "anemll-agent-1m"]
    _, [boot] = read(case.logs["head"], node="head")
    seconds = phase_seconds(boot)
    assert seconds["engine"] == 3
    assert seconds["load"] + seconds["weights"] in {154, 155}  # 3 + 141.71 + 10, in stamps of whole seconds


def test_the_published_evidence_boot_gives_the_published_figures(read: Read) -> None:
    [case] = [case for case in HEALTHY if case.name == "foreign-switches"]
    _, [head] = read(case.logs["head"])
    _, [worker] = read(case.logs["worker"])
    shown = (
        "weights_s",
        "draft_weights_s",
        "model_loading_s",
        "kv_gib",
        "kv_pool_tokens",
        "max_concurrency",
        "capture_gib",
    )
    assert [head.figures.get(name) for name in shown] == [141.71, 30.44, 201.652877, 11.47, 853_524, 2.44, 1.95]
    assert [worker.figures.get(name) for name in shown] == [97.02, 26.59, 152.578286, 10.61, None, None, 1.17]
    assert (head.figures["max_model_len"], worker.node) == (350_000, "worker")


def test_no_log_is_no_boot(rules: Rules) -> None:
    diagnosis = diagnose([], rules.signatures)
    assert (diagnosis.outcome, diagnosis.answer, diagnosis.ranks) == ("no-boot", None, ())


def test_another_text_is_no_boot(judge: Judge) -> None:
    text = (Path(__file__).parents[2] / "LICENSE").read_bytes()
    assert judge(log=text).outcome == "no-boot"


def test_an_error_that_no_signature_knows_is_kept_for_show(judge: Judge) -> None:
    log = (
        b"(Worker_TP0 pid=1) ERROR 07-18 13:29:30 [e.py:1] WorkerProc failed to start.\n"
        b"(Worker_TP0 pid=1) ERROR 07-18 13:29:30 [e.py:1] KeyError: 'layers.43.scale'\n"
    )
    diagnosis = judge(head=log)
    assert diagnosis.outcome == "failed"
    assert diagnosis.answer is not None
    assert diagnosis.answer.failure is None
    assert "KeyError: 'layers.43.scale'" in diagnosis.ranks[0].complaints[0].text


def test_a_boot_that_serves_after_a_failed_one_is_healthy(judge: Judge) -> None:
    [failed] = [case for case in FIRST if case.name == "head-capture-out-of-memory"]
    [healthy] = [case for case in HEALTHY if case.name == "stage-c-twelve"]
    both = judge(head=failed.logs["head"] + healthy.logs["head"])
    assert both.outcome == "ready"
    assert both.ranks[0].attempts == 2
    again = judge(head=healthy.logs["head"] + failed.logs["head"])
    assert again.answer is not None
    assert again.answer.failure == "F32"


def test_a_retry_under_way_does_not_hide_why_the_first_boot_died(judge: Judge) -> None:
    [failed] = [case for case in FIRST if case.name == "head-capture-out-of-memory"]
    begun = b"\n".join(failed.logs["head"].splitlines()[:12]) + b"\n"
    diagnosis = judge(head=failed.logs["head"] + begun)
    assert diagnosis.answer is not None
    assert diagnosis.answer.failure == "F32"
    assert diagnosis.ranks[0].attempts == 2
