"""An outcome judged: the detectors' alarms, or why there was no answer to judge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dspark_deploy.measure.detect.every import detect
from dspark_deploy.measure.detect.sample import Alarm, Sample
from dspark_deploy.measure.outcome import Outcome
from dspark_deploy.measure.prompts import Prompt

Whose = Literal["the served model", "the way to it", "this request"]


@dataclass(frozen=True, slots=True)
class Judged:
    """One answer with everything that a reader needs to see for himself."""

    label: str
    concurrency: int
    prompt: str
    answer: str
    finish_reason: str
    failure: str  # why no answer came, else empty
    alarms: tuple[Alarm, ...]
    status: int | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.failure and not self.alarms


def judge_outcome(outcome: Outcome, prompt: Prompt, *, concurrency: int = 1, others: Iterable[str] = ()) -> Judged:
    """`others` are the codes of requests that ran at the same time."""
    alarms: tuple[Alarm, ...] = ()
    if outcome.ok:
        code = outcome.request.nonce
        sample = Sample(
            answer=outcome.text,
            prompt=outcome.request.prompt,
            finish_reason=outcome.finish_reason,
            language=prompt.language,
            form=prompt.form,
            code=code,
            others=tuple(each for each in others if each != code),
        )
        alarms = detect(sample)
    return Judged(
        label=outcome.request.label,
        concurrency=concurrency,
        prompt=outcome.request.prompt,
        answer=outcome.text,
        finish_reason=outcome.finish_reason,
        failure="" if outcome.ok else f"{outcome.failure}: {outcome.why}",
        alarms=alarms,
        status=outcome.status,
    )


_CAUSES = {
    "script": "draft sampling, kernels or the image: see that both ranks run the same image",
    "garbled": "the image, the checkpoint's revision or its encoder: compare both nodes",
    "loop": "draft acceptance or the KV cache: try `--set draft_tokens=0`, and the diagnostic-fp8 profile",
    "markup": "the encoder in the container, or the reasoning and tool parsers of the image",
    "prompt": "the encoder in the container: the template's turns are not told apart",
    "empty": "the encoder or the reasoning parser: the answer went where nobody looks",
    "truncated": "stop tokens or a preempted request: see the head's log",
    "mixed": "the scheduler or the KV cache: blocks of one request reached another; do not use this pair",
    "differs": "kernels or the KV cache: the same input at temperature 0 gave other text",
}


def hint(kinds: Iterable[str], answers: Iterable[Judged]) -> str:
    """Where to look. The gate asks the API itself, so what it finds is no client's and no harness's fault."""
    known = list(dict.fromkeys(kinds))
    lost = [each for each in answers if each.failure]
    refused = [each for each in lost if each.status is not None and 400 <= each.status < 500]  # noqa: PLR2004  client errors
    lines = []
    if known:
        lines.append("asked directly, without any agent harness: this is the pair's own fault")
        lines += [f"{kind}: {_CAUSES[kind]}" for kind in known]
    if refused:
        lines.append(f"{len(refused)} requests were refused as they stand: that says nothing about the model's text")
    if len(lost) > len(refused):
        lines.append(f"{len(lost) - len(refused)} answers were lost on the way: see `dspark status` and the head's log")
    if not lines:
        lines.append(
            "the API itself is sane: bad text in a client comes from its own harness (prompt, template, parser)"
        )
    return "\n".join(lines)
