"""Open both nodes at once, and close whatever was opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from dspark_deploy.errors import NodeUnreachable
from dspark_deploy.flow.intention import read_settings
from dspark_deploy.flow.key import key_of
from dspark_deploy.flow.wish import Wish
from dspark_deploy.inventory import Inventory
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.connect import open_host
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import attempt


class OpenHosts(dict[str, Host]):
    """The open nodes by name. One whose connection broke can be opened anew in its place."""

    def __init__(self, open_one: Callable[[str], Host]) -> None:
        super().__init__()
        self._open_one = open_one

    def renew(self, node: str) -> None:
        """Open `node` again, or at last. Raises NodeUnreachable; the old connection is gone either way."""
        if node in self:
            self[node].close()
        self[node] = self._open_one(node)


@dataclass(frozen=True, slots=True)
class Reached:
    """The nodes that answered, and why the others did not."""

    hosts: OpenHosts
    unreachable: Mapping[str, NodeUnreachable]


@contextmanager
def reach_pair(inventory: Inventory, wish: Wish, clock: Clock) -> Iterator[Reached]:
    """Open what can be opened. For commands that have something to say about the other node too.

    Raises ConfigError where the API key can't be meant: the head alone has an API to ask with it.
    """
    nodes = {"head": inventory.head, "worker": inventory.worker}
    keys = {"head": key_of(inventory, read_settings(wish))}

    def open_one(name: str) -> Host:
        node = nodes[name]
        return open_host(
            name,
            node.spec,
            ssh_config=inventory.ssh_config,
            accept_new_host_keys=wish.accept_new_host_keys,
            fabric_address=None if node.fabric.address == "auto" else node.fabric.address,
            api_key=keys.get(name),
        )

    outcomes = attempt({name: partial(open_one, name) for name in nodes}, clock)
    hosts = OpenHosts(open_one)
    unreachable: dict[str, NodeUnreachable] = {}
    bug: BaseException | None = None
    for name, outcome in outcomes.items():
        if isinstance(outcome, NodeUnreachable):
            unreachable[name] = outcome
        elif isinstance(outcome, BaseException):
            bug = outcome
        else:
            hosts[name] = outcome
    try:
        if bug is not None:
            raise bug
        yield Reached(hosts, unreachable)
    finally:
        for host in hosts.values():
            host.close()


@contextmanager
def open_pair(inventory: Inventory, wish: Wish, clock: Clock) -> Iterator[OpenHosts]:
    """Open both. Raises NodeUnreachable, which tells of the second node too where neither answers."""
    with reach_pair(inventory, wish, clock) as reached:
        if reached.unreachable:
            raise _unreachable(list(reached.unreachable.values()))
        yield reached.hosts


def _unreachable(errors: list[NodeUnreachable]) -> NodeUnreachable:
    first, *others = errors
    also = "\n".join(f"and {other.message}" for other in others)
    return NodeUnreachable(
        first.message,
        why="\n".join(part for part in (first.why, also) if part),
        remedy=first.remedy,
        node=first.node,
    )
