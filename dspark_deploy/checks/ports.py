"""Ports that the head needs for itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dspark_deploy.checks.finding import Finding
from dspark_deploy.facts.node import Listener, NodeFacts
from dspark_deploy.plan.deployment import Deployment
from dspark_deploy.plan.situation import read_situation

WILDCARDS = ("0.0.0.0", "::")  # noqa: S104  compared, not bound


def check_ports(deployment: Deployment, facts: Mapping[str, NodeFacts]) -> Iterator[Finding]:
    """Nothing else listens where the API and the rendezvous will. The pair's own running head is no conflict."""
    head = facts["head"]
    if read_situation(deployment.pair, facts).alive("head") is not None:
        yield Finding("ports-free", "skip", "head: its own rank runs, so its ports are its own", "head")
        return
    wanted = (("API", deployment.api.bind, deployment.api.port, "api.port", "F82"),)
    rendezvous = ("rendezvous", str(deployment.head.address), deployment.master_port, "master_port", "F56")
    for what, address, port, key, failure in (*wanted, rendezvous):
        taken = next((each for each in head.listeners if _collides(each, address, port)), None)
        if taken is None:
            yield Finding("ports-free", "ok", f"head: {what} port {port} is free", "head")
        else:
            message = f"head: {what} port {port} is taken: something listens on {taken.address}:{taken.port}"
            remedy = f"on head: sudo ss -ltnp 'sport = :{port}' shows who; end it or set another {key}"
            yield Finding("ports-free", "fail", message, "head", remedy, (failure,))


def _collides(listener: Listener, address: str, port: int) -> bool:
    if listener.port != port:
        return False
    return listener.address == address or listener.address in WILDCARDS or address in WILDCARDS
