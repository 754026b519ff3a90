from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from dspark_deploy.plan.served import Served
from dspark_deploy.remote.served import Answer, NoAnswer
from dspark_deploy.watch.generation import Generation, ask_for_a_token, feel_pulse, last_work, read_counters
from tests.fakes import FakeHost
from tests.flow.stand import FakeClock
from tests.samples import container, node_facts

SERVED = Served(
    pair="spark-pair",
    profile="agent-1m",
    family="anemll",
    image="image:1",
    model="model",
    served_name="model",
    max_model_len=1000,
    bind="0.0.0.0",
    port=8888,
    master_address="192.168.177.11",
    master_port=25000,
    rendezvous_marker="rank=1",
)


def page(prompt: int = 0, generated: int = 0, running: int = 0, kv: float = 0.0) -> str:
    return (
        f"vllm:prompt_tokens_total {prompt}\nvllm:generation_tokens_total {generated}\n"
        f"vllm:num_requests_running {running}\nvllm:kv_cache_usage_perc {kv}\n"
    )


@dataclass
class Server:
    """An API that shows these pages of counters in turn, the last one for ever. None: no page."""

    pages: list[str | None] = field(default_factory=lambda: [page()])
    models: tuple[str, ...] | None = ("model",)
    completion: int = 200  # 0: never
    asked: list[float] = field(default_factory=list)  # how long each token was waited for

    def get(self, path: str, *, timeout_s: float) -> Answer:
        if path == "/metrics":
            text = self.pages.pop(0) if len(self.pages) > 1 else self.pages[0]
            if text is None:
                raise NoAnswer("refused", timed_out=False)
            return Answer(200, text)
        if self.models is None:
            raise NoAnswer("refused", timed_out=False)
        rows = ", ".join(f'{{"id": "{name}"}}' for name in self.models)
        return Answer(200, f'{{"data": [{rows}]}}')

    def post(self, path: str, document: Any, *, timeout_s: float) -> Answer:
        self.asked.append(timeout_s)
        if not self.completion:
            raise NoAnswer(f"no answer within {timeout_s:g} s", timed_out=True)
        return Answer(self.completion, "{}")


def felt(server: Server, canary_s: float | None = 60.0) -> Generation:
    return feel_pulse(server, SERVED, read_counters(server), canary_s=canary_s)


@pytest.mark.parametrize(
    ("after", "says"),
    [
        (page(generated=7, running=1), "7 tokens generated"),
        (page(prompt=9, running=1), "9 prompt tokens read"),
        (page(running=1, kv=0.25), "the KV pool's use grew to 25.0 %"),
    ],
)
def test_what_moves_generates_and_is_asked_for_nothing(after: str, says: str) -> None:
    server = Server([page(running=1), after])
    found = felt(server)
    assert (found.verdict, found.detail, found.busy) == ("generates", says, True)
    assert server.asked == []


@pytest.mark.parametrize("after", [page(running=1), page(running=5), page(running=1, kv=0.1)])
def test_requests_that_run_and_a_pool_that_shrinks_are_no_signs_of_life(after: str) -> None:
    server = Server([page(running=1, kv=0.5), after.replace("perc 0.0", "perc 0.5")])
    found = felt(server)
    assert (found.verdict, found.busy, server.asked) == ("quiet", True, [])


def test_a_server_that_was_started_anew_is_not_taken_for_one_that_moved() -> None:
    assert felt(Server([page(prompt=50, kv=0.1), page(prompt=1, kv=0.2, running=1)])).verdict == "quiet"


@pytest.mark.parametrize(("status", "verdict"), [(200, "generates"), (503, "refuses"), (0, "silent")])
def test_an_idle_pair_is_asked_for_one_token_in_bounded_time(status: int, verdict: str) -> None:
    server = Server(completion=status)
    assert felt(server).verdict == verdict
    assert server.asked == [60.0]
    assert felt(server, canary_s=None).verdict == "quiet"
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("models", "verdict"), [(None, "no-api"), (("other",), "other-api"), (("model",), "generates")]
)
def test_without_counters_it_is_told_by_what_it_lists(models: tuple[str, ...] | None, verdict: str) -> None:
    assert felt(Server([None], models=models)).verdict == verdict


@pytest.mark.parametrize(
    ("server", "verdict"),
    [
        (Server(), "generates"),
        (Server(completion=500), "refuses"),
        (Server(completion=0), "silent"),
        (Server([page(running=1), page(generated=3, running=1)], completion=0), "generates"),
        (Server(models=None), "no-api"),
        (Server(models=("other",)), "other-api"),
    ],
)
def test_one_question_tells_whether_a_pair_generates(server: Server, verdict: str) -> None:
    assert ask_for_a_token(server, SERVED, FakeClock()).verdict == verdict


@pytest.fixture(name="host")
def _host() -> FakeHost:
    host = FakeHost(node_facts())
    host.engine_.add(container(id="c1"))
    return host


def test_the_last_line_about_work_is_found_among_idle_talk(host: FakeHost) -> None:
    host.engine_.say("c1", "TileLang begins to compile", 'INFO: "GET /metrics"', "Engine 000: Avg prompt throughput")
    assert last_work(host, "c1", since_s=60.0) == "TileLang begins to compile"


def test_idle_talk_alone_is_no_work(host: FakeHost) -> None:
    host.engine_.say("c1", 'INFO: "POST /v1/completions', "No available shared memory broadcast block found in 60 s")
    assert last_work(host, "c1", since_s=60.0) == ""
