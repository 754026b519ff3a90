"""`rehearse`: have an embedded pair up, and say how the tool reaches it; end it; list what can be broken."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dspark_deploy.errors import ConfigError
from dspark_deploy.flow.catalogue import catalogue_of
from dspark_deploy.flow.observer import Observer
from dspark_deploy.flow.record import state_home
from dspark_deploy.flow.wish import Wish
from dspark_deploy.inventory import load_inventory
from dspark_deploy.rehearsal import pair
from dspark_deploy.rehearsal.demand import spec_of
from dspark_deploy.rehearsal.places import Places
from dspark_deploy.rehearsal.scenarios import HEALTHY, scenario, scenarios
from dspark_deploy.rehearsal.spec import TIME_SCALE
from dspark_deploy.remote.clock import Clock

BROKEN_OFF = "a rehearsal whose start was broken off"


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A pair that is up, and what a command has to be given to work on it."""

    pid: int
    scenario: str
    time_scale: float
    inventory: Path
    ssh_config: Path
    programs: Path  # a folder for the end of PATH: what a machine without OpenSSH lacks

    @property
    def api_port(self) -> int:
        """The head's, which nobody else on this machine has."""
        return load_inventory(self.inventory).api.port


@dataclass(frozen=True, slots=True)
class ScenarioLine:
    """One scenario in the list."""

    name: str
    about: str
    up: int  # exit code of the first `up`


def open_rehearsal(
    wish: Wish, observer: Observer, clock: Clock, *, name: str | None = None, time_scale: float | None = None
) -> Rehearsal:
    """Have a pair up: the one that is, or a new one in that scenario. None: whatever it has, else healthy and 60.

    Raises ConfigError for an unknown scenario, and where the pair that is up has another one than asked for.
    """
    if name is not None:
        scenario(name)
    places = Places.below(state_home(wish.environment, wish.home))
    with pair.guarded(places):
        there = pair.recorded(places)
        if there is not None and not pair.is_alive(places):
            observer.note(f"cleared away a rehearsal that ended by itself: {there}")
            there = None
        if there is None:
            if pair.is_alive(places):
                observer.note(f"ends {BROKEN_OFF}")
            spec = spec_of(catalogue_of(wish), name or HEALTHY, time_scale or TIME_SCALE)
            there = pair.start(places, spec, clock)
            observer.note(f"a rehearsal pair is up: {there}; `dspark rehearse stop` ends it")
    _refuse_another(there, name, time_scale)
    return Rehearsal(there.pid, there.scenario, there.time_scale, places.inventory, places.ssh_config, places.programs)


def stop_rehearsal(wish: Wish, clock: Clock) -> str | None:
    """End the pair and remove all of it. Returns what it was, None where there was none."""
    places = Places.below(state_home(wish.environment, wish.home))
    with pair.guarded(places):
        unfinished = pair.is_alive(places)
        ended = pair.stop(places, clock)
    if ended is None:
        return BROKEN_OFF if unfinished else None
    return str(ended)


def list_scenarios() -> tuple[ScenarioLine, ...]:
    """All of them, in the file's order."""
    return tuple(ScenarioLine(name, each.about, each.up) for name, each in scenarios().items())


def _refuse_another(there: pair.Pair, name: str | None, time_scale: float | None) -> None:
    asked = []
    if name not in {None, there.scenario}:
        asked.append(f"scenario {name}")
    if time_scale not in {None, there.time_scale}:
        asked.append(f"time scale {time_scale:g}")
    if asked:
        raise ConfigError(
            f"a rehearsal pair is up already, and not with {' and '.join(asked)}",
            why=str(there),
            remedy="`dspark rehearse stop` ends it; then run the command again",
        )
