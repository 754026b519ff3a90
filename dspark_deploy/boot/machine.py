"""The state machine: lines of either rank in, events out.

A line says by its prefix which rank it is of, or the stream is known to be one rank's, or it belongs to the rank that
spoke last. A phase is entered by a line that opens it and never left backwards; a line that only a beginning boot
prints, after the rendezvous, opens another boot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from dspark_deploy.boot.events import (
    BootBegan,
    Event,
    Figure,
    Found,
    Node,
    PhaseEntered,
    Progress,
    Ready,
    Resolved,
    UnknownVariable,
)
from dspark_deploy.boot.figures import Reading, read_bar
from dspark_deploy.boot.lines import Line
from dspark_deploy.boot.phases import Phase
from dspark_deploy.boot.quote import quote
from dspark_deploy.boot.record import KEPT_BARS, KEPT_VARIABLES, Boot, BootState, Entry, Sighting, SightingState
from dspark_deploy.boot.repeats import count_again, repeats
from dspark_deploy.boot.rules import Bar, Complaint, Follow, Marker, Rule, Rules, Stopped, Variable
from dspark_deploy.boot.signatures import Signature, phase_named

KEPT_BOOTS = 8  # of a stream: a container that dies and is restarted for ever prints thousands

_FIRST_COUNTS = frozenset({"max_model_len", "model"})  # the draft states its own after the model's
PREFIX = 64  # bytes in which a line's prefixes end
_HEADS = rb"_TP0|\[rank0\]|\(APIServer|\(EngineCore|head "
_WORKERS = rb"_TP1|\[rank1\]|worker "
_FOREIGN: Mapping[Node | None, re.Pattern[bytes]] = {
    "head": re.compile(_WORKERS),
    "worker": re.compile(_HEADS),
    None: re.compile(_HEADS + b"|" + _WORKERS),
}
"""Prefixes that say that a line is of another rank than the one that spoke last."""

_RANK_TOLD = re.compile(r"(headless multiproc executor)|\bnode_rank (\d)\b|\brank[= ](\d)\b")
_TELLERS = frozenset({
    "headless multiproc executor, with head node address ",
    "distributed_init_method=",
    "Inferred data_parallel_rank ",
    " is assigned as DP rank ",
})  # fmt: skip
"""Literals of messages that name the rank of a process whose prefix does not."""

_PARENTS = frozenset({"APIServer", "MainProcess", ""})  # processes that print a boot's first lines
_VARIABLE = re.compile(r"detected: ([A-Z][A-Z0-9_]{2,80})")
# No name is longer; without an end to it a line that is one long word would be gone through from each of its letters.
_ERROR = re.compile(r"(?:[A-Za-z_][\w.]{0,80}(?:Error|Exception)|FATAL|error): \S")


class BootMachine:
    """Everything that one stream's lines have told."""

    def __init__(self, rules: Rules, node: Node | None = None, *, progress: bool = True) -> None:
        self._rules = rules
        self._fixed = node
        self._progress = progress
        self._states = [BootState(node, 1)]
        self._one_rank = True  # so far
        self._tellers = {index for index, literal in enumerate(rules.literals) if literal in _TELLERS}

    @property
    def boots(self) -> tuple[Boot, ...]:
        """What is remembered, in the order in which the boots began."""
        return tuple(state.frozen() for state in sorted(self._states, key=lambda state: state.line))

    def take(self, line: Line) -> Iterator[Event]:
        """One line in which literals stand. Yields what it says."""
        if line.foreign:
            return
        state = self._state(line)
        if line.stamp_s is not None:
            state.last_stamp_s = line.stamp_s
        told: set[str] = set()  # signatures that another literal of this line has told already
        for literal, at in sorted(line.hits, key=lambda hit: hit[1]):
            for rule in self._rules.table[literal]:
                if isinstance(rule, Signature):
                    if rule.id in told:
                        continue
                    told.add(rule.id)
                if (
                    isinstance(rule, Marker)
                    and rule.begins
                    and self._begins(state, line, self._rules.literals[literal])
                ):
                    state = self._begin(state.node if line.node else self._fixed, line.number)
                    state.last_stamp_s = line.stamp_s
                    yield BootBegan(state.node, line.number)
                yield from self._apply(rule, state, line, at)
        state.last_line = line.number

    def skim(self, raw: bytes, number: int, hits: Sequence[tuple[int, int, int]]) -> bool:
        """Whether a line only repeats what its boot has said: then it is counted, and need not be read.

        Servers print for months. Only of a stream that is known to be one rank's.
        """
        state = self._states[-1]
        if not self._one_rank or _FOREIGN[state.node].search(raw, 0, PREFIX):
            return False
        table = self._rules.table
        if not all(repeats(rule, state, progress=self._progress) for hit in hits for rule in table[hit[0]]):
            return False
        for literal, start, _ in hits:
            for rule in table[literal]:
                if isinstance(rule, Signature):
                    count_again(rule, state, number)
                elif isinstance(rule, Complaint):
                    state.complain(number, raw, start)
                elif isinstance(rule, Bar):
                    state.last_bar = (raw, start)
        return True

    # --- whose line it is ---------------------------------------------------------------------------------------

    def _state(self, line: Line) -> BootState:
        """The boot that the line belongs to: of its own rank, else the one that spoke last."""
        node = self._fixed or line.node
        if node is None and any(literal in self._tellers for literal, _ in line.hits):
            node = _told(line)
        last = self._states[-1]
        if node is None or last.node == node:
            return last
        if last.node is None:
            last.node = node  # now it is known
            return last
        self._one_rank = False
        for index in range(len(self._states) - 1, -1, -1):
            if self._states[index].node == node:
                self._states.append(self._states.pop(index))
                return self._states[-1]
        return self._begin(node, line.number)

    def _begins(self, state: BootState, line: Line, literal: str) -> bool:
        """Whether a line that only a beginning boot prints comes where the boot at hand is long past that."""
        if state.phase is None or line.process not in _PARENTS:
            return False
        past = Phase.ARGUMENTS if literal.startswith("non-default") else Phase.ENGINE
        return state.phase > past

    def _begin(self, node: Node | None, number: int) -> BootState:
        state = BootState(node, number, last_line=number)
        self._states.append(state)
        if len(self._states) > KEPT_BOOTS:
            # The first boot of a stream stays: its end may be what all later ones die of.
            first = min(self._states, key=lambda each: each.line)
            oldest = min((each for each in self._states if each is not first), key=lambda each: each.last_line)
            self._states = [each for each in self._states if each is not oldest]
        return state

    # --- what it says -------------------------------------------------------------------------------------------

    def _apply(self, rule: Rule, state: BootState, line: Line, at: int) -> Iterator[Event]:
        match rule:
            case Marker():
                yield from self._enter(state, rule.phase, line)
            case Signature():
                yield from self._sight(rule, state, line, at)
            case Reading():
                yield from _read(rule, state, line, at)
            case Bar():
                state.last_bar = (line.text, at)
                if self._progress:
                    yield from _progress(state, line, at)
            case Variable():
                yield from _variable(state, line, at)
            case Follow():
                yield from self._follow(rule.signatures, state, line)
            case Complaint():
                if _ERROR.search(line.text, max(0, at - 80)):
                    state.complain(line.number, line.text, at)
            case Stopped():
                state.stopped = True
            case _:
                assert_never(rule)

    def _enter(self, state: BootState, phase: Phase, line: Line) -> Iterator[Event]:
        if state.phase is not None and phase <= state.phase:
            return
        state.phase = phase
        state.last_bar = None
        state.entered[phase] = Entry(line.number, state.last_stamp_s)
        yield PhaseEntered(state.node, phase, line.number, state.last_stamp_s)
        last = Phase.ENGINE_READY if state.node == "worker" else Phase.READY
        if phase >= last and not state.ready:
            state.ready = True
            yield Ready(state.node, line.number)
        for name in list(state.sightings):
            follow = self._rules.signatures[name].followed_by
            if follow is not None and follow.phase is not None and phase >= phase_named(follow.phase):
                yield from self._resolve(name, state, line)

    def _sight(self, signature: Signature, state: BootState, line: Line, at: int) -> Iterator[Event]:
        since, until = signature.phases
        phase = state.phase if state.phase is not None else Phase.PREPARATION
        if not since <= phase <= until or (signature.rank != "any" and state.node not in {signature.rank, None}):
            return
        match = signature.regex.search(line.text) if signature.regex else None
        if signature.regex and match is None:
            return
        if signature.ruled_out_by and signature.ruled_out_by.search(line.text):
            return
        before = state.sightings.get(signature.id)
        if before is not None and not before.resolved:
            count_again(signature, state, line.number)
            return
        text = quote(line.text, match.start() if match else at)
        values = {name: quote(value) for name, value in (match.groupdict() if match else {}).items() if value}
        count = before.count + 1 if before else 1
        first = Sighting(
            signature.id, line.number, line.number, count, text, phase, state.last_stamp_s, values, resolved=False
        )
        state.sightings[signature.id] = SightingState(first, line.number, count)
        if before is None or before.resolved:
            yield Found(state.node, signature.id, signature.failure, signature.severity, line.number, text)

    def _follow(self, signatures: tuple[str, ...], state: BootState, line: Line) -> Iterator[Event]:
        for name in signatures:
            if name not in state.sightings:
                continue
            follow = self._rules.signatures[name].followed_by
            if follow is not None and (follow.regex is None or follow.regex.search(line.text)):
                yield from self._resolve(name, state, line)

    def _resolve(self, name: str, state: BootState, line: Line) -> Iterator[Event]:
        sighting = state.sightings[name]
        if not sighting.resolved:
            sighting.resolved = True
            yield Resolved(state.node, name, line.number)


