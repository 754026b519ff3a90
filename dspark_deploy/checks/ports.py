"""Ports that the head needs for itself."""

from __future__ import annotations

from collections.abc import Iterator

from dspark_deploy.checks.case import Case
from dspark_deploy.checks.check import Check, Verdict, bad, fine
from dspark_deploy.facts.node import Listener

WILDCARDS = ("0.0.0.0", "::")  # noqa: S104  compared, not bound


def _free(case: Case) -> Iterator[Verdict]:
    """Nothing else listens where the API and the rendezvous will. The pair's own running head is no conflict."""
    head = case.facts.get("head")
    if head is None or "listeners" in head.missing:
        return
    if case.rank("head") is not None:
        yield fine("head: its own rank runs, so its ports are its own", "head")
        return
    api = case.inventory.api
    address = str(case.survey.wires[0].address) if case.survey.wires else WILDCARDS[0]
    rendezvous = ("rendezvous", address, case.inventory.master_port, "master_port", "F56")
    for what, bound, port, key, failure in (("API", api.bind, api.port, "api.port", "F82"), rendezvous):
        taken = next((each for each in head.listeners if _collides(each, bound, port)), None)
        if taken is None:
            yield fine(f"head: {what} port {port} is free", "head")
        else:
            who = taken.owner or "something"
            message = f"head: {what} port {port} is taken: {who} listens on {taken.address}:{taken.port}"
            remedy = f"on head: sudo ss -ltnp 'sport = :{port}' shows who; end it or set another {key}"
            yield bad(message, remedy, "head", covers=(failure,))


def _collides(listener: Listener, address: str, port: int) -> bool:
    if listener.port != port:
        return False
    return listener.address == address or listener.address in WILDCARDS or address in WILDCARDS


CHECKS = (Check("ports-free", "ports", "fail", ("F56", "F82"), _free),)
