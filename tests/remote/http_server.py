"""An HTTP server on loopback that answers from a function."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

from tests.fakes import Answerer, serve_connection


@contextlib.contextmanager
def answering(answerer: Answerer) -> Iterator[int]:
    """Its port, while it runs."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, answerer), daemon=True).start()
        yield listener.getsockname()[1]
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, answerer: Answerer) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:  # the test is over
            return
        threading.Thread(target=serve_connection, args=(connection, answerer), daemon=True).start()
