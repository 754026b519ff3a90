"""Speed at a prompt length and a concurrency that nobody measured, read off a table of ones that somebody did.

A published script's rules: only concurrencies of the table, straight lines in the logarithms of length and figure
between two rows of one column, and beyond the longest row only where a single measurement lies further out. Where the
data gives no number there is none.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dspark_deploy.capacity.measurements import Row, Sweep


@dataclass(frozen=True, slots=True)
class Estimate:
    """Figures of one request among `concurrency` of its length; None where the sweep gives none."""

    prompt: int  # tokens
    concurrency: int
    ttft_s: float | None
    prefill_tps: float | None
    decode_tps: float | None
    aggregate_tps: float | None
    decode_aggregate_tps: float | None
    rows: tuple[tuple[int, int], ...]  # (prompt, concurrency) of the rows it rests on
    rule: str  # how it was made of them

    def answer_s(self, output_tokens: int) -> float | None:
        """Seconds until the last of so many tokens."""
        if self.ttft_s is None or self.decode_tps is None:
            return None
        return self.ttft_s + output_tokens / self.decode_tps

    def aggregate_for(self, output_tokens: int) -> float | None:
        """What `aggregate_tps` would be with answers of this length: output of all over the wall time.

        The measured column holds for the sweep's own answer length alone: 512 / (78.75 + 512 / 65.18) = 5.91.
        """
        seconds = self.answer_s(output_tokens)
        return None if seconds is None else self.concurrency * output_tokens / seconds


@dataclass(frozen=True, slots=True)
class NoNumber:
    """The data gives none, and why."""

    why: str


def choose_sweep(
    own: Sequence[Sweep], published: Sequence[Sweep], *, family: str, model: str, patches: Collection[str] = ()
) -> Sweep | None:
    """The sweep that speaks for this image, model and scheduler; the pair's own before the published ones.

    `patches` are the file names of the scheduler patches that the deployment runs with. Of two sweeps the one that
    shares more of them is nearer; one that ran with a patch which this deployment lacks measured another scheduler.
    """
    fitting = [
        each
        for each in (*own, *published)
        if each.family == family and each.model == model and set(each.patches) <= set(patches)
    ]
    return max(fitting, key=lambda each: (each in own, len(each.patches)), default=None)


def interpolate(sweep: Sweep, prompt: int, concurrency: int) -> Estimate | NoNumber:
    """The figures at `prompt` tokens with `concurrency` requests at once."""
    column = sorted((row for row in sweep.rows if row.concurrency == concurrency), key=lambda row: row.prompt)
    if not column:
        known = ", ".join(str(each) for each in sorted({row.concurrency for row in sweep.rows}))
        return NoNumber(f"{sweep.name} has no column for {concurrency} at once, only for {known}")
    exact = next((row for row in column if row.prompt == prompt), None)
    if exact is not None:
        return _as_is(exact, prompt, "a row of the sweep")
    if prompt < column[0].prompt:
        return _as_is(column[0], prompt, "shorter than the shortest row: that row as it is")
    if prompt < column[-1].prompt:
        above = next(row for row in column if row.prompt > prompt)
        below = column[column.index(above) - 1]
        return _between(below, above, prompt, "a straight line in the logarithms between two rows")
    return _beyond(sweep, column[-1], prompt)


def longest_within(sweep: Sweep, concurrency: int, ttft_s: float, limit: int) -> int:
    """The longest prompt, up to `limit` tokens, whose first token comes within `ttft_s`; 0 where none is known to."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        found = interpolate(sweep, middle, concurrency)
        if isinstance(found, Estimate) and found.ttft_s is not None and found.ttft_s <= ttft_s:
            low = middle
        else:
            high = middle - 1
    return low


def on_line(x: float, first: tuple[float, float], second: tuple[float, float]) -> float:
    """y at `x` on the straight line through two points in the logarithms of both axes."""
    (x1, y1), (x2, y2) = first, second
    slope = math.log(y2 / y1) / math.log(x2 / x1)
    return y1 * math.exp(slope * math.log(x / x1))


def _beyond(sweep: Sweep, longest: Row, prompt: int) -> Estimate | NoNumber:
    """Past the column's last row: towards a single measurement, and on along that line."""
    points = [row for row in sweep.points if row.concurrency == longest.concurrency and row.prompt > longest.prompt]
    if not points:
        return NoNumber(
            f"{sweep.name} measured {longest.concurrency} at once up to {longest.prompt} tokens, not {prompt}"
        )
    point = min(points, key=lambda row: row.prompt)
    if prompt == point.prompt:
        return _as_is(point, prompt, "a single measurement beyond the table")
    rule = f"a straight line in the logarithms towards the single measurement at {point.prompt}"
    if prompt > point.prompt:
        rule += f", and {prompt / point.prompt - 1:.1%} beyond it"
    return _between(longest, point, prompt, rule)


def _as_is(row: Row, prompt: int, rule: str) -> Estimate:
    return Estimate(
        prompt,
        row.concurrency,
        row.ttft_s,
        row.prefill_tps,
        row.decode_tps,
        row.aggregate_tps,
        row.decode_aggregate_tps,
        ((row.prompt, row.concurrency),),
        rule,
    )


def _between(below: Row, above: Row, prompt: int, rule: str) -> Estimate:
    def at(metric: str) -> float | None:
        first, second = getattr(below, metric), getattr(above, metric)
        if first is None or second is None:
            return None
        return on_line(prompt, (below.prompt, first), (above.prompt, second))

    return Estimate(
        prompt,
        below.concurrency,
        at("ttft_s"),
        at("prefill_tps"),
        at("decode_tps"),
        at("aggregate_tps"),
        at("decode_aggregate_tps"),
        tuple((row.prompt, row.concurrency) for row in (below, above)),
        rule,
    )
