"""Smoke, gate, churn and deep prompts against a stand-in, sane and spoilt."""

from __future__ import annotations

import pytest

from dspark_deploy.measure.churn import ChurnResult, run_churn
from dspark_deploy.measure.deep import run_deep
from dspark_deploy.measure.detect.sample import Kind
from dspark_deploy.measure.exact import Counted, Writer
from dspark_deploy.measure.gate import GateResult, levels_up_to, run_gate
from dspark_deploy.measure.side import Side
from dspark_deploy.measure.suite import run_smoke
from tests.measure.conftest import MAX_MODEL_LEN, asked, silent
from tests.rehearsal.standin.loopback import Loopback


def gate(port: int, *levels: int) -> GateResult:
    """The gate at those levels."""
    return asked(port, lambda side: run_gate(side, levels, silent))


def smoke(port: int, max_model_len: int = MAX_MODEL_LEN) -> dict[str, str]:
    """Each check's verdict."""

    async def work(side: Side) -> dict[str, str]:
        return {finding.id: finding.status async for finding, _ in run_smoke(side, max_model_len)}

    return asked(port, work)


def test_a_sane_server_passes_the_gate_at_every_level(serving: Loopback) -> None:
    result = gate(serving.api_port, *levels_up_to(6))
    assert (result.passed, result.bad, result.differs) == (True, (), ())
    assert result.levels == (1, 2, 4, 6)
    assert result.answers == 4 * 22
    assert "harness" in result.hint


@pytest.mark.parametrize(
    ("api", "kind"),
    [
        ("drift", "script"),
        ("loop", "loop"),
        ("markup", "markup"),
        ("leak", "prompt"),
        ("truncated", "truncated"),
        ("mixed", "mixed"),
        ("empty", "empty"),
        ("garbage", "garbled"),
    ],
)
def test_a_spoilt_server_does_not_pass(serving: Loopback, api: str, kind: Kind) -> None:
    serving.switches(0, api=api)
    result = gate(serving.api_port, 2)
    assert not result.passed
    assert kind in {alarm.kind for bad in result.bad for alarm in bad.alarms}
    assert "the pair's own fault" in result.hint


def test_requests_that_fail_are_bad_without_being_the_models_fault(serving: Loopback) -> None:
    serving.switches(0, api="error")
    result = gate(serving.api_port, 1)
    assert not result.passed
    assert len(result.bad) == result.answers
    assert "lost on the way" in result.hint


@pytest.mark.parametrize(
    ("most", "levels"), [(1, (1,)), (2, (1, 2)), (4, (1, 2, 4)), (5, (1, 2, 4, 5)), (16, (1, 2, 4, 6, 16))]
)
def test_levels_end_at_the_profiles_maximum(most: int, levels: tuple[int, ...]) -> None:
    assert levels_up_to(most) == levels


def test_a_steady_answer_stays_the_same_while_others_come_and_leave(serving: Loopback) -> None:
    serving.switches(0, decode_tps=150)
    result = churn(serving.api_port, rounds=2)
    assert result.passed
    assert result.came > 1
    assert result.left > 0


def test_a_steady_answer_that_changes_is_told(serving: Loopback) -> None:
    serving.switches(0, api="mixed", decode_tps=200)
    result = churn(serving.api_port, rounds=2)
    assert not result.passed
    assert result.other_answers


def churn(port: int, rounds: int) -> ChurnResult:
    """Four at once."""
    return asked(port, lambda side: run_churn(side, 4, silent, rounds=rounds, stays_s=(0.05, 0.4)))


def test_every_check_of_the_smoke_passes(serving: Loopback) -> None:
    found = smoke(serving.api_port)
    assert set(found.values()) == {"ok"}
    assert len(found) == 10


def test_another_length_than_planned_fails(serving: Loopback) -> None:
    assert smoke(serving.api_port, 1048576)["smoke-models"] == "fail"


@pytest.mark.parametrize("api", ["garbage", "empty", "error", "markup"])
def test_the_smoke_looks_at_what_is_answered(serving: Loopback, api: str) -> None:
    serving.switches(0, api=api)
    found = smoke(serving.api_port)
    assert {found["smoke-chat"], found["smoke-chat-stream"], found["smoke-chat-long"]} == {"fail"}
    assert found["smoke-models"] == "ok"


@pytest.mark.parametrize("tokens", [64, 257, 2048, 9000])
def test_a_prompt_has_exactly_as_many_tokens_as_were_asked(serving: Loopback, tokens: int) -> None:
    async def work(side: Side) -> tuple[Counted, Counted]:
        writer = Writer(side)
        return await writer.write(tokens), await writer.write(tokens)

    first, second = asked(serving.api_port, work)
    assert (first.tokens, second.tokens) == (tokens, tokens)
    assert first.exact
    assert first.text[:12] != second.text[:12]


def test_a_deep_prompts_beginning_is_known_at_its_end(serving: Loopback) -> None:
    result = asked(serving.api_port, lambda side: run_deep(side, 20_000))
    assert result.passed
    assert result.prompt_tokens == result.wanted_tokens == 20_000


def test_a_deep_prompt_that_does_not_fit_is_told(serving: Loopback) -> None:
    result = asked(serving.api_port, lambda side: run_deep(side, MAX_MODEL_LEN))
    assert not result.passed
    assert "maximum context length" in result.failure
