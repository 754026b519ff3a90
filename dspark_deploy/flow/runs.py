"""Runs of this controller: the folders that changing runs left, whatever of them is there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dspark_deploy.errors import ConfigError
from dspark_deploy.flow.record import state_home
from dspark_deploy.flow.wish import Wish
from dspark_deploy.strict import nearest

OUTCOME, PLAN, EVENTS = "run.json", "plan.json", "events.jsonl"
LOGS = {"head": "head.log", "worker": "worker.log"}
RUN_ID = re.compile(r"\d{8}T\d{0,6}(-[0-9a-f]{0,6})?$")
SHOWN_EVENTS = 200  # the last ones
SHOWN_RUNS = 3  # in a hint


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One run, by the folder it left."""

    pair: str
    id: str
    path: Path

    def document(self, name: str) -> Mapping[str, Any]:
        """A JSON file of it; empty where it is not there, or was cut short."""
        try:
            found = json.loads((self.path / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def events(self) -> tuple[Mapping[str, Any], ...]:
        """What happened, in order; a line that a dead run left half-written is passed over."""
        try:
            lines = (self.path / EVENTS).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ()
        return tuple(each for each in map(_parsed, lines) if each is not None)

    def logs(self) -> dict[str, Path]:
        """Node -> what its rank printed."""
        return {node: self.path / name for node, name in LOGS.items() if self.path / name in self.files()}

    def files(self) -> tuple[Path, ...]:
        """Everything that lies there, in the order of names. A link is not followed: it may lead anywhere."""
        return tuple(sorted(each for each in self.path.iterdir() if each.is_file() and not each.is_symlink()))


@dataclass(frozen=True, slots=True)
class RunReport:
    """What one run's folder tells. What it does not hold is empty here."""

    run: str
    pair: str
    folder: str
    command: str | None
    began: str | None
    outcome: str | None
    message: str
    release: str | None
    profile: str | None
    seconds: Mapping[str, float]  # step -> seconds
    phases: Mapping[str, Mapping[str, float]]  # node -> phase of its boot -> seconds
    figures: Mapping[str, Mapping[str, Any]]  # node -> what its log stated
    findings: tuple[Mapping[str, Any], ...]
    skipped: tuple[str, ...]
    steps: tuple[str, ...]  # as planned
    events: tuple[Mapping[str, Any], ...]  # the last ones
    files: Mapping[str, int] = field(default_factory=dict)  # name -> bytes


def show_run(wish: Wish, name: str) -> RunReport:
    """What the run left. Raises ConfigError for one that this controller does not have."""
    run = find_run(wish, name)
    told, plan = run.document(OUTCOME), run.document(PLAN)
    served = plan.get("served") or {}
    return RunReport(
        run=run.id,
        pair=run.pair,
        folder=str(run.path),
        command=told.get("command"),
        began=told.get("began"),
        outcome=told.get("outcome"),
        message=told.get("message") or "",
        release=told.get("release") or plan.get("release"),
        profile=served.get("profile"),
        seconds=told.get("seconds") or {},
        phases=told.get("phases") or {},
        figures=told.get("figures") or {},
        findings=tuple(told.get("findings") or ()),
        skipped=tuple(told.get("skipped") or ()),
        steps=tuple(plan.get("steps") or ()),
        events=run.events()[-SHOWN_EVENTS:],
        files={each.name: each.stat().st_size for each in run.files()},
    )


def find_run(wish: Wish, name: str) -> RunFolder:
    """The run of that id, of any pair; the beginning of an id is enough, `last` is the newest. Raises ConfigError."""
    every = all_runs(wish)
    if name == "last" and every:
        return every[-1]
    matches = [run for run in every if run.id.startswith(name)] if name else []
    exact = [run for run in matches if run.id == name]
    if len(exact) == 1 or len(matches) == 1:
        return (exact or matches)[0]
    if matches:
        told = ", ".join(run.id for run in matches[-SHOWN_RUNS:])
        raise ConfigError(f"{name} begins {len(matches)} runs: {told}", remedy="give more of the id")
    guess = nearest(name, [run.id for run in every])
    hint = f"did you mean {guess}? " if guess else ""
    newest = ", ".join(run.id for run in every[-SHOWN_RUNS:])
    raise ConfigError(
        f"this machine has no record of a run {name}",
        why="a run's record lies on the machine that it was started on; `dspark history` says which that was",
        remedy=f"{hint}the newest here: {newest or 'none'}",
    )


def logs_of_run(wish: Wish, name: str) -> tuple[Path, ...]:
    """What the ranks of that run printed, head first. Raises ConfigError where it kept no log."""
    run = find_run(wish, name)
    logs = run.logs()
    if not logs:
        outcome = run.document(OUTCOME).get("outcome") or "unknown"
        raise ConfigError(
            f"run {run.id} kept no log of a rank: its outcome is {outcome}",
            why="a run that started no rank has none to keep",
            remedy=f"`dspark history show {run.id}` shows what it left; `dspark logs` what runs now",
        )
    return tuple(logs.values())


def is_run_id(text: str) -> bool:
    """Whether it looks like the name of a run, or the beginning of one."""
    return text == "last" or RUN_ID.match(text) is not None


def all_runs(wish: Wish) -> list[RunFolder]:
    """Those that left a folder here, oldest first: their ids begin with the time."""
    home = state_home(wish.environment, wish.home) / "dspark"
    found = [RunFolder(path.parts[-3], path.name, path) for path in home.glob("*/runs/*") if path.is_dir()]
    return sorted(found, key=lambda run: run.id)


def _parsed(line: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