def _told(line: Line) -> Node | None:
    """Which rank a message itself says it is of: a process without a rank in its prefix names it once or twice."""
    match = _RANK_TOLD.search(line.text)
    if match is None:
        return None
    return "worker" if match[1] or (match[2] or match[3]) == "1" else "head"


def _read(reading: Reading, state: BootState, line: Line, at: int) -> Iterator[Event]:
    for name, value in reading.read(line.text, at):
        own = f"draft_{name}" if name == "weights_s" and _loads_draft(state) else name
        if own in _FIRST_COUNTS and own in state.figures:
            continue
        if state.figures.get(own) != value:
            state.figures[own] = value
            yield Figure(state.node, own, value, line.number)


def _loads_draft(state: BootState) -> bool:
    return state.phase is not None and state.phase >= Phase.DRAFT


def _progress(state: BootState, line: Line, at: int) -> Iterator[Event]:
    moved = read_bar(line.text, at)
    if moved is None or state.phase is None:
        return
    what, percent = moved
    if (what in state.bars or len(state.bars) < KEPT_BARS) and state.bars.get(what) != percent:
        state.bars[what] = percent
        yield Progress(state.node, state.phase, what, percent)


def _variable(state: BootState, line: Line, at: int) -> Iterator[Event]:
    match = _VARIABLE.search(line.text, at)
    if match and match[1] not in state.unknown_variables and len(state.unknown_variables) < KEPT_VARIABLES:
        state.unknown_variables[match[1]] = None
        yield UnknownVariable(state.node, match[1])
