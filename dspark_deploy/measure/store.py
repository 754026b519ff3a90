"""Measurements on the controller: each with what produced it, in `$XDG_STATE_HOME/dspark/NAME/measurements/ID/`."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from pydantic import TypeAdapter

from dspark_deploy.checks.finding import Finding
from dspark_deploy.errors import ConfigError
from dspark_deploy.measure.bench_decode import Method
from dspark_deploy.measure.churn import ChurnResult
from dspark_deploy.measure.client import Tally
from dspark_deploy.measure.compare import Comparison
from dspark_deploy.measure.decode import Lane
from dspark_deploy.measure.deep import DeepResult
from dspark_deploy.measure.gate import GateResult
from dspark_deploy.measure.lanes import Drift
from dspark_deploy.measure.overhead import Overhead
from dspark_deploy.measure.sweep import Cell, Plan
from dspark_deploy.strict import nearest

NAME = "measurement.json"
Kind = Literal["smoke", "gate", "churn", "deep", "decode", "sweep", "compare"]


@dataclass(frozen=True, slots=True)
class SmokeResult:
    """The smoke's findings and the seconds that each took."""

    findings: tuple[Finding, ...]
    seconds: tuple[float, ...]

    @property
    def passed(self) -> bool:
        """Whether none fails."""
        return all(each.status != "fail" for each in self.findings)


@dataclass(frozen=True, slots=True)
class DecodeResult:
    """Decode rates, and the published lane that they were set beside."""

    method: Method
    lanes: tuple[Lane, ...]
    expected: str | None = None
    expected_source: str | None = None
    band: float | None = None
    drift: tuple[Drift, ...] = ()


@dataclass(frozen=True, slots=True)
class SweepResult:
    """A sweep as far as it has come."""

    plan: Plan
    cells: tuple[Cell, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[tuple[int, int], ...]:
        """Cells of the plan that are still to be measured."""
        done = {(cell.prompt, cell.concurrency) for cell in self.cells}
        return tuple(each for each in self.plan.cells if each not in done)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Origin:
    """What produced a measurement. By node where it differs; None where it could not be told."""

    pair: str
    profile: str
    family: str
    release: str
    model: str
    served_name: str
    max_model_len: int
    image: str
    image_ids: Mapping[str, str] = field(default_factory=dict)
    argv: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    kv_pool_tokens: int | None = None
    server_version: str | None = None
    dspark_version: str = ""

    @property
    def max_num_seqs(self) -> int | None:
        """How many requests run at once, as the head's command line has it."""
        words = self.argv.get("head", ())
        for flag, value in pairwise(words):
            if flag == "--max-num-seqs" and value.isdigit():
                return int(value)
        return None


@dataclass(frozen=True, slots=True)
class Measurement(Generic[T]):
    """One measurement, whole. `result` is of its kind's type."""

    id: str
    kind: Kind
    began: str  # RFC 3339
    seconds: float
    origin: Origin
    result: T
    overhead: Overhead | None = None
    tally: Tally | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Kind:
    """What tells how to read the rest."""

    kind: Kind


_TYPES: Mapping[Kind, TypeAdapter[Any]] = {
    "smoke": TypeAdapter(Measurement[SmokeResult]),
    "gate": TypeAdapter(Measurement[GateResult]),
    "churn": TypeAdapter(Measurement[ChurnResult]),
    "deep": TypeAdapter(Measurement[DeepResult]),
    "decode": TypeAdapter(Measurement[DecodeResult]),
    "sweep": TypeAdapter(Measurement[SweepResult]),
    "compare": TypeAdapter(Measurement[Comparison]),
}


class Store:
    """One pair's measurements."""

    def __init__(self, state_home: Path, pair: str) -> None:
        self.folder = state_home / "dspark" / pair / "measurements"

    def write(self, measurement: Measurement[Any]) -> Path:
        """Keep it, over an earlier state of the same one. Its file; raises OSError."""
        folder = self.folder / measurement.id
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        unfinished = folder / f".{NAME}"
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(_TYPES[measurement.kind].dump_json(measurement, indent=1))
        return unfinished.replace(folder / NAME)

    def all(self, kind: Kind | None = None) -> tuple[Measurement[Any], ...]:
        """Every one that can be read, the oldest first. What another version of dspark kept may be left out."""
        found = []
        for path in sorted(self.folder.glob(f"*/{NAME}")):
            try:
                measurement = read_measurement(path)
            except (OSError, ValueError):
                continue  # of another version, or cut off
            if kind in {None, measurement.kind}:
                found.append(measurement)
        return tuple(found)

    def named(self, name: str) -> Measurement[Any]:
        """One by its id or the beginning of it, or by a file's path. Raises ConfigError."""
        if name.endswith(".json"):
            try:
                return read_measurement(Path(name))
            except (OSError, ValueError) as error:
                raise ConfigError(f"{name} is no measurement of dspark: {error}", remedy="name a kept one") from error
        known = self.all()
        fitting = [each for each in known if each.id.startswith(name)]
        if len(fitting) == 1 or any(each.id == name for each in fitting):
            return next((each for each in fitting if each.id == name), fitting[0])
        guess = nearest(name, [each.id for each in known])
        hint = f"did you mean `{guess}`? " if guess else ""
        what = f"{len(fitting)} measurements begin with" if fitting else "no measurement is called"
        raise ConfigError(f"{what} `{name}`", remedy=f"{hint}`dspark report --list` shows all {len(known)}")


def new_id(kind: Kind, now: datetime | None = None) -> str:
    """`20260901T101500-decode-3fa2c1`."""
    return f"{now or datetime.now(UTC):%Y%m%dT%H%M%S}-{kind}-{secrets.token_hex(3)}"


def read_measurement(path: Path) -> Measurement[Any]:
    """One file. Raises OSError or ValueError where it is none."""
    content = path.read_bytes()
    kind = TypeAdapter(_Kind).validate_json(content).kind
    kept: Measurement[Any] = _TYPES[kind].validate_json(content)
    return kept
