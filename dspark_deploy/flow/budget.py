"""`budget`: what a piece of work needs and how fast it would be. Asks no host unless its tokens are counted there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dspark_deploy.capacity.budget import Derived, Interpolated, Lane, Measured, make_budget
from dspark_deploy.capacity.doubts import error_band
from dspark_deploy.capacity.measurements import Measurements, Sweep, load_measurements, load_sweep
from dspark_deploy.capacity.pool import choose_pool
from dspark_deploy.capacity.sweep import choose_sweep
from dspark_deploy.capacity.textsize import whole
from dspark_deploy.capacity.work import Group, Work, parse_mix
from dspark_deploy.errors import ConfigError
from dspark_deploy.family import Family
from dspark_deploy.flow.catalogue import catalogue_of
from dspark_deploy.flow.intention import flags_of, read_settings
from dspark_deploy.flow.own import NOTHING, Own
from dspark_deploy.flow.pieces import in_pieces
from dspark_deploy.flow.scan import Counted, ScanReport, ScanRules, scan, usable_processes
from dspark_deploy.flow.tokens import Counter, OpenCounter
from dspark_deploy.flow.wish import Wish
from dspark_deploy.inventory import load_inventory
from dspark_deploy.plan.capture import scheduled_token_budget
from dspark_deploy.plan.resolve import Workload, resolve_workload
from dspark_deploy.plan.shape import shape_of
from dspark_deploy.profile import Profile
from dspark_deploy.strict import from_home, nearest

DEFAULT_PROFILE = "agent-1m"
OUTPUT_TOKENS = 2048  # of an answer, where nobody says; what a mix names is all that its sessions hold


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about. Lengths are tokens; None and empty: not said."""

    prompt_tokens: int | None = None
    paths: tuple[Path, ...] = ()
    rules: ScanRules = field(default_factory=ScanRules)
    text: Callable[[int], bytes] | None = None  # reads at most so many bytes
    mix: str | None = None
    output_tokens: int | None = None
    concurrency: int | None = None
    kv_pool: int | None = None
    sweep: str | None = None  # a published one's name, or a file


@dataclass(frozen=True, slots=True)
class TextReport:
    """Text that was counted, and by what."""

    tokens: int
    counted_by: str
    scan: ScanReport | None


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """The answer."""

    profile: str
    family: str
    model: str
    text: TextReport | None
    measured: Measured
    interpolated: Interpolated | None
    derived: Derived | None
    no_number: str | None  # why there are no interpolated figures
    verdict: tuple[str, ...]
    prediction_error: str | None  # how far such predictions were off, where the pool is one
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """The report, and what a picture of it is drawn from."""

    report: BudgetReport
    work: Work
    lane: Lane


def work_out(
    wish: Wish,
    question: Question,
    open_counter: OpenCounter,
    watch: Callable[[Counted], None] = lambda _: None,
    own: Own = NOTHING,
) -> Answer:
    """Answer the question for the profile that is wished for; without one for the inventory's, or agent-1m.

    `own` is what is known of the pair itself. Raises ConfigError.
    """
    workload, warnings = read_workload(wish)
    data = load_measurements()
    text, counter_warnings = _count(question, workload, open_counter, watch)
    work = _work(question, text)
    lane = make_lane(workload, data, own, kv_pool=question.kv_pool, sweep=question.sweep)
    budget = make_budget(work, lane)
    predicted = lane.pool is not None and lane.pool.kind == "predicted"
    report = BudgetReport(
        profile=workload.profile.name,
        family=workload.family.name,
        model=workload.model.name,
        text=text,
        measured=budget.measured,
        interpolated=budget.interpolated,
        derived=budget.derived,
        no_number=budget.no_number,
        verdict=budget.verdict,
        prediction_error=error_band(data) if predicted else None,
        warnings=(*warnings, *counter_warnings, *_shape_warnings(workload.profile, workload.family)),
    )
    return Answer(report, work, lane)


def read_workload(wish: Wish) -> tuple[Workload, tuple[str, ...]]:
    """Profile, model and family as `up` would resolve them, with warnings; an inventory is not needed."""
    settings = read_settings(wish)
    name = wish.profile or settings.profile
    if name is None and (settings.inventory.exists() or wish.inventory):
        name = load_inventory(settings.inventory).profile
    workload = resolve_workload(catalogue_of(wish), name or DEFAULT_PROFILE, (*flags_of(wish), *settings.given))
    return workload, settings.warnings


def make_lane(
    workload: Workload, data: Measurements, own: Own, *, kv_pool: int | None = None, sweep: str | None = None
) -> Lane:
    """What is known of a workload's speed and pool; `kv_pool` and `sweep` (a name or a file) were asked for."""
    return Lane(
        profile=workload.profile,
        step_tokens=scheduled_token_budget(workload.profile),
        pool=choose_pool(data, shape_of(workload), given=kv_pool, recorded=own.boots),
        largest_pool=max(boot.pool_tokens for boot in data.boots),
        sweep=_sweep(sweep, data, workload, own),
    )


def _sweep(named: str | None, data: Measurements, workload: Workload, own: Own) -> Sweep | None:
    """The sweep that is named, else the one that speaks for the workload."""
    if named is None:
        family, model = workload.family.name, workload.model.name
        return choose_sweep(own.sweeps, data.sweeps, family=family, model=model, patches=own.patches_of(workload))
    if "/" in named or named.endswith((".yaml", ".yml")):
        return load_sweep(from_home(Path(named)))
    known = {each.name: each for each in (*data.sweeps, *own.sweeps)}
    if named not in known:
        guess = nearest(named, known)
        hint = f"did you mean `{guess}`? " if guess else ""
        raise ConfigError(f"no sweep is called `{named}`", remedy=f"{hint}known: {', '.join(known)}, or a file")
    return known[named]


def _count(
    question: Question, workload: Workload, open_counter: OpenCounter, watch: Callable[[Counted], None]
) -> tuple[TextReport | None, tuple[str, ...]]:
    """The text that was given, counted; None where none was."""
    if question.text is None and not question.paths:
        return None, ()
    with open_counter(workload.model) as counter:
        read = _read(question, counter)
        found = None
        if question.paths:
            processes = usable_processes() if counter.plain else 1
            found = scan(question.paths, question.rules, counter.count, watch, processes=processes)
        tokens = whole(read) + (found.tokens if found else 0)
        return TextReport(tokens, counter.said, found), counter.warnings


def _read(question: Question, counter: Counter) -> float:
    return sum(counter.count(piece) for piece in in_pieces(question.text)) if question.text else 0.0


def _work(question: Question, text: TextReport | None) -> Work:
    if question.mix is not None:
        return parse_mix(question.mix, question.output_tokens or 0)
    prompt = (question.prompt_tokens or 0) + (text.tokens if text else 0)
    if not prompt:
        raise ConfigError("nothing was found to count", remedy="name files that hold text, or say --prompt-tokens")
    output = OUTPUT_TOKENS if question.output_tokens is None else question.output_tokens
    return Work((Group(question.concurrency or 1, prompt, output),))


def _shape_warnings(profile: Profile, family: Family) -> Iterator[str]:
    most = family.max_verify_rows
    if most is not None and profile.verify_rows > most:
        yield (
            f"`up` refuses this shape: {profile.verify_rows} verify rows, and family {family.name} survives {most}; "
            f"max_num_seqs can be {most // (profile.draft_tokens + 1)}"
        )
