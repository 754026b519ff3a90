"""What a line would only say again: servers print for months, and such lines need not be read."""

from __future__ import annotations

from dspark_deploy.boot.phases import Phase
from dspark_deploy.boot.record import BootState
from dspark_deploy.boot.rules import Bar, Complaint, Follow, Marker, Rule
from dspark_deploy.boot.signatures import Signature


def repeats(rule: Rule, state: BootState, *, progress: bool) -> bool:
    """Whether the rule would say nothing new of this boot, whatever else stands in the line."""
    phase = state.phase if state.phase is not None else Phase.PREPARATION
    match rule:
        case Marker():
            known = not rule.begins and state.phase is not None and rule.phase <= phase
        case Signature():
            since, until = rule.phases
            seen = state.sightings.get(rule.id)
            counted = seen is not None and not seen.resolved and rule.pattern is None and rule.unless is None
            known = counted or not since <= phase <= until
        case Follow():
            known = all(name not in state.sightings or state.sightings[name].resolved for name in rule.signatures)
        case Complaint():
            known = True
        case Bar():
            known = not progress
        case _:
            known = False
    return known


def count_again(signature: Signature, state: BootState, number: int) -> None:
    """A signature that is known of this boot stands in another line."""
    seen = state.sightings.get(signature.id)
    if seen is not None and seen.last_line != number:
        seen.last_line, seen.count = number, seen.count + 1
