"""The server's own counters, before and after: acceptance of draft tokens, and whether somebody else was served too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dspark_deploy.measure.client import Client
from dspark_deploy.remote.served import HTTP_OK, NoAnswer

_SAMPLE = re.compile(r"^(vllm:\w+)(?:\{([^}]*)\})? (\S+)$", re.MULTILINE)
_POSITION = re.compile(r'position="(\d+)"')


@dataclass(frozen=True, slots=True)
class Counters:
    """One reading of `/metrics`. Summed over engines; of several models, all together."""

    values: Mapping[str, float]  # name without `vllm:` -> value
    accepted_at: Mapping[int, float]  # draft position -> accepted tokens

    def get(self, name: str) -> float:
        """A counter or gauge; 0 where the server has none of that name."""
        return self.values.get(name, 0.0)


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


async def read_counters(client: Client) -> Counters | None:
    """None where `/metrics` can't be read: only the server behind the API has one."""
    try:
        answer = await client.get("/metrics")
    except NoAnswer:
        return None
    return parse_counters(answer.text) if answer.status == HTTP_OK else None


def parse_counters(text: str) -> Counters | None:
    """Read Prometheus' text. None where it holds nothing of vLLM's."""
    values: dict[str, float] = {}
    positions: dict[int, float] = {}
    for name, labels, value in _SAMPLE.findall(text):
        short = name.removeprefix("vllm:").removesuffix("_total")
        values[short] = values.get(short, 0.0) + float(value)
        if short == "spec_decode_num_accepted_tokens_per_pos" and (match := _POSITION.search(labels)):
            position = int(match[1])
            positions[position] = positions.get(position, 0.0) + float(value)
    return Counters(values, positions) if values else None


def between(before: Counters | None, after: Counters | None) -> Between | None:
    """The difference of two readings; None where either is missing."""
    if before is None or after is None:
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
    return Between(acceptance, grown("generation_tokens"), grown("num_preemptions"))
