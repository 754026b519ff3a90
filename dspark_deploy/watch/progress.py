"""How far a boot is: both ranks' phases, what is left by what earlier boots took, and what is normal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dspark_deploy.boot.estimate import Durations, learned, published, time_left
from dspark_deploy.boot.events import Node
from dspark_deploy.boot.phases import Phase, about
from dspark_deploy.plan.journal import Entry
from dspark_deploy.watch.boot import BootWatch


@dataclass(frozen=True, slots=True)
class RankProgress:
    """One rank that was started. Seconds are by our clock."""

    node: Node
    phase: str | None  # its label; None: it has printed nothing that is known
    title: str  # what it does
    percent: int | None  # of the phase's own progress bar
    elapsed_s: float
    in_phase_s: float
    usual_s: float  # what the phase takes on earlier boots
    left_s: float
    quiet_s: float  # since it last printed anything
    quiet_limit_s: float  # how long that is normal for in this phase
    ready: bool


@dataclass(frozen=True, slots=True)
class BootProgress:
    """The pair."""

    elapsed_s: float
    left_s: float
    learned_from: int  # earlier runs of the same profile; 0: the times are the published boot's
    ranks: tuple[RankProgress, ...]  # head first


class Expectation:
    """What each phase usually takes, by rank."""

    def __init__(self, history: Sequence[Entry] = (), profile: str | None = None) -> None:
        same = [each for each in history if each.profile == profile and each.outcome == "serving" and each.phases]
        self.learned_from = len(same)
        self._durations = {
            node: learned([durations_of(each.phases.get(node, {})) for each in same], published(node))
            for node in _NODES
        }

    def of(self, node: Node) -> Durations:
        """Seconds of each phase."""
        return self._durations[node]


def durations_of(phases: Mapping[str, float]) -> dict[Phase, float]:
    """A run's own notes; phases of another version of dspark are passed over."""
    return {_BY_LABEL[label]: seconds for label, seconds in phases.items() if label in _BY_LABEL}


def progress_of(boot: BootWatch, expectation: Expectation, now_s: float) -> BootProgress:
    """How far the ranks are that were started."""
    ranks = tuple(_rank(boot, node, expectation, now_s) for node in _NODES if node in boot.ranks)
    began_s = min((boot.ranks[rank.node].began_s for rank in ranks), default=now_s)
    return BootProgress(
        elapsed_s=now_s - began_s,
        left_s=max((rank.left_s for rank in ranks), default=0.0),
        learned_from=expectation.learned_from,
        ranks=ranks,
    )


def _rank(boot: BootWatch, node: Node, expectation: Expectation, now_s: float) -> RankProgress:
    position, usual = boot.position(node), expectation.of(node)
    phase = position.phase if position.phase is not None else Phase.PREPARATION
    shown = about(phase, node)
    began_s = boot.ranks[node].began_s
    in_phase_s = now_s - max(position.since_s, began_s)
    left = time_left(position.phase, in_phase_s, usual, percent=position.percent, last=_LAST[node])
    return RankProgress(
        node=node,
        phase=None if position.phase is None else position.phase.label,
        title=shown.title,
        percent=position.percent,
        elapsed_s=now_s - began_s,
        in_phase_s=in_phase_s,
        usual_s=usual[phase],
        left_s=left.seconds,
        quiet_s=now_s - max(position.heard_s, began_s),
        quiet_limit_s=shown.quiet_s,
        ready=position.ready,
    )


_NODES: tuple[Node, ...] = ("head", "worker")
_LAST: Mapping[Node, Phase] = {"head": Phase.READY, "worker": Phase.ENGINE_READY}
_BY_LABEL = {phase.label: phase for phase in Phase}
