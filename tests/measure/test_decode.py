"""The published three-trial table, from event times."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from dspark_deploy.facts.metrics import Acceptance, Between
from dspark_deploy.measure.decode import Lane, Trial, trial_of
from dspark_deploy.measure.outcome import Outcome, Request

# Event times of 3 trials each at 1 to 6 at once, laid out so that they have the published table's figures.
RECORDED = Path(__file__).parent.parent / "data" / "decode-trials.json"
# concurrency: trials, median aggregate, mean stream, window s, tokens (README.md at 8b659a9, the decode-only table)
TABLE = {
    1: ((66.5, 69.4, 66.6), 66.6, 66.6, 7.67, 511),
    2: ((92.1, 95.6, 93.3), 93.3, 47.2, 10.95, 1022),
    3: ((89.4, 92.8, 93.5), 92.8, 31.9, 16.52, 1533),
    4: ((129.1, 123.8, 121.7), 123.8, 32.8, 16.51, 2044),
    5: ((125.0, 121.1, 111.6), 121.1, 25.7, 21.11, 2555),
    6: ((153.7, 148.8, 157.0), 153.7, 26.8, 19.94, 3066),
}


def outcome(*, sent_s: float, event_s: list[float], completion_tokens: int | None, failure: bool = False) -> Outcome:
    """One request's end."""
    return Outcome(
        Request("stream", {}),
        sent_s,
        event_s[-1] if event_s else sent_s,
        tuple(event_s),
        text="x",
        finish_reason="length",
        prompt_tokens=20,
        completion_tokens=completion_tokens,
        failure="timeout" if failure else None,
        why="no answer within 600 s" if failure else "",
    )


def recorded() -> dict[int, Lane]:
    """The lanes that the recorded times make."""
    trials: dict[int, list[Trial]] = defaultdict(list)
    for trial in json.loads(RECORDED.read_text()):
        trials[trial["concurrency"]].append(trial_of([outcome(**stream) for stream in trial["streams"]]))
    return {concurrency: Lane(concurrency, tuple(found)) for concurrency, found in trials.items()}


@pytest.mark.parametrize("concurrency", TABLE)
def test_the_published_table_comes_out_figure_by_figure(concurrency: int) -> None:
    rates, aggregate, stream, window_s, tokens = TABLE[concurrency]
    lane = recorded()[concurrency]
    assert [round(trial.aggregate_tps, 1) for trial in lane.trials] == pytest.approx(rates, abs=0.101)
    median = lane.median
    assert median is not None
    assert median.aggregate_tps == pytest.approx(aggregate, abs=0.1)
    assert median.mean_stream_tps == pytest.approx(stream, abs=0.05)
    assert median.window_s == pytest.approx(window_s, abs=0.005)
    assert median.tokens == tokens


def test_the_first_token_and_prefill_are_left_out() -> None:
    trial = trial_of([outcome(sent_s=0, event_s=[10.0, 10.5, 11.0], completion_tokens=101)])
    assert trial.aggregate_tps == pytest.approx(100)
    assert trial.ttft_s == (10.0,)


def test_streams_that_start_apart_have_one_window() -> None:
    first = outcome(sent_s=0, event_s=[1.0, 2.0], completion_tokens=11)
    second = outcome(sent_s=0, event_s=[2.0, 3.0], completion_tokens=11)
    trial = trial_of([first, second])
    assert (trial.window_s, trial.tokens, trial.aggregate_tps, trial.mean_stream_tps) == (2.0, 20, 10.0, 10.0)


def test_what_failed_is_named_and_in_no_figure() -> None:
    good = outcome(sent_s=0, event_s=[1.0, 2.0], completion_tokens=11)
    bad = outcome(sent_s=0, event_s=[], completion_tokens=None, failure=True)
    trial = trial_of([good, bad])
    assert trial.tokens == 10
    assert trial.failures == ("timeout: no answer within 600 s",)


def test_events_are_no_tokens() -> None:
    trial = trial_of([outcome(sent_s=0, event_s=[1.0, 1.5, 2.0], completion_tokens=None)])
    assert trial.tokens == 0
    assert "no usage" in trial.failures[0]


def test_tokens_of_others_are_seen() -> None:
    ours = outcome(sent_s=0, event_s=[1.0, 2.0], completion_tokens=11)
    trial = trial_of([ours], Between(Acceptance(10, 50, 30), generated_tokens=40, preemptions=0))
    assert trial.foreign_tokens == 29


def test_of_two_trials_the_lower_is_the_median() -> None:
    lane = Lane(1, tuple(Trial(rate, rate, (rate,), 1.0, 10, (0.1,)) for rate in (20.0, 10.0)))
    assert lane.median is lane.trials[1]
    assert lane.spread == pytest.approx(1 / 3)
    assert Lane(1, ()).median is None
