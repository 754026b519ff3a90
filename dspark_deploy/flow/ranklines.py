"""Lines of both ranks as `logs` shows them, and where they come from."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from dspark_deploy.facts.node import Container
from dspark_deploy.facts.stamps import SECOND, rfc3339, shifted
from dspark_deploy.plan.launch import HEAD_FIRST
from dspark_deploy.plan.situation import ALIVE
from dspark_deploy.remote.host import Engine, LogLine
from dspark_deploy.watch.skew import measure_skew

NEW_RANK_S = 60.0  # how long a follower waits for a new rank once none runs: a restart brings one by then


@dataclass(frozen=True, slots=True)
class RankLine:
    """One line and where it comes from. `at` is RFC 3339 by this machine's clock: the node's, less its skew."""

    node: str
    at: str
    text: str
    by_dspark: bool = False  # no rank printed it: it tells what happened to one


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Which lines. `since_s` counts back from each node's own now, so that clocks need not agree."""

    nodes: tuple[str, ...] = HEAD_FIRST
    follow: bool = False
    since_s: float | None = None
    tail: int | None = None  # lines of each rank; None: all
    pattern: re.Pattern[str] | None = None
    new_rank_s: float = NEW_RANK_S

    def wants(self, line: RankLine) -> bool:
        """Whether the line is to be shown. What dspark itself has to say always is."""
        return line.by_dspark or self.pattern is None or self.pattern.search(line.text) is not None


@dataclass(frozen=True, slots=True)
class Source:
    """One rank's log: where it comes from, and how far that node's clock is off."""

    node: str
    container: Container
    skew_s: float

    def mark(self, line: LogLine) -> RankLine:
        """A line as it is merged with the other rank's."""
        # A progress bar redraws itself with carriage returns: its last state is what counts.
        text = line.text.rstrip("\r\n").rsplit("\r", 1)[-1]
        return RankLine(self.node, self.here(line.at), text)

    def here(self, stamp: str) -> str:
        """A time of the node by this machine's clock."""
        return shifted(stamp, -self.skew_s)


def source_of(node: str, engine: Engine, container: Container | None) -> Source | None:
    """The log of a node's rank; None without one. Raises StepFailed or NodeUnreachable."""
    return None if container is None else Source(node, container, measure_skew(engine))


def newest(containers: tuple[Container, ...]) -> Container | None:
    """The one that runs, else the one that was started last."""
    return max(containers, key=lambda each: (each.state in ALIVE, each.started_at or ""), default=None)


def said(node: str, text: str, at: str | None = None) -> RankLine:
    """What dspark has to say in between: of now, or of another time by this machine's clock."""
    return RankLine(node, at or rfc3339(round(time.time() * SECOND)), f"[dspark: {text}]", by_dspark=True)
