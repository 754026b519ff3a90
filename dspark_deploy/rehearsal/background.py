"""The background process of a rehearsal: `python -m dspark_deploy.rehearsal.background FOLDER`.

It makes everything in FOLDER but `spec.json`, which says what to make, and writes `pair.json` last, as the sign that
the pair is up. It holds the lock on `alive` for as long as it lives, and ends on SIGTERM or when its folder is gone.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import paramiko

from dspark_deploy.rehearsal.client import write_client_files
from dspark_deploy.rehearsal.images import build_images
from dspark_deploy.rehearsal.machine import HEAD, WORKER
from dspark_deploy.rehearsal.node import Keys, Node, Ports, free_ports
from dspark_deploy.rehearsal.places import Places
from dspark_deploy.rehearsal.spec import Spec
from dspark_deploy.remote.clock import Latch

LOOK_S = 1.0  # how soon a removed folder is noticed


def main(places: Places) -> NoReturn:
    """Be the pair until told to end; ends the process."""
    os.chdir(places.folder)
    alive = places.alive.open("w")
    alive.write(str(os.getpid()))
    alive.flush()
    fcntl.flock(alive, fcntl.LOCK_EX)  # the kernel's: free as soon as this process is gone, however it went
    told = Latch()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: told.set())
    spec = Spec.read(places.spec)
    nodes = start_nodes(places, spec)
    gc.freeze()  # what is loaded now stays: no collection needs to look through it again
    facts = {"pid": os.getpid(), "began": datetime.now(UTC).isoformat(timespec="seconds")}
    facts |= {"scenario": spec.scenario, "time_scale": spec.time_scale}
    part = places.facts.with_suffix(".part")
    part.write_text(json.dumps(facts), encoding="utf-8")
    part.replace(places.facts)
    while not told.wait(LOOK_S) and places.facts.exists():
        pass
    for node in nodes:
        node.close()
    os._exit(0)  # at once: the lock is free before the interpreter would have cleaned up behind its threads


def start_nodes(places: Places, spec: Spec) -> tuple[Node, ...]:
    """Make both nodes below the folder, in which the process stands, and what a client needs to reach them."""
    states = {"head": spec.head, "worker": spec.worker}
    images = build_images(spec.images, places.folder / "images")
    ports = Ports(*free_ports(2))
    key = paramiko.ECDSAKey.generate()
    host_keys: dict[str, paramiko.PKey] = {role: paramiko.ECDSAKey.generate() for role in states}
    nodes = tuple(
        Node(
            places.folder / identity.role,
            identity,
            states[identity.role],
            spec,
            images,
            ports,
            Keys(host_keys[identity.role], key),
        )
        for identity in (HEAD, WORKER)
    )
    ssh_ports = {node.identity.role: node.ssh_port for node in nodes}
    write_client_files(places, key, host_keys, ssh_ports, ports)
    return nodes


if __name__ == "__main__":
    main(Places(Path(sys.argv[1])))
