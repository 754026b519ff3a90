"""Which profile suits a piece of work, why, what would wait, and what to change; and when another way is better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dspark_deploy.capacity.budget import Lane
from dspark_deploy.capacity.sweep import Estimate, interpolate, longest_within
from dspark_deploy.profile import Profile

_LONG_WAIT_S = 60.0  # from here on nobody sits and waits for a first token
_HOUR_S = 3600.0
LONGEST = 1_048_576  # tokens: the longest max_model_len that was published


@dataclass(frozen=True, slots=True)
class Wanted:
    """The work. Lengths are tokens of one session's prompt; None: not said."""

    sessions: int  # at once
    typical: int
    longest: int
    output_tokens: int
    turns_per_hour: float | None = None  # of one session
    ttft_s: float | None = None  # the longest that anybody wants to wait for a first token, at typical length


@dataclass(frozen=True, slots=True)
class Candidate:
    """A profile to be judged."""

    lane: Lane
    max_verify_rows: int | None  # that its family survives


@dataclass(frozen=True, slots=True)
class Seconds:
    """What is known of a time: that it is at least `low` and at most `high`; equal where it was interpolated."""

    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Ranked:
    """A profile, judged. Percentages are of the pool."""

    profile: str
    family: str
    title: str
    max_model_len: int
    max_num_seqs: int
    suits: bool  # serves the longest, and at typical length nothing waits
    serves_longest: bool
    waiting: int  # sessions without a place or room, at typical length
    preempts: bool  # more would run than the pool holds, were all at their longest
    pool_tokens: int | None
    pool_kind: str | None
    pool_used_pct: float | None  # at typical length
    ttft: Seconds  # at typical length, with all that run at once
    longest_ttft: Seconds  # alone
    reading_pct: float | None  # of the time goes into reading prompts, where no beginning of one is cached
    reasons: tuple[str, ...]
    change: str  # a command, ready to paste; empty where nothing makes it serve the longest
    why_change: str  # empty where it changes nothing


@dataclass(frozen=True, slots=True)
class Advice:
    """The profiles, the best first, and what no profile mends."""

    ranked: tuple[Ranked, ...]
    otherwise: tuple[str, ...]


def advise(wanted: Wanted, candidates: Sequence[Candidate]) -> Advice:
    """Rank the candidates for the work."""
    judged = [(_judge(wanted, each), each.lane) for each in candidates]
    judged.sort(key=lambda pair: _rank_key(wanted, *pair))
    best, lane = judged[0]
    ranked = tuple(each for each, _ in judged)
    return Advice(ranked, (*_too_much(wanted, ranked), *_otherwise(wanted, best, lane)))


def time_to_first(lane: Lane, prompt: int, concurrency: int) -> Seconds:
    """What is known of the TTFT. Where nobody measured so many at once, fewer are no slower and more no faster."""
    sweep = lane.sweep
    if sweep is None or prompt > lane.profile.max_model_len:
        return Seconds(None, None)
    known = {
        column: found.ttft_s
        for column in {row.concurrency for row in sweep.rows}
        if isinstance(found := interpolate(sweep, prompt, column), Estimate) and found.ttft_s is not None
    }
    low = max((seconds for column, seconds in known.items() if column <= concurrency), default=None)
    high = min((seconds for column, seconds in known.items() if column >= concurrency), default=None)
    return Seconds(low, high)


def _judge(wanted: Wanted, candidate: Candidate) -> Ranked:
    lane, profile = candidate.lane, candidate.lane.profile
    pool = lane.pool.tokens if lane.pool else None
    fitting = _fitting(wanted, pool, wanted.typical)
    running = min(wanted.sessions, profile.max_num_seqs, fitting)
    serves = _size(wanted.longest, wanted) <= min(profile.max_model_len, pool or profile.max_model_len)
    change, why = _change(wanted, candidate)
    alone = time_to_first(lane, wanted.typical, 1)
    ranked = Ranked(
        profile=profile.name,
        family=profile.family,
        title=profile.title,
        max_model_len=profile.max_model_len,
        max_num_seqs=profile.max_num_seqs,
        suits=serves and running == wanted.sessions,
        serves_longest=serves,
        waiting=wanted.sessions - running,
        preempts=_preempts(wanted, profile, pool),
        pool_tokens=pool,
        pool_kind=lane.pool.kind if lane.pool else None,
        pool_used_pct=100 * running * _size(wanted.typical, wanted) / pool if pool else None,
        ttft=time_to_first(lane, wanted.typical, max(running, 1)),
        longest_ttft=time_to_first(lane, wanted.longest, 1),
        reading_pct=_reading(wanted, alone.high),
        reasons=(),
        change=change,
        why_change=why,
    )
    return replace(ranked, reasons=tuple(_reasons(ranked, wanted)))


def _size(prompt: int, wanted: Wanted) -> int:
    return prompt + wanted.output_tokens


def _fitting(wanted: Wanted, pool: int | None, prompt: int) -> int:
    """Sessions with such a prompt that the pool holds; all of them where it is not known."""
    return wanted.sessions if pool is None else pool // _size(prompt, wanted)


def _preempts(wanted: Wanted, profile: Profile, pool: int | None) -> bool:
    running = min(wanted.sessions, profile.max_num_seqs)
    return running > 1 and running > _fitting(wanted, pool, wanted.longest)


def _reading(wanted: Wanted, seconds: float | None) -> float | None:
    if wanted.turns_per_hour is None or seconds is None:
        return None
    return 100 * wanted.sessions * wanted.turns_per_hour * seconds / _HOUR_S


