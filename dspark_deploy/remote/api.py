"""An httpx client of the served API, through a channel that the node itself dials."""

from __future__ import annotations

import httpx

from dspark_deploy.remote.forwarded import CONNECT_S, forwarded_pool
from dspark_deploy.remote.host import Host

ANSWER_S = 30.0  # unless the caller gives another


def served_client(host: Host, address: str, port: int, *, key: str | None = None) -> httpx.Client:
    """A client for what listens on `address` and `port` as the node sees them. `key` goes along as bearer token.

    Every request dials anew, so that none meets a connection which the server has closed meanwhile. Requests raise
    httpx's own errors, and those of Host.dial where the node is lost or forbids it: waiting would not help.
    """
    literal = f"[{address}]" if ":" in address else address
    return httpx.Client(
        base_url=f"http://{literal}:{port}",
        transport=_Transport(host),
        headers={"Authorization": f"Bearer {key}"} if key else None,
        timeout=httpx.Timeout(ANSWER_S, connect=CONNECT_S),
        trust_env=False,  # the controller's proxies have no say
    )


class _Transport(httpx.HTTPTransport):
    """httpx's transport over a pool that dials through the node."""

    def __init__(self, host: Host) -> None:
        super().__init__(verify=False, trust_env=False)
        self._pool = forwarded_pool(host)
