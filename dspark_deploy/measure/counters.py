"""Read the server's own counters before and after a measurement. What they say is facts/metrics.py's."""

from __future__ import annotations

from dspark_deploy.facts.metrics import Counters, parse_counters
from dspark_deploy.measure.client import Client
from dspark_deploy.remote.served import HTTP_OK, NoAnswer


async def read_counters(client: Client) -> Counters | None:
    """None where `/metrics` can't be read: only the server behind the API has one."""
    try:
        answer = await client.get("/metrics")
    except NoAnswer:
        return None
    return parse_counters(answer.text) if answer.status == HTTP_OK else None
