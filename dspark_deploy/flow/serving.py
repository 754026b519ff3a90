"""The pair as something that can be measured: it serves, its API is asked through the head, and what it is is known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from dspark_deploy import __version__
from dspark_deploy.boot.figures import READINGS
from dspark_deploy.errors import NotAsWanted
from dspark_deploy.facts.node import Container, NodeFacts
from dspark_deploy.flow.intention import load_inventory_of
from dspark_deploy.flow.pair import open_pair
from dspark_deploy.flow.releases import READ_S, read_served
from dspark_deploy.flow.wish import Wish
from dspark_deploy.measure.store import Origin
from dspark_deploy.plan.served import Served
from dspark_deploy.plan.situation import Situation, state_of_containers
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.served import HTTP_OK, NoAnswer, ServedApi
from dspark_deploy.remote.streams import Streams, served_streams
from dspark_deploy.watch.gather import gather, look
from dspark_deploy.watch.readiness import served_models

GIB = 2**30
_POOL = next(reading for reading in READINGS if ("kv_pool_tokens", "int") in reading.kinds)


@dataclass(frozen=True, slots=True)
class Serving:
    """A pair whose API answers with what its release serves."""

    hosts: Mapping[str, Host]
    served: Served
    situation: Situation

    def streams(self) -> Streams:
        """A client of its own for whoever measures."""
        endpoint = self.served.endpoint
        return served_streams(self.hosts["head"], endpoint.probe_address, endpoint.port)


@contextmanager
def open_serving(wish: Wish, clock: Clock) -> Iterator[Serving]:
    """Open both nodes of a pair that serves. Raises NotAsWanted where it does not."""
    inventory = load_inventory_of(wish)
    with open_pair(inventory, wish, clock) as hosts:
        situation = look(hosts, inventory.name, clock)
        release = situation.release
        if release is None:
            raise _not_serving(inventory.name, f"its state is {state_of_containers(situation)}")
        served = read_served(hosts["head"], inventory.name, release)
        if served is None:
            raise _not_serving(inventory.name, f"the head keeps no readable manifest of release {release}")
        with ServedApi(hosts["head"], served.endpoint.probe_address, served.endpoint.port) as api:
            models = served_models(api)
        if models is None:
            raise _not_serving(inventory.name, f"both ranks run, and nothing answers on port {served.port} of the head")
        if served.served_name not in models:
            found = ", ".join(models) or "nothing"
            raise _not_serving(
                inventory.name, f"port {served.port} of the head serves {found}, not {served.served_name}"
            )
        yield Serving(hosts, served, situation)


def origin_of(serving: Serving, clock: Clock) -> Origin:
    """Everything that is known of what answers. Raises StepFailed or NodeUnreachable."""
    served, hosts = serving.served, serving.hosts
    ranks = {node: rank for node in hosts if (rank := serving.situation.alive(node)) is not None}
    facts = gather(hosts, served.pair, clock)
    return Origin(
        pair=served.pair,
        profile=served.profile,
        family=served.family,
        release=serving.situation.release or "",
        model=served.model,
        served_name=served.served_name,
        max_model_len=served.max_model_len,
        image=served.image,
        image_ids={node: rank.image_id for node, rank in ranks.items()},
        argv={node: _argv(host, served.pair, serving.situation.release or "") for node, host in hosts.items()},
        facts={node: _facts(known) for node, known in facts.items()},
        kv_pool_tokens=_pool(hosts["head"], ranks["head"]) if "head" in ranks else None,
        server_version=_version(serving),
        dspark_version=__version__,
    )


def _not_serving(pair: str, why: str) -> NotAsWanted:
    return NotAsWanted(
        f"nothing serves on {pair}, so there is nothing to measure",
        why=why,
        remedy="`dspark up` starts it, `dspark status` says more",
    )


def _argv(host: Host, pair: str, release: str) -> tuple[str, ...]:
    """The command of a node's rank as its release has it; empty where that can't be read."""
    path = f".local/share/dspark/{pair}/releases/{release}/compose.yaml"
    read = host.run(("cat", path), timeout_s=READ_S)
    try:
        document: Any = YAML(typ="safe").load(read.stdout) if read.returncode == 0 else None
    except YAMLError:
        return ()
    match document:
        case {"services": {**services}}:
            commands = [each["command"] for each in services.values() if isinstance(each, dict) and "command" in each]
            return tuple(str(word) for command in commands for word in command)
        case _:
            return ()


def _facts(known: NodeFacts) -> dict[str, str]:
    told = {
        "hostname": known.hostname,
        "os": known.system.os,
        "kernel": known.system.kernel,
        "architecture": known.architecture,
        "gpu": ", ".join(gpu.name for gpu in known.gpus),
        "driver": ", ".join(dict.fromkeys(gpu.driver for gpu in known.gpus)),
        "docker": known.docker.version,
        "memory": f"{known.memory.total / GIB:.1f} GiB" if known.memory else None,
    }
    return {name: value for name, value in told.items() if value}


def _pool(head: Host, rank: Container) -> int | None:
    """The KV pool that this boot announced, in tokens."""
    logs = head.engine().logs(rank.id)
    try:
        for line in logs:
            at = line.text.find(_POOL.literal)
            for _, value in _POOL.read(line.text, at) if at >= 0 else ():
                return int(re.sub(r"\D", "", str(value)) or 0) or None
    finally:
        logs.close()
    return None


def _version(serving: Serving) -> str | None:
    endpoint = serving.served.endpoint
    with ServedApi(serving.hosts["head"], endpoint.probe_address, endpoint.port) as api:
        try:
            answer = api.get("/version", timeout_s=5)
        except NoAnswer:
            return None
    match answer.document():
        case {"version": str(version)} if answer.status == HTTP_OK:
            return version
        case _:
            return None
