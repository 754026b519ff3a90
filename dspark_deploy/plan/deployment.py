"""The deployment: inventory, profile, model, family, overrides and facts, resolved into one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import PurePosixPath
from typing import Literal

from dspark_deploy.family import Family
from dspark_deploy.model import Model
from dspark_deploy.plan.patches import Carried
from dspark_deploy.profile import Profile

NodeName = Literal["head", "worker"]


@dataclass(frozen=True, slots=True)
class Rank:
    """One rank and the node it runs on. The head is rank 0."""

    number: int
    node: NodeName
    interface: str  # carries NCCL's bootstrap, GLOO and TP sockets
    address: IPv4Address  # this rank's own fabric address
    hca: str | None  # NCCL_IB_HCA selector; None where the family passes no RDMA device
    gid_index: int | None  # None: NCCL chooses
    hf_home: PurePosixPath  # absolute, on that node
    hub_cache: PurePosixPath | None = None  # absolute; None: hf_home/hub

    @property
    def headless(self) -> bool:
        """The head alone serves the API."""
        return self.number != 0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the head listens for clients."""

    bind: str
    port: int

    @property
    def probe_address(self) -> str:
        """What to dial on the head itself: a wildcard is answered on loopback."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(self.bind, self.bind)  # noqa: S104  compared, not bound


@dataclass(frozen=True, slots=True)
class Override:
    """A value that did not come from its usual place."""

    key: str
    value: str
    source: str  # `--set`, `DSPARK_MAX_NUM_SEQS`, `.env line 3`, …
    replaced: str  # what it would have been


@dataclass(frozen=True, slots=True)
class Deployment:
    """The fully resolved intention. Same input, same value: no clock, no network, no environment."""

    pair: str
    profile: Profile
    model: Model
    family: Family
    image: str  # plain reference; what both ranks run
    ranks: tuple[Rank, Rank]  # head first
    api: Endpoint
    master_port: int
    offline: bool
    restart: str
    sources: Mapping[str, str]  # profile value, or `head.address`, … -> where it came from
    overrides: tuple[Override, ...] = ()
    warnings: tuple[str, ...] = ()
    digest: str | None = None  # sha256:… of `image`, compared where a node knows one
    keyed: bool = False  # the API asks for a key; the key itself is in no plan
    patches: tuple[Carried, ...] = ()  # the user's own, in order

    @property
    def head(self) -> Rank:
        """Rank 0."""
        return self.ranks[0]

    @property
    def worker(self) -> Rank:
        """Rank 1."""
        return self.ranks[1]

    @property
    def served_name(self) -> str:
        """What clients put in `model`."""
        return self.profile.served_model_name or self.model.served_name
