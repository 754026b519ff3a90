"""Both nodes of a rehearsal in one process, with a hold on what is done on them: `python -m tests.sweep.nodes FOLDER`.

One JSON document a line comes in, one goes out for each. Between a step's end on the node and its answer's way to the
tool is where a step can be held; whoever holds it breaks something meanwhile. What is broken is the nodes' outside
(connections, the engine's socket); the tool under test is told nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import paramiko

from dspark_deploy.flow.catalogue import catalogue_of
from dspark_deploy.flow.wish import Wish
from dspark_deploy.rehearsal import background, engine_http, node, sshd
from dspark_deploy.rehearsal.demand import spec_of
from dspark_deploy.rehearsal.engine import Engine
from dspark_deploy.rehearsal.engine_api import Answer
from dspark_deploy.rehearsal.engine_api import answer as engine_answer
from dspark_deploy.rehearsal.places import Places
from dspark_deploy.rehearsal.scenarios import HEALTHY

from ..rehearsal.forking import forking, new_forker
from .steps import ENGINE_STEPS, SpiedChannel, Steps

TIME_SCALE = 10000.0
LOOK = "dspark.look"  # of a container that is looked into, never started: the next look removes it (docs/faults.md)
STATE = ".local/share/dspark/rehearsal"
MODEL_END = "-0731"  # the only checkpoint that the sweep serves


class Breakable:
    """One node from the outside: its connections, its engine's socket, and what runs on it."""

    def __init__(self, own: node.Node, steps: Steps) -> None:
        self.role = own.identity.role
        self.reachable = True
        self._engine, self._sshd = own._engine, own._sshd
        self._servers = [server for server in own._servers if isinstance(server, StoppableEngine)]
        self._home = own._folder / "home"
        self._steps = steps

    @property
    def engine(self) -> Engine:
        return self._engine

    @property
    def programs(self) -> Any:
        """Of its SSH server."""
        assert self._sshd is not None
        return self._sshd._programs

    @property
    def listener(self) -> Any:
        """Of its SSH server."""
        assert self._sshd is not None
        return self._sshd._listener

    def cut(self) -> None:
        """Every connection to it ends; new ones are taken."""
        for transport in tuple(self.listener.transports):
            transport.close()

    def leave(self) -> None:
        """Nothing reaches it any more; what runs on it goes on."""
        self.reachable = False
        self.cut()

    def kill_engine(self) -> None:
        """The daemon is killed: containers go on."""
        for server in self._servers:
            server.stop()

    def stop_engine(self) -> None:
        """The daemon is stopped in an orderly way: it ends its containers and keeps them."""
        self.kill_engine()
        for container in self._engine.containers():
            container.stop(0)

    def heal(self) -> None:
        """Reachable, and with an engine."""
        self.reachable = True
        for server in self._servers:
            server.resume()

    def forget(self) -> None:
        """It has never heard of the pair."""
        shutil.rmtree(self._home / STATE, ignore_errors=True)

    def forget_release(self, release: str) -> None:
        """A release was never pushed there, and no image was looked into."""
        for name in (f"releases/{release}", "images"):
            shutil.rmtree(self._home / STATE / name, ignore_errors=True)

    def told(self) -> dict[str, Any]:
        """What is there, whoever asks."""
        state = self._home / STATE
        marks = state / "marks.json"
        releases = state / "releases"
        return {
            "containers": [
                [each.status, each.config.labels.get("dspark.release", ""), each.config.name]
                for each in self._engine.containers()
                if LOOK not in each.config.labels
            ],
            "programs": len(self.programs._running),
            "connections": len(self.listener.transports),
            "marks": sorted(json.loads(marks.read_text())) if marks.exists() else [],
            "lock": (state / "lock.json").exists(),
            "parts": [str(path.relative_to(state)) for path in state.rglob("*part-*")] if state.exists() else [],
            "releases": sorted(path.name for path in releases.iterdir()) if releases.exists() else [],
        }