def _rank_key(wanted: Wanted, ranked: Ranked, lane: Lane) -> tuple[object, ...]:
    """What matters more stands before what matters less: does it work, who waits, how sure is it, what is left over."""
    measured = (lane.pool is not None and lane.pool.kind != "predicted") + (lane.sweep is not None)
    known_quick = _within(ranked.ttft, wanted.ttft_s) is True  # that nobody measured it makes no image quick
    spare = max(ranked.max_num_seqs - wanted.sessions, 0)
    return (
        not ranked.serves_longest,
        ranked.waiting,
        not known_quick,
        -measured,
        ranked.preempts,
        spare,
        ranked.profile,
    )


def _within(seconds: Seconds, limit: float | None) -> bool | None:
    """Whether a time is within a limit; None where that is not known."""
    if limit is None:
        return True
    if seconds.high is not None and seconds.high <= limit:
        return True
    return False if _over(seconds, limit) else None


def _over(seconds: Seconds, limit: float) -> bool:
    """Whether a time is known to be longer."""
    return seconds.low is not None and seconds.low > limit


def _change(wanted: Wanted, candidate: Candidate) -> tuple[str, str]:
    """The command that starts it, with the one value that would suit the work better."""
    lane, profile = candidate.lane, candidate.lane.profile
    pool = lane.pool.tokens if lane.pool else None
    command = f"dspark up -p {profile.name}"
    longest = _size(wanted.longest, wanted)
    if longest > LONGEST:
        return "", ""
    if longest > profile.max_model_len:
        length = -(-longest // profile.block_size) * profile.block_size
        return f"{command} --set max_model_len={length}", "the longest fit then, in a pool of another size"
    most = candidate.max_verify_rows and candidate.max_verify_rows // (profile.draft_tokens + 1)
    places = min(wanted.sessions, _fitting(wanted, pool, wanted.typical), most or wanted.sessions)
    if places > profile.max_num_seqs:
        return f"{command} --set max_num_seqs={places}", f"{places - profile.max_num_seqs} more of them run at once"
    if 0 < places < min(wanted.sessions, profile.max_num_seqs):
        why = "what is over waits for its turn, instead of being preempted and computed again"
        return f"{command} --set max_num_seqs={places}", why
    return command, ""


def _reasons(ranked: Ranked, wanted: Wanted) -> Iterator[str]:
    size = _size(wanted.longest, wanted)
    if size > ranked.max_model_len:
        yield f"{size} tokens are more than its max_model_len {ranked.max_model_len}"
    elif not ranked.serves_longest:
        yield f"{size} tokens are more than its whole pool of {ranked.pool_tokens}"
    if ranked.pool_used_pct is None:
        yield "its KV pool is not known"
    else:
        yield f"{ranked.pool_used_pct:.1f} % of a {ranked.pool_kind} pool of {ranked.pool_tokens} tokens"
    if ranked.waiting:
        yield f"{ranked.waiting} of {wanted.sessions} sessions wait: it runs {wanted.sessions - ranked.waiting} of them"
    if ranked.preempts:
        yield "were all at their longest, the pool would not hold them: some would be preempted and computed again"
    match _within(ranked.ttft, wanted.ttft_s):
        case False:
            yield f"the first token takes longer than {wanted.ttft_s:g} s"
        case None:
            yield f"whether the first token comes within {wanted.ttft_s:g} s was not measured"
        case _:
            pass


def _too_much(wanted: Wanted, ranked: Sequence[Ranked]) -> Iterator[str]:
    if not any(each.serves_longest for each in ranked):
        yield (
            f"no profile serves {_size(wanted.longest, wanted)} tokens: retrieve the parts that matter instead of "
            "sending all, or send the longest elsewhere"
        )


def _otherwise(wanted: Wanted, best: Ranked, lane: Lane) -> Iterator[str]:
    """What the best profile doesn't mend."""
    if best.serves_longest and _over(best.longest_ttft, max(_LONG_WAIT_S, wanted.ttft_s or 0)):
        yield (
            f"a prompt of {wanted.longest} tokens is read for {best.longest_ttft.low:.0f} s before its first token, "
            "and slows the others meanwhile: retrieve less, ask it at night, or send it elsewhere"
        )
    if wanted.ttft_s is not None and _over(best.ttft, wanted.ttft_s):
        yield from _shorter(wanted, best, lane)
    if best.waiting:
        yield f"even on {best.profile} {best.waiting} sessions wait: shorter contexts, or fewer at once"
    if best.reading_pct is not None and best.reading_pct > 100:  # noqa: PLR2004  all of the time
        yield (
            f"reading the prompts alone takes {best.reading_pct:.0f} % of the time: it works only while most of each "
            "is cached (an unchanged beginning), or with fewer turns or shorter contexts"
        )


def _shorter(wanted: Wanted, best: Ranked, lane: Lane) -> Iterator[str]:
    """The prompt that would be quick enough."""
    running = wanted.sessions - best.waiting
    sweep, limit = lane.sweep, wanted.ttft_s or 0
    if sweep is None:
        return
    columns = sorted({row.concurrency for row in sweep.rows if row.concurrency >= running})
    length = longest_within(sweep, columns[0], limit, wanted.typical) if columns else 0
    if length:
        yield f"within {limit:g} s come prompts of up to {length} tokens, {columns[0]} at once: retrieve that much"
    else:
        yield f"no prompt is known to be read within {limit:g} s with {running} at once: fewer at once"
