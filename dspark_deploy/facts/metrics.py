"""The served API's own counters: what one reading of `/metrics` says, and what two say of the time between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PREFIX = "vllm:"


@dataclass(frozen=True, slots=True)
class Counters:
    """One reading of `/metrics`. Summed over engines; of several models, all together."""

    values: Mapping[str, float]  # name without `vllm:` and `_total` -> value
    accepted_at: Mapping[int, float]  # draft position -> accepted tokens
    started_s: float | None = None  # when the server's process began, seconds since the epoch; None: it does not say

    def get(self, name: str) -> float:
        """A counter or gauge; 0 where the server has none of that name."""
        return self.values.get(name, 0.0)

    @property
    def running(self) -> int:
        """Requests that are worked on."""
        return round(self.get("num_requests_running"))

    @property
    def waiting(self) -> int:
        """Requests that wait for a place."""
        return round(self.get("num_requests_waiting"))

    @property
    def kv_usage(self) -> float:
        """Share of the KV pool that is held, 0 to 1. Its name changed with vLLM's V1 engine."""
        return self.values.get("kv_cache_usage_perc", self.get("gpu_cache_usage_perc"))

    @property
    def tokens(self) -> float:
        """Tokens read and written since the server's start: what moves while anything is generated."""
        return self.get("prompt_tokens") + self.get("generation_tokens")


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Of what was drafted between two readings. `rate` is accepted / drafted tokens."""

    drafts: int
    drafted_tokens: int
    accepted_tokens: int
    positions: tuple[float, ...] = ()  # share of drafts in which this position was accepted

    @property
    def rate(self) -> float:
        """Accepted of drafted tokens."""
        return self.accepted_tokens / self.drafted_tokens

    @property
    def per_draft(self) -> float:
        """Tokens that one draft brought, the model's own token not counted."""
        return self.accepted_tokens / self.drafts


@dataclass(frozen=True, slots=True)
class Between:
    """What the counters say of the time between two readings."""

    acceptance: Acceptance | None  # None: nothing was drafted
    generated_tokens: int  # for whoever asked
    preemptions: int
    prompt_tokens: int = 0


def parse_counters(text: str) -> Counters | None:
    """Read Prometheus' text. None where it is not that, or holds nothing of vLLM's."""
    # Its import takes a tenth of a second, and only a pair that answers has counters.
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415  see the line above

    values: dict[str, float] = {}
    positions: dict[int, float] = {}
    started_s: float | None = None
    try:
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    except ValueError:
        return None
    for sample in samples:
        if sample.name == "process_start_time_seconds":
            started_s = sample.value
        if not sample.name.startswith(PREFIX):
            continue
        short = sample.name.removeprefix(PREFIX).removesuffix("_total")
        values[short] = values.get(short, 0.0) + sample.value
        if short == "spec_decode_num_accepted_tokens_per_pos" and sample.labels.get("position", "").isdigit():
            position = int(sample.labels["position"])
            positions[position] = positions.get(position, 0.0) + sample.value
    return Counters(values, positions, started_s) if values else None


def between(before: Counters | None, after: Counters | None) -> Between | None:
    """The difference of two readings; None where either is missing, or the server was started anew in between."""
    if before is None or after is None or after.tokens < before.tokens:
        return None

    def grown(name: str) -> int:
        return round(after.get(name) - before.get(name))

    drafts, drafted = grown("spec_decode_num_drafts"), grown("spec_decode_num_draft_tokens")
    acceptance = None
    if drafts > 0 and drafted > 0:
        positions = tuple(
            (after.accepted_at[place] - before.accepted_at.get(place, 0.0)) / drafts
            for place in sorted(after.accepted_at)
        )
        acceptance = Acceptance(drafts, drafted, grown("spec_decode_num_accepted_tokens"), positions)
    return Between(acceptance, grown("generation_tokens"), grown("num_preemptions"), grown("prompt_tokens"))


def since_start(now: Counters) -> Between | None:
    """The same over the server's whole life."""
    return between(Counters({}, {}), now)
