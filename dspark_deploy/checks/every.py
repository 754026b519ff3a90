"""All checks, in the order in which their findings are shown. A new check is one entry in its subject's file."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from dspark_deploy.checks import (
    changes,
    docker,
    fabric,
    gpu,
    image,
    layout,
    link,
    memory,
    mounts,
    nodes,
    patches,
    pool,
    ports,
    ranks,
    state,
)
from dspark_deploy.checks.case import Case
from dspark_deploy.checks.check import Check
from dspark_deploy.checks.finding import Finding
from dspark_deploy.errors import ConfigError
from dspark_deploy.strict import nearest

CHECKS: tuple[Check, ...] = (
    *nodes.CHECKS,
    *changes.CHECKS,
    *state.CHECKS,
    *docker.CHECKS,
    *gpu.CHECKS,
    *memory.CHECKS,
    *pool.CHECKS,
    *image.CHECKS,
    *layout.CHECKS,
    *patches.CHECKS,
    *mounts.CHECKS,
    *fabric.CHECKS,
    *link.CHECKS,
    *ports.CHECKS,
    *ranks.CHECKS,
)


def judge(case: Case) -> tuple[Finding, ...]:
    """What every check says of `case`."""
    return tuple(finding for check in CHECKS for finding in check.findings(case))


def excuse(findings: tuple[Finding, ...], skipped: Collection[str]) -> tuple[Finding, ...]:
    """The same, with what fails under an id of `skipped` taken for seen. It stays among the findings."""
    return tuple(
        replace(each, status="skip", message=f"skipped on request: {each.message}")
        if each.status == "fail" and each.id in skipped
        else each
        for each in findings
    )


def expect_known(skipped: Collection[str], also: Collection[str] = ()) -> None:
    """Raise ConfigError for an id that no check has; `also` are ids of checks that are not of a start."""
    known = {*(check.id for check in CHECKS), *also}
    for each in skipped:
        if each not in known:
            guess = nearest(each, known)
            hint = f"did you mean {guess}?" if guess else f"known: {', '.join(sorted(known))}"
            raise ConfigError(f"--skip {each}: there is no such check", remedy=hint)
