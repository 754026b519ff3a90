"""What an inventory holds, and what each of its values alone may be."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, ip_address
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from dspark_deploy.inventory.host import HostSpec, parse_host
from dspark_deploy.patch import Patch
from dspark_deploy.strict import Mistake, Name, Strict, Text

Port = Annotated[int, Field(ge=1, le=65535)]
Auto = Literal["auto"]

_LINK_LOCAL = IPv4Network("169.254.0.0/16")
_LONGEST_INTERFACE = 15  # bytes, Linux's IFNAMSIZ less the end mark


def _host(text: str) -> str:
    parse_host(text)
    return text


def _interface(text: str) -> str:
    if text.startswith("^") or any(each in text for each in ",*=?") or len(text.encode()) > _LONGEST_INTERFACE:
        raise Mistake(
            "it is a list or a pattern, not one interface: GLOO and TP need a concrete name, NCCL's own forms don't do",
            remedy="give one interface of this node, or auto",
        )
    if text == "lo" or any(each.isspace() or each in "/:" for each in text):
        raise Mistake("it can't be an interface between two nodes", remedy="give the fabric's interface, or auto")
    return text


def _fabric_address(address: IPv4Address) -> IPv4Address:
    if address.is_loopback or address.is_unspecified or address.is_multicast:
        raise Mistake("the other node can't reach it", remedy="give this node's own address on the fabric, or auto")
    return address


def _selector(text: str) -> str:
    if any(each.isspace() for each in text) or not all(text.lstrip("^=").split(",")):
        raise Mistake("it holds a blank or no device", remedy='write it as NCCL reads it: "=rocep1s0f0,roceP2p1s0f0"')
    return text


def _node_path(text: str) -> str:
    """A path on a node: absolute, or below that node's own home."""
    if "$" in text or "%" in text:
        raise Mistake("no variable is expanded in it", remedy="write the path out, or begin it with ~/")
    if re.match(r"[A-Za-z]:|/Users/|/mnt/[a-z]/|\\", text):
        raise Mistake("it is a path of a Mac or of Windows, not of the node", remedy="give the path on the node")
    if any(not each.isprintable() for each in text):
        raise Mistake("it holds an unprintable character", remedy="write the path out")
    if not (text == "~" or text.startswith(("/", "~/"))):
        raise Mistake("it is relative", remedy="give an absolute path, or one that begins with ~/")
    if not set(text.split("/")) - {"", ".", ".."}:
        raise Mistake("it is the root of the node's disk", remedy="give a folder of its own, or one below ~/")
    return text


def _bind(text: str) -> str:
    try:
        ip_address("127.0.0.1" if text == "localhost" else text)
    except ValueError as error:
        raise Mistake("it is no address", remedy="give 0.0.0.0, 127.0.0.1 or an address of the head") from error
    return text


NodePath = Annotated[Text, AfterValidator(_node_path)]


class Fabric(Strict):
    """How a node is wired to its peer. `auto` is discovered by the probe."""

    interface: Annotated[Text, AfterValidator(_interface)] = "auto"
    address: Annotated[IPv4Address, AfterValidator(_fabric_address)] | Auto = "auto"
    prefix: Annotated[int, Field(ge=8, le=31)] | None = None  # bits of the subnet; None: 24, link-local 16
    hca: Annotated[Text, AfterValidator(_selector)] = "auto"  # NCCL_IB_HCA selector, its leading `=` or `^` included
    gid_index: Annotated[int, Field(ge=0, le=255)] | Auto = "auto"


class Node(Strict):
    """One DGX Spark. Only `host` is required."""

    host: Annotated[Text, AfterValidator(_host)]  # ssh_config alias, user@host[:port], user@[v6]:port, user@v6, local
    fabric: Fabric = Fabric()
    hf_home: NodePath = "~/.cache/huggingface"  # on that node; ~ is the node's own home
    hub_cache: NodePath | None = None  # where HF_HUB_CACHE lies elsewhere

    @property
    def spec(self) -> HostSpec:
        """`host`, taken apart."""
        return parse_host(self.host)


class Api(Strict):
    """Where the head listens for clients."""

    bind: Annotated[Text, AfterValidator(_bind)] = "0.0.0.0"  # noqa: S104  published default; without a key it warns
    port: Port = 8888
    key_file: Path | None = None  # on this machine; holds the key that the API asks for


class Inventory(Strict):
    """One pair of nodes."""

    name: Name
    profile: Text | None = None  # default of -p
    ssh_config: Path | None = None
    head: Node
    worker: Node
    api: Api = Api()
    master_port: Port = 25000
    restart: Literal["no", "always", "unless-stopped", "on-failure"] = "no"
    patches: tuple[Patch, ...] = ()


def subnet_of(fabric: Fabric) -> IPv4Network | None:
    """The subnet that the inventory puts a node's fabric address in; None where the address is `auto`.

    Nothing in an inventory tells the prefix of an interface. Where `prefix` doesn't say, it is 24, which is how
    NVIDIA's playbooks and upstream address the link, and 16 for link-local addresses (RFC 3927).
    """
    if fabric.address == "auto":
        return None
    bits = fabric.prefix or (16 if fabric.address in _LINK_LOCAL else 24)
    return IPv4Network((fabric.address, bits), strict=False)
