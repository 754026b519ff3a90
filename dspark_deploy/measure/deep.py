"""One very long prompt: is it taken, how long until its first token, and is its beginning still known at its end."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from dspark_deploy.measure.exact import Writer
from dspark_deploy.measure.outcome import Request
from dspark_deploy.measure.side import Side

ANSWER_TOKENS = 64
LEAST_S, SLOWEST_TPS = 600.0, 200.0  # the published run of 899994 tokens read 875 a second


@dataclass(frozen=True, slots=True)
class DeepResult:
    """`found`: the word from the prompt's first line stands in the answer."""

    wanted_tokens: int
    prompt_tokens: int | None  # as the server counted them in the end
    ttft_s: float | None
    prefill_tps: float | None
    found: bool
    answer: str
    failure: str = ""
    published_ttft_s: float | None = None  # by the published sweep, where it says something about this length

    @property
    def passed(self) -> bool:
        """Whether an answer came that knew the beginning."""
        return not self.failure and self.found


async def run_deep(side: Side, tokens: int, published_ttft_s: float | None = None) -> DeepResult:
    """Raises NoAnswer where the server can't be asked for token counts."""
    word = f"harbour-{secrets.token_hex(3)}"
    ending = "What is the password that stands on the first line? Answer with the password only."
    prompt = await Writer(side).write(tokens, ending=ending, opening=f"The password is {word}.\n")
    request = Request(f"{tokens} tokens", side.chat(prompt.text, tokens=ANSWER_TOKENS))
    outcome = await side.client.stream(request, answer_s=max(LEAST_S, tokens / SLOWEST_TPS))
    return DeepResult(
        wanted_tokens=tokens,
        prompt_tokens=outcome.prompt_tokens,
        ttft_s=outcome.ttft_s,
        prefill_tps=outcome.prefill_tps,
        found=word in outcome.text,
        answer=outcome.text,
        failure="" if outcome.ok else f"{outcome.failure}: {outcome.why}",
        published_ttft_s=published_ttft_s,
    )
