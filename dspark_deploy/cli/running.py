"""What a command that is ended at once may leave behind, told by the steps that it has begun."""

from __future__ import annotations

import re

STOP = re.compile(r"^stop (?:(?P<container>\S+) on |the )(?P<node>head|worker)")
START = re.compile(r"^start the (?P<node>head|worker)")


class Running:
    """Both ranks, as far as this command has to do with them."""

    def __init__(self) -> None:
        self._left: dict[str, str] = {}
        self._stopping = ""

    def began(self, step: str) -> None:
        """A step begins."""
        if started := START.match(step):
            self._left[started["node"]] = f"the {started['node']}'s rank, which this run has started"
        elif stops := STOP.match(step):
            self._stopping = stops["node"]
            what = stops["container"] or "a rank of the pair"
            self._left[self._stopping] = f"{what} on the {self._stopping}, which was being stopped"

    def ended(self) -> None:
        """It ended well: what it stopped is gone."""
        if self._stopping:
            self._left.pop(self._stopping, None)
            self._stopping = ""

    def words(self) -> str:
        """What may run now; empty where nothing was touched."""
        return ", and ".join(self._left.values())
