"""What a rank that runs has printed: what makes it slow or unsafe, and when it last had something to do."""

from __future__ import annotations

import re
from collections import deque
from contextlib import closing

from dspark_deploy.boot.events import Node
from dspark_deploy.boot.reader import BootReader
from dspark_deploy.boot.record import Boot
from dspark_deploy.boot.rules import Rules
from dspark_deploy.facts.node import Container
from dspark_deploy.facts.patches import PatchOutcome, patch_outcomes, tells_of_patches
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Engine, LogLine

FIRST_LINES = 4000  # a boot prints about 1500, and what it warns of stands there
LAST_LINES = 1000  # a server prints six lines a minute and one a request
READ_EVERY_S = 10.0  # a stream is opened on the node for it
PATCH_LINES = 1000  # of which apply.py prints a few dozen a start
MARGIN_S = 2.0  # lines that came while the last ones were read
_THROUGHPUT = re.compile(r"Avg prompt throughput: (\S+) tokens/s, Avg generation throughput: (\S+) tokens/s")
_NODES: dict[str, Node] = {"head": "head", "worker": "worker"}


class RankLog:
    """The log of one rank, read again and again: its beginning and its end the first time, then what is new.

    What a long-lived server printed in the middle is not read: it may be gigabytes.
    """

    def __init__(self, node: str, container: Container, rules: Rules) -> None:
        self.container = container
        self._reader = BootReader(rules, _NODES[node], progress=False)
        self._last_at = ""
        self._read_s: float | None = None
        self._of_patches: deque[str] = deque(maxlen=PATCH_LINES)
        self.busy_at: str | None = None  # the last line that tells of tokens; RFC 3339, the node's clock

    @property
    def boots(self) -> tuple[Boot, ...]:
        """What it tells so far."""
        return self._reader.boots

    @property
    def patches(self) -> tuple[PatchOutcome, ...]:
        """What became of the release's patches, as far as it tells."""
        return patch_outcomes(self._of_patches)

    def read(self, engine: Engine, clock: Clock) -> None:
        """Take what is there now, unless that was done just before. Raises StepFailed or NodeUnreachable."""
        now = clock.now()
        if self._read_s is not None and now - self._read_s < READ_EVERY_S:
            return
        if self._read_s is None:
            if not self._take(engine, most=FIRST_LINES):
                self._take(engine, tail=LAST_LINES)
        else:
            self._take(engine, since_s=now - self._read_s + MARGIN_S)
        self._read_s = now

    def _take(
        self, engine: Engine, *, most: int | None = None, tail: int | None = None, since_s: float | None = None
    ) -> bool:
        """Read on from the last line that was read. Whether the log ended within `most` lines."""
        taken: list[LogLine] = []
        whole = True
        with closing(engine.logs(self.container.id, tail=tail, since_s=since_s)) as lines:
            for number, line in enumerate(lines):
                if number == most:
                    whole = False
                    break
                if line.at > self._last_at:
                    taken.append(line)
        if taken:
            self._last_at = taken[-1].at
            self._reader.feed("".join(f"{line.text}\n" for line in taken).encode())
            self._of_patches.extend(line.text for line in taken if tells_of_patches(line.text))
            self.busy_at = next((line.at for line in reversed(taken) if _tells_of_tokens(line.text)), self.busy_at)
        return whole


def _tells_of_tokens(text: str) -> bool:
    found = _THROUGHPUT.search(text)
    return found is not None and any(rate.strip("0.") for rate in found.groups())
