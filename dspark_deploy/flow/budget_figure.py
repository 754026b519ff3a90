"""A measured sweep as `budget --plot` would draw it: the pool that was announced, its longest prompt marked."""

from __future__ import annotations

from dspark_deploy.capacity.budget import Lane
from dspark_deploy.capacity.measurements import Sweep
from dspark_deploy.capacity.picture import draw
from dspark_deploy.capacity.pool import Pool
from dspark_deploy.capacity.work import Group, Work
from dspark_deploy.flow.own_sweeps import as_sweep
from dspark_deploy.measure.report.page import Figure
from dspark_deploy.measure.store import Measurement, SweepResult
from dspark_deploy.plan.capture import scheduled_token_budget
from dspark_deploy.plan.catalogue import Catalogue
from dspark_deploy.profile import Profile


def budget_figure(measurement: Measurement[SweepResult], catalogue: Catalogue) -> Figure | None:
    """None where nothing was measured yet, or the profile is not known here any more."""
    profile = catalogue.every_profile().get(measurement.origin.profile)
    if not isinstance(profile, Profile) or not any(cell.ttft_s for cell in measurement.result.cells):
        return None
    sweep = as_sweep(measurement, profile.model)
    work, lane = _heaviest(sweep), _lane(measurement, profile, sweep)
    group = work.longest
    what = f"{group.sessions} sessions of {group.session_tokens} tokens"
    pool = f"a KV pool of {lane.pool.tokens} tokens" if lane.pool else "a KV pool that is not known"
    return Figure(
        alt=f"TTFT and throughput over the prompt length, {group.sessions} at a time, and {what} in {pool}.",
        caption=f"What it means for capacity: {what}, the heaviest that were measured, in {pool}. "
        "`dspark budget --plot FILE` draws it for your own work.",
        svg=draw(work, lane, "svg"),
    )


def _heaviest(sweep: Sweep) -> Work:
    """The longest prompt with as many at once as were measured."""
    most = max(row.concurrency for row in sweep.rows)
    prompt = max(row.prompt for row in sweep.rows if row.concurrency == most)
    return Work((Group(most, prompt, sweep.output_tokens),))


def _lane(measurement: Measurement[SweepResult], profile: Profile, sweep: Sweep) -> Lane:
    """As it ran: what `--set` changed stands on the command line, not in the profile."""
    origin = measurement.origin
    ran = {"max_model_len": origin.max_model_len, "max_num_seqs": origin.max_num_seqs or profile.max_num_seqs}
    profile = profile.model_copy(update=ran)
    tokens = origin.kv_pool_tokens
    pool = Pool(tokens, "recorded", f"the boot that {measurement.id} measured") if tokens else None
    return Lane(profile, scheduled_token_budget(profile), pool, tokens or 0, sweep)
