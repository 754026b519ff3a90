"""What has changed on a node since the pair last came up well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dspark_deploy.checks.case import Case
from dspark_deploy.checks.check import Check, Verdict, bad, fine
from dspark_deploy.plan.fingerprint import MOVES, changed, fingerprint


def fingerprints(case: Case) -> dict[str, dict[str, str]]:
    """Each node as it is now."""
    images = {node: image for node, _, image, _ in case.served()}
    wires = dict(zip(("head", "worker"), case.survey.wires or (), strict=False))
    return {node: fingerprint(known, wires.get(node), images.get(node)) for node, known in case.facts.items()}


def _since(case: Case) -> Iterator[Verdict]:
    now = fingerprints(case)
    for node, known in case.facts.items():
        if known.noted is None:
            continue
        when = f"since the pair last came up well ({known.noted.at[:16].replace('T', ' ')})"
        differs = changed(known.noted.values, now[node])
        if differs.keys() - MOVES:
            remedy = "nothing, if that was meant; else bring it back"
            yield bad(f"{node}: {when}: {_told(differs)}", remedy, node)
        else:
            booted = ", and it was restarted" if "boot" in differs else ""
            yield fine(f"{node}: nothing has changed {when}{booted}", node)


def _told(differs: Mapping[str, tuple[str, str]]) -> str:
    told = [f"{name} {before} -> {after}" for name, (before, after) in differs.items() if name != "boot"]
    return "; ".join([*told, *(["restarted"] if "boot" in differs else [])])


CHECKS = (Check("changed-since", "nodes", "warn", ("F15",), _since),)
