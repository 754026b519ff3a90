"""What a pair does, as data: played on the rehearsal and on the two real hosts of the bed, with equal outcomes.

A case is a list of moves. A `Dspark` runs the tool and holds it to an exit code, to the steps it takes, to words in
what it prints, and to the containers it leaves; the other moves do what an operator or a fault does to a node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from .bed.docker_api import DockerApi
from .bed.run import Ran

NodeName = Literal["head", "worker"]
NODES: tuple[NodeName, NodeName] = ("head", "worker")
IMAGE = "ghcr.io/anemll/dspark-vllm-gx10:0.1.1"
Left = Mapping[str, tuple[str, ...]]  # node -> `state profile` of each container
NOTHING: Left = {"head": (), "worker": ()}


class Side(Protocol):
    """One kind of pair, as both have it."""

    pair: str

    def dspark(self, *words: str) -> Ran:
        """Run the tool on this pair."""
        ...

    def api(self, node: NodeName) -> DockerApi:
        """The node's Docker engine."""
        ...

    def login(self, node: NodeName, script: str) -> Ran:
        """Run a script as the node's user, in its home."""
        ...

    def switch(self, node: NodeName, switches: Mapping[str, Any]) -> None:
        """Set the stand-in engine's switches on a node."""
        ...

    def occupy(self, node: NodeName, port: Literal["api", "rendezvous"]) -> None:
        """Let something else listen there."""
        ...


@dataclass(frozen=True, slots=True)
class Dspark:
    """Run the tool. `steps` None: none of its business here; `says` is part of what it prints."""

    words: str
    exit: int = 0
    steps: tuple[str, ...] | None = None
    says: tuple[str, ...] = ()
    left: Left | None = None

    def play(self, side: Side) -> None:
        """Run, and compare."""
        ran = side.dspark(*self.words.split())
        assert ran.returncode == self.exit, ran
        assert "Traceback" not in ran.stdout + ran.stderr, ran
        if self.steps is not None:
            assert taken(ran, side.pair) == self.steps, ran
        for words in self.says:
            assert words in ran.stdout + ran.stderr, ran
        if self.left is not None:
            assert left(side) == self.left, ran


@dataclass(frozen=True, slots=True)
class Switch:
    """Set the stand-in engine's switches on one node."""

    node: NodeName
    switches: Mapping[str, Any]

    def play(self, side: Side) -> None:
        """Do it."""
        side.switch(self.node, self.switches)


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill the rank that runs on a node, as an operator or the kernel would."""

    node: NodeName

    def play(self, side: Side) -> None:
        """Do it."""
        (container,) = side.api(self.node).containers()
        side.api(self.node).kill(container.id)


@dataclass(frozen=True, slots=True)
class Untag:
    """Take an image away."""

    node: NodeName
    reference: str = IMAGE

    def play(self, side: Side) -> None:
        """Do it."""
        side.api(self.node).untag(self.reference)


@dataclass(frozen=True, slots=True)
class Occupy:
    """Let something else listen on one of the pair's ports."""

    node: NodeName
    port: Literal["api", "rendezvous"]

    def play(self, side: Side) -> None:
        """Do it."""
        side.occupy(self.node, self.port)


@dataclass(frozen=True, slots=True)
class Login:
    """Run a script on a node and hold it to success or failure, and to words in what it prints."""

    node: NodeName
    script: str
    fails: bool = False
    says: tuple[str, ...] = ()

    def play(self, side: Side) -> None:
        """Run, and compare."""
        ran = side.login(self.node, self.script.replace("PAIR", side.pair))
        assert (ran.returncode != 0) == self.fails, ran
        for words in self.says:
            assert words.replace("PAIR", side.pair) in ran.stdout + ran.stderr, ran


@dataclass(frozen=True, slots=True)
class Case:
    """Moves in order, on a pair that is healthy and has nothing of an earlier one."""

    name: str
    moves: tuple[Dspark | Switch | Kill | Untag | Occupy | Login, ...] = field(repr=False)

    def play(self, side: Side) -> None:
        """All moves, each held to its outcome."""
        for move in self.moves:
            move.play(side)


def taken(ran: Ran, pair: str) -> tuple[str, ...]:
    """The steps that a run narrated, with ids and the pair's name taken out."""
    steps = re.findall(r"^\[\d+/\d+\] (.*?) \.\.\.", ran.stderr, re.MULTILINE)
    return tuple(re.sub(r"\b[0-9a-f]{12}\b", "ID", step.replace(pair, "PAIR")) for step in steps)


def left(side: Side) -> Left:
    """Every container on both nodes."""
    return {
        node: tuple(f"{each.state} {each.labels.get('dspark.profile')}" for each in side.api(node).containers())
        for node in NODES
    }


