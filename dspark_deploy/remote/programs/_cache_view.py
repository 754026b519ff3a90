"""The node's files as a container sees them through its mounts.

A link that is fine on the node may lead nowhere in the container: out of every mount, or to an absolute path that only
the node has. So links are followed here one component at a time, as the kernel does it inside the container.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_LINKS = 40  # the kernel's own limit


class Leaves(Exception):
    """A link leads out of every mount. `link` is its path on the node, `target` what it says."""

    def __init__(self, link: str, target: str) -> None:
        super().__init__(f"{link} -> {target}")
        self.link = link
        self.target = target


class View:
    """Paths inside the container as paths on the node. `mounts` are folders inside -> folders on the node."""

    def __init__(self, mounts: Mapping[str, str]) -> None:
        # A bind mount follows its source's links when it is made. The deepest mount covers those above it.
        self._mounts = sorted(((inside, os.path.realpath(outside)) for inside, outside in mounts.items()), reverse=True)
        self._targets: dict[str, str | None] = {}

    def follow(self, path: str) -> str:
        """Where the file lies on the node that `path` is in the container.

        Raises Leaves, or OSError as the container would meet it: ENOENT for a link to nothing, ELOOP, EACCES.
        """
        place, rest, links = "", path.split("/")[::-1], 0
        left = Leaves(path, path)
        while rest:
            part = rest.pop()
            if part in {"", "."}:
                continue
            if part == "..":
                place = place.rpartition("/")[0]
                continue
            step = f"{place}/{part}"
            target = self._target(step, left)
            if target is None:
                place = step
                continue
            links += 1
            if links > MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), self.on_node(step))
            left = Leaves(self.on_node(step) or step, target)
            if target.startswith("/"):
                place = ""
            rest += target.split("/")[::-1]
        found = self.on_node(place)
        if found is None:
            raise left
        return found

    def on_node(self, path: str) -> str | None:
        """The same path on the node, no link followed; None outside of every mount."""
        for inside, outside in self._mounts:
            if path == inside or path.startswith(f"{inside}/"):
                return outside + path[len(inside) :]
        return None

    def _target(self, step: str, left: Leaves) -> str | None:
        """What the link at `step` says; None where it is none. Every folder is looked at once."""
        if step not in self._targets:
            self._targets[step] = self._read(step, left)
        return self._targets[step]

    def _read(self, step: str, left: Leaves) -> str | None:
        if any(inside == step or inside.startswith(f"{step}/") for inside, _ in self._mounts):
            return None  # a mount, or a folder of the container on the way to one
        path = self.on_node(step)
        if path is None:
            raise left
        try:
            return os.readlink(path)
        except OSError as error:
            if error.errno == errno.EINVAL:  # there, and no link
                return None
            raise
