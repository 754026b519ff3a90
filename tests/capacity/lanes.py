"""Lanes and work for tests: a bundled profile with its published pool and sweep, or with changes to either."""

from __future__ import annotations

from typing import Any

from dspark_deploy.bundled import SearchPath, data_folder
from dspark_deploy.capacity.budget import Lane
from dspark_deploy.capacity.measurements import load_measurements
from dspark_deploy.capacity.pool import Pool
from dspark_deploy.capacity.work import Group, Work
from dspark_deploy.profile import load_profile
from dspark_deploy.strict import Given

DATA = load_measurements()
SWEEP, MATRIX = DATA.sweeps
POOL = 2_493_464
LARGEST = max(boot.pool_tokens for boot in DATA.boots)
SEARCH = SearchPath((data_folder("profiles"),))


def lane(profile: str = "agent-1m", pool: int | None = POOL, kind: Any = "published", **changes: Any) -> Lane:
    """A profile's lane; `changes` are values of the profile, or `sweep` and `step_tokens`."""
    sweep = changes.pop("sweep", SWEEP)
    step_tokens = changes.pop("step_tokens", 8168)
    given = [Given(key, str(value), "--set") for key, value in changes.items()]
    known = load_profile(profile, SEARCH, given).profile
    return Lane(known, step_tokens, None if pool is None else Pool(pool, kind, "a boot"), LARGEST, sweep)


def work(sessions: int, prompt: int, output: int = 0) -> Work:
    """Sessions of one size."""
    return Work((Group(sessions, prompt, output),))