class StoppableEngine(engine_http.EngineServer):
    """A daemon whose socket goes and comes back, its containers untouched."""

    def __init__(self, path: str, engine: Engine) -> None:
        self._path = Path(path).absolute()
        self._open: set[socket.socket] = set()
        super().__init__(path, engine)

    def process_request(self, request: Any, client_address: Any) -> None:
        """See BaseServer."""
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """See BaseServer."""
        self._open.discard(request)
        super().shutdown_request(request)

    def stop(self) -> None:
        """As killed: no socket, no connection."""
        with suppress(FileNotFoundError):
            self._path.rename(self._path.with_suffix(".off"))
        for connection in tuple(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def resume(self) -> None:
        """It listens again."""
        with suppress(FileNotFoundError):
            self._path.with_suffix(".off").rename(self._path)


def spy(steps: Steps, breakable: list[Breakable]) -> None:
    """Have everything that reaches a node told to `steps`."""
    programs_run = sshd._Programs.run
    opened = sshd._Session.opened

    def role(of: Callable[[Breakable], Any], what: object) -> Breakable:
        return next(each for each in breakable if of(each) is what)

    def run(self: Any, command: str, channel: Any) -> None:
        where = role(lambda each: each.programs, self).role
        programs_run(self, command, SpiedChannel(channel, lambda step: steps.ended(where, step)))  # type: ignore[arg-type]  # all of a channel that is used

    def answer(engine: Engine, verb: str, target: str, body: bytes) -> Answer:
        found = engine_answer(engine, verb, target, body)
        for pattern, step in ENGINE_STEPS:
            if pattern.match(f"{verb} {target.partition('?')[0]}"):
                steps.ended(role(lambda each: each.engine, engine).role, step)
        return found

    def spied_opened(self: Any, channel: paramiko.Channel) -> None:
        if channel.get_id() in self._dialled:
            steps.ended(role(lambda each: each.programs, self._programs).role, "api")
        opened(self, channel)

    def verify(self: Any, request: Any, client_address: Any) -> bool:
        del request, client_address
        return role(lambda each: each.listener, self).reachable

    sshd._Programs.run = run  # type: ignore[method-assign]
    setattr(engine_http, "answer", answer)  # noqa: B010  a plain assignment is none of a name that it exports
    sshd._Session.opened = spied_opened  # type: ignore[method-assign]
    sshd._Listener.verify_request = verify  # type: ignore[method-assign]


def main(folder: Path) -> None:
    """Serve one driver until its end of input."""
    out = threading.Lock()

    def say(document: dict[str, Any]) -> None:
        with out:
            sys.stdout.write(json.dumps(document) + "\n")
            sys.stdout.flush()

    forker = new_forker()
    setattr(sshd, "subprocess", forking(forker))  # noqa: B010  a plain assignment is none of a name that it exports
    steps = Steps(say)
    breakable: list[Breakable] = []
    spy(steps, breakable)
    setattr(node, "EngineServer", StoppableEngine)  # noqa: B010  as above
    os.chdir(folder)
    spec = spec_of(catalogue_of(Wish(directory=Path(), home=Path())), HEALTHY, TIME_SCALE)
    spec = replace(spec, models=tuple(model for model in spec.models if model.name.endswith(MODEL_END)))
    nodes = background.start_nodes(Places(folder), spec)
    breakable += [Breakable(each, steps) for each in nodes]
    by_role = {each.role: each for each in breakable}
    say({"ready": True})
    for line in sys.stdin:
        say({"answer": _obey(json.loads(line), steps, by_role)})
    for each in nodes:
        each.close()
    forker.close()
    os._exit(0)


def _obey(asked: dict[str, Any], steps: Steps, nodes: dict[str, Breakable]) -> Any:
    match asked["do"]:
        case "begin":
            steps.begin(tuple(asked["held"]) if asked.get("held") else None)
        case "done":
            return steps.done
        case "let go":
            steps.let_go()
        case "told":
            return {role: each.told() for role, each in nodes.items()}
        case "empty":
            for each in nodes.values():
                for container in each.engine.containers():
                    each.engine.remove(container, force=True)
        case "forget":
            for each in nodes.values():
                each.forget()
        case "forget release":
            for each in nodes.values():
                each.forget_release(asked["release"])
        case what:
            getattr(nodes[asked["node"]], what)()
    return None


if __name__ == "__main__":
    main(Path(sys.argv[1]))
