"""Which HCA ports a NCCL_IB_HCA selector means, and which GID index they all can use.

The rules are NCCL's, as MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark resolves them before a launch (since 6674045,
2026-07-29). They are evaluated on the facts of one node: the index differs between nodes and moves when one boots.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from dspark_deploy.errors import CheckRefused
from dspark_deploy.facts.node import HcaPort, NodeFacts

_MOST = 32  # ports and tokens that NCCL looks at
_LONGEST_NAME = 63  # bytes of a device name that NCCL keeps
_MOST_DIGITS = 9  # a longer port number can't be one
_NO_PORT = -1


@dataclass(frozen=True, slots=True)
class Token:
    """`rocep1s0f0:1`. A port of None is any port."""

    name: str
    port: int | None


@dataclass(frozen=True, slots=True)
class Selector:
    """A NCCL_IB_HCA value, taken apart."""

    exclude: bool  # ^
    exact: bool  # =; else each name is a prefix
    tokens: tuple[Token, ...]

    def takes(self, port: HcaPort) -> bool:
        """Whether the selector, as a whole, selects this port. Without tokens it selects all."""
        hit = not self.tokens or any(self._hit(token, port) for token in self.tokens)
        return hit != self.exclude

    def _hit(self, token: Token, port: HcaPort) -> bool:
        named = port.device == token.name if self.exact else port.device.startswith(token.name)
        return named and token.port in {None, port.port}


def parse_selector(text: str) -> Selector:
    """Read `[^][=]name[:port[:rail[:plane]]],…`. Rail and plane don't select; a nameless token is dropped."""
    exclude = text.startswith("^")
    rest = text.removeprefix("^")
    tokens = [_token(each) for each in rest.removeprefix("=").split(",")]
    return Selector(exclude, rest.startswith("="), tuple(each for each in tokens if each.name)[:_MOST])


def selected_ports(ports: Sequence[HcaPort], selector: str) -> tuple[HcaPort, ...]:
    """The live ports that the selector takes. A port whose state can't be read counts as live."""
    live = [each for each in ports if each.state in {None, "ACTIVE"}]
    candidates = [each for each in live if each.link_layer in {None, "Ethernet", "InfiniBand"}][:_MOST]
    wanted = parse_selector(selector)
    return tuple(each for each in candidates if wanted.takes(each))


def usable_indexes(port: HcaPort, facts: NodeFacts, address: IPv4Address) -> dict[int, bool]:
    """Index -> whether it carries `address` itself. Usable: RoCE v2, mapping that or an IPv4 of the GID's netdev."""
    usable: dict[int, bool] = {}
    for gid in port.gids:
        own = [each.ip for netdev in facts.netdevs if netdev.name == gid.netdev for each in netdev.addresses]
        if gid.type == "RoCE v2" and any(gid.gid.endswith(_suffix(each)) for each in (address, *own)):
            usable[gid.index] = gid.gid.endswith(_suffix(address))
    return usable


def common_index(tables: Sequence[dict[int, bool]]) -> int | None:
    """The index that all ports of a rank can use: one that carries the rank's address first, then the lowest."""
    common = set.intersection(*(set(table) for table in tables)) if tables else set()
    reached = {index for index in common if any(table[index] for table in tables)}
    return min(reached or common, default=None)


def refuse_selector(facts: NodeFacts, selector: str) -> CheckRefused | None:
    """Why a selector can't be meant on this node: it takes no live port. None where it takes one."""
    if selected_ports(facts.hca_ports, selector):
        return None
    return CheckRefused(
        f"{facts.node}: no active HCA port matches {selector}",
        why=f"there is: {_listed(facts)}",
        remedy=f"correct {facts.node}.fabric.hca, or plug the cable in",
        node=facts.node,
        check="hca-selector",
    )


def prove_gid(facts: NodeFacts, selector: str, address: IPv4Address, pinned: int | None) -> int:
    """The common usable index of the selected ports; `pinned` where the inventory names one that will do.

    Raises CheckRefused: no live port is selected, one has no usable index, they have none in common, or the pinned
    one is not usable on each.
    """
    ports = selected_ports(facts.hca_ports, selector)
    if refusal := refuse_selector(facts, selector):
        raise refusal
    tables = [usable_indexes(port, facts, address) for port in ports]
    found = common_index(tables)
    seen = "; ".join(f"{port.device}:{port.port} {sorted(table)}" for port, table in zip(ports, tables, strict=True))
    if found is None:
        raise CheckRefused(
            f"{facts.node}: the ports of {selector} share no usable RoCE v2 GID index",
            why=f"one index serves all ports of a rank; usable are: {seen}",
            remedy=f"give each interface its IPv4 address, or narrow {facts.node}.fabric.hca",
            node=facts.node,
            check="gid-common",
        )
    if pinned is not None and not all(pinned in table for table in tables):
        raise CheckRefused(
            f"{facts.node}: GID index {pinned} is not usable on each port of {selector}",
            why=f"it moves when a node boots; usable are: {seen}",
            remedy=f"set {facts.node}.fabric.gid_index to auto, or to {found}",
            node=facts.node,
            check="gid-pinned",
        )
    return found if pinned is None else pinned


def _token(text: str) -> Token:
    name, colon, rest = text.partition(":")
    number = rest.partition(":")[0]
    short = name.encode()[:_LONGEST_NAME].decode(errors="ignore")
    return Token(short, _atoi(number) if colon and number else None)


def _atoi(text: str) -> int:
    """C's atoi: blanks, a sign, digits up to the first that is none; 0 without digits. Clamped, never any port."""
    match = re.match(r"[ \t\n\v\f\r]*([+-]?)0*(\d*)", text, re.ASCII)
    sign, digits = match.groups() if match else ("", "")
    if len(digits) > _MOST_DIGITS:
        return _NO_PORT
    return int(f"{sign}{digits or 0}")


def _suffix(address: IPv4Address) -> str:
    """How a GID ends that maps an IPv4 address: 10.0.0.1 is ffff:0a00:0001."""
    digits = address.packed.hex()
    return f"ffff:{digits[:4]}:{digits[4:]}"


def _listed(facts: NodeFacts) -> str:
    listed = ", ".join(f"{each.device}:{each.port} {each.state or 'unreadable'}" for each in facts.hca_ports)
    return listed or f"no RDMA device ({facts.missing.get('hca_ports', 'is the driver loaded?')})"
