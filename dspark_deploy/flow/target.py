"""Where a run takes the pair: one release, what it serves, and the steps from what runs now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dspark_deploy.facts.node import Container
from dspark_deploy.plan.launch import HEAD_FIRST, Step, plan_up
from dspark_deploy.plan.served import Served
from dspark_deploy.plan.situation import Situation
from dspark_deploy.render.release import Release


@dataclass(frozen=True, slots=True)
class Previous:
    """The release that serves now and would be brought back."""

    release: str
    served: Served


@dataclass(frozen=True, slots=True)
class Target:
    """One release to bring about."""

    release: str
    served: Served
    files: Release | None  # None where both nodes keep it
    kept: Mapping[str, tuple[str, ...]]  # the releases that each node holds whole
    situation: Situation
    steps: tuple[Step, ...]
    ends: str | None  # the release that runs on both ranks and would be stopped
    previous: Previous | None  # the same, where it can be brought back
    question: str | None = None  # what has to be agreed to besides
    warnings: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    marks: frozenset[str] = frozenset()  # names of what earlier runs left on the nodes
    utilization: float | None = None  # share of the memory that has to be back after a stop

    def running(self) -> dict[str, Container]:
        """The ranks that run, by node."""
        alive = {node: self.situation.alive(node) for node in HEAD_FIRST}
        return {node: container for node, container in alive.items() if container is not None}

    def broken(self) -> Target:
        """The same, knowing that what runs does not serve: it is stopped and started again, and nobody loses it."""
        steps = plan_up(self.release, self.kept, self.situation, as_it_runs=False, utilization=self.utilization)
        return replace(self, steps=steps, ends=None, previous=None)


def plan_document(target: Target) -> dict[str, Any]:
    """What a run was to do, for its record."""
    return {
        "release": target.release,
        "served": target.served.document(),
        "steps": [str(step) for step in target.steps],
        "ends": target.ends,
        "warnings": list(target.warnings),
        "skipped": list(target.skipped),
        "marks": sorted(target.marks),
    }
