"""Tell which datagrams of the peer's come over each link: small ones, and those of full size that nobody may cut.

Both nodes run it at once. Each sends to the other over a connected socket with don't-fragment, again and again, until
it has heard both sizes or the time is up; so it does not matter which of them is first. No privilege, no ping.

Request: `token` (both nodes' alike), `limit_s`, `links`: each `interface`, `address`, `peer`, `port`, `size`.
Answer: `links`: see facts/link.py.

On a node of a rehearsal the addresses are on no interface: DSPARK_NODE_ADDRESSES (JSON: address -> [another one, what
to add to the port]) says what stands for them.
"""

from __future__ import annotations

import json
import os
import select
import socket
import time

from dspark_deploy.remote.programs._frame import Call, serve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LIMIT_S = 2.0  # until the peer is heard at all: its python may take its time
FULL_WITHIN_S = 0.4  # after its first small one
TURN_S = 0.01
LAST_TURNS = 5  # go on sending for so long once all was heard: the peer may still listen
SMALL = 32  # bytes
# linux/in.h; the socket module has no names for them
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2


class End:
    """This node's end of one link."""

    def __init__(self, asked: dict[str, Any], token: bytes) -> None:
        self._token = token
        self._size = asked["size"]
        self._heard_at = 0.0  # its first datagram
        self._turns_left = LAST_TURNS
        self.told = {name: asked[name] for name in ("interface", "address", "peer", "size")}
        self.told.update({"small": False, "full": False, "problem": ""})
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self.socket.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
            self.socket.bind(_endpoint(asked["address"], asked["port"]))
            self.socket.connect(_endpoint(asked["peer"], asked["port"]))
            self.socket.setblocking(False)
        except OSError as error:
            self.told["problem"] = error.strerror or str(error)

    def goes_on(self, now: float) -> bool:
        """Whether there is more to hear, or the peer may still have to hear us."""
        if self.told["problem"]:
            return False
        if self.told["small"] and self.told["full"]:
            return self._turns_left > 0
        return not self._heard_at or now < self._heard_at + FULL_WITHIN_S

    def send(self) -> None:
        """One of each size. What the kernel says of it is of no interest: the peer may not listen yet."""
        if self.told["small"] and self.told["full"]:
            self._turns_left -= 1
        for size in (SMALL, self._size):
            try:
                self.socket.send(self._token.ljust(size, b"."))
            except OSError:  # nobody listens there yet, or it is too long for this very interface
                continue

    def receive(self, now: float) -> None:
        """Everything that has come."""
        while True:
            try:
                data = self.socket.recv(65536)
            except BlockingIOError:
                return
            except OSError:  # the peer's kernel said that nobody listened
                continue
            if data.startswith(self._token):
                self._heard_at = self._heard_at or now
                self.told["full" if len(data) == self._size else "small"] = True


def _endpoint(address: str, port: int) -> tuple[str, int]:
    other, shift = json.loads(os.environ.get("DSPARK_NODE_ADDRESSES", "{}")).get(address, (address, 0))
    return other, port + shift


def main(call: Call) -> None:
    """See the module."""
    call.end_with_session()
    token = call.request["token"].encode()
    ends = [End(asked, token) for asked in call.request["links"]]
    deadline = time.monotonic() + call.request.get("limit_s", LIMIT_S)
    waiting = ends
    while (waiting := [end for end in waiting if end.goes_on(time.monotonic())]) and time.monotonic() < deadline:
        for end in waiting:
            end.send()
        ready, _, _ = select.select([end.socket for end in waiting], [], [], TURN_S)
        if ready:
            time.sleep(TURN_S / 10)
        for end in waiting:
            end.receive(time.monotonic())
    call.answer({"links": [end.told for end in ends]})


if __name__ == "__main__":
    serve(main)
