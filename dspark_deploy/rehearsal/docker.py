"""The command `docker` on a node of the rehearsal. Of the standard library only what is quick: each call pays for it.

    docker.py NODE_FOLDER system dial-stdio     relay standard input and output to the node's engine
    docker.py NODE_FOLDER compose ...           hand the words to the engine, which carries them out (compose.py)
    docker.py NODE_FOLDER compose version       without asking the engine, as the real plugin
    docker.py NODE_FOLDER version

Anything else is refused as docker refuses what it does not know.
"""

from __future__ import annotations

import _socket  # `socket` and `json` take longer to import than all that is done here
import os
import select
import sys

SOCKET = "engine.sock"  # in the node's folder
VERSION, COMPOSE_VERSION = "28.3.3", "2.40.3"
DOWN = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
NO_RAW_STREAM = "failed to open the raw stream connection: dial unix /var/run/docker.sock: connect: "
READ_SIZE = 65536


def main(folder: str, words: list[str]) -> int:
    """Run one command line. Returns its exit code."""
    if words[:2] == ["compose", "version"]:
        _say(COMPOSE_VERSION if "--short" in words else f"Docker Compose version v{COMPOSE_VERSION}")
        return 0
    if words == ["system", "dial-stdio"]:
        return _dial(folder)
    if words[:1] == ["compose"]:
        return _compose(folder, words[1:])
    if words == ["version"]:
        return _version(folder)
    known = " ".join(words[:1])
    _complain(f"docker: unknown command: docker {known}\n\nRun 'docker --help' for more information")
    return 1


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _complain(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _connect(folder: str) -> _socket.socket:
    directory = os.getcwd()  # noqa: PTH109  the import of pathlib costs as much as all the rest
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    os.chdir(folder)  # the length of a socket's path is limited
    try:
        connection.connect(SOCKET)
    finally:
        os.chdir(directory)
    return connection


def _dial(folder: str) -> int:
    try:
        engine = _connect(folder)
    except OSError as error:
        _complain(f"{NO_RAW_STREAM}{(error.strerror or '').lower()}")
        return 1
    while True:
        readable, _, _ = select.select([0, engine.fileno()], [], [])
        if engine.fileno() in readable and not _pass_on(engine.recv(READ_SIZE)):
            return 0
        if 0 in readable:
            data = os.read(0, READ_SIZE)
            if not data:
                return 0
            engine.sendall(data)


def _pass_on(data: bytes) -> bool:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]
    return bool(data)


def _compose(folder: str, words: list[str]) -> int:
    import json  # noqa: PLC0415  see the top

    here = os.getcwd()  # noqa: PTH109  see above
    asked = {"argv": words, "directory": here, "environment": dict(os.environ)}
    body = json.dumps(asked).encode()
    try:
        answer = _ask(folder, b"POST /rehearsal/compose", body)
    except OSError:
        _complain(DOWN)
        return 1
    ended = json.loads(answer)
    sys.stdout.write(ended["stdout"])
    sys.stderr.write(ended["stderr"])
    code: int = ended["code"]
    return code


def _version(folder: str) -> int:
    import json  # noqa: PLC0415  see the top

    _say(f"Client:\n Version: {VERSION}")
    try:
        server = json.loads(_ask(folder, b"GET /version", b""))
    except OSError:
        _complain(DOWN)
        return 1
    _say(f"Server: {server['Platform']['Name']}\n Version: {server['Version']}")
    return 0


def _ask(folder: str, what: bytes, body: bytes) -> bytes:
    """The body of the answer to one request."""
    head = b"%s HTTP/1.1\r\nHost: docker\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (what, len(body))
    engine = _connect(folder)
    engine.sendall(head + body)
    answer = b"".join(iter(lambda: engine.recv(READ_SIZE), b""))
    return answer.partition(b"\r\n\r\n")[2]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