def both(what: str) -> Left:
    """The same one container on both nodes."""
    return {"head": (what,), "worker": (what,)}


PUSH = "push release ID to head and worker"
STOPS = (
    *(f"stop PAIR-vllm-1 on {node} (release ID)" for node in NODES),
    "wait until what the old ranks held is free",
)
WORKER = ("start the worker", "wait until the worker is at the rendezvous")
REST = ("start the head", "wait until the API answers, both ranks watched", "prove it with two requests")
START = (*WORKER, *REST)
PROOF = REST[1:]
UP = Dspark("up -p agent-1m", steps=(PUSH, *START), left=both("running agent-1m"))
# All releases of the pair: only the newest is there, so any will do.
RELEASES = ".local/share/dspark/PAIR/releases"

CASES = (
    Case(
        "up twice",
        (
            UP,
            Dspark("status", says=("serving", "agent-1m")),
            Dspark("up -p agent-1m", steps=PROOF, says=("nothing was changed",), left=both("running agent-1m")),
        ),
    ),
    Case(
        "up with another profile",
        (
            UP,
            Dspark("up -p coding-1m", 2, steps=(), says=("--yes",), left=both("running agent-1m")),
            Dspark("up -p coding-1m --yes", steps=(PUSH, *STOPS, *START), left=both("running coding-1m")),
            # Its release is still kept, so that nothing is pushed.
            Dspark("up -p agent-1m --yes", steps=(*STOPS, *START), left=both("running agent-1m")),
        ),
    ),
    Case(
        "down twice",
        (
            UP,
            Dspark("down", steps=("stop the head", "stop the worker"), left=NOTHING),
            Dspark("down", says=("nothing to stop",), left=NOTHING),
        ),
    ),
    Case(
        "the worker dies while loading",
        (
            Switch("worker", {"die_at": "shards", "die_message": "CUDA out of memory."}),
            Dspark("up", 4, steps=(PUSH, *START[:4]), says=("worker", "CUDA out of memory."), left=NOTHING),
            Dspark("status", 8, says=("down",)),
        ),
    ),
    Case(
        "the head dies while serving",
        (
            UP,
            Kill("head"),
            Dspark("status", 8, says=("split", "exited with exit code 137")),
            Dspark("up", steps=(*STOPS, *START), left=both("running agent-1m")),
        ),
    ),
    Case("the image is missing", (Untag("worker"), Dspark("up", 3, steps=(), says=("worker", IMAGE), left=NOTHING))),
    Case(
        "the API's port is busy",
        (Occupy("head", "api"), Dspark("up", 3, steps=(), says=("head", "API port"), left=NOTHING)),
    ),
    Case(
        "the rendezvous port is busy",
        (Occupy("head", "rendezvous"), Dspark("up", 3, steps=(), says=("head", "rendezvous port"), left=NOTHING)),
    ),
    Case(
        "an argument that vllm does not know",
        (
            Dspark(
                "up --set extra_flags.--no-such-flag=1",
                4,
                steps=(PUSH, *WORKER),
                says=("F12", "unrecognized arguments: --no-such-flag"),
                left=NOTHING,
            ),
        ),
    ),
    Case(
        "a damaged release is not run but pushed again",
        (
            UP,
            Dspark("down"),
            Login("worker", f"echo 'services: [' > $(echo {RELEASES}/*)/compose.yaml"),
            Dspark("up", steps=("push release ID to worker", *START), left=both("running agent-1m")),
        ),
    ),
    Case(
        "compose files that are carried out by hand",
        (
            UP,
            # One with a syntax error.
            Login("head", f"cp -r {RELEASES}/* broken && echo 'services: [' > broken/compose.yaml"),
            Login("head", "cd broken && docker compose -p PAIR -f compose.yaml up -d --no-build", fails=True),
            Dspark("status", says=("serving",), left=both("running agent-1m")),
            # One whose bind source is missing.
            Login("head", f"rm -r broken && cp -r {RELEASES}/* broken && rm broken/prepare.py"),
            Login(
                "head",
                "cd broken && docker compose -p other -f compose.yaml up -d --no-build",
                fails=True,
                says=("bind source path does not exist",),
            ),
            # One that is unchanged leaves its container alone.
            Login(
                "head",
                f"cd {RELEASES}/* && docker compose -p PAIR -f compose.yaml up -d --no-build",
                says=("PAIR-vllm-1", "Running"),
            ),
            Dspark("status", says=("serving",), left=both("running agent-1m")),
            # An image that is gone is not pulled.
            Dspark("down", left=NOTHING),
            Untag("head"),
            Login(
                "head",
                f"cd {RELEASES}/* && docker compose -p PAIR -f compose.yaml up -d --no-build",
                fails=True,
                says=("No such image",),
            ),
        ),
    ),
)
