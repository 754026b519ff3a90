"""`status`: the pair's word, told from its containers' labels and from what its API does, and what belongs to it."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from dspark_deploy.facts import labels
from dspark_deploy.facts.node import Container
from dspark_deploy.facts.stamps import SECOND, nanoseconds
from dspark_deploy.flow.completion import complete
from dspark_deploy.flow.explain import bundled_rules
from dspark_deploy.flow.intention import load_inventory_of
from dspark_deploy.flow.look import PairLook, Seen
from dspark_deploy.flow.pair import reach_pair
from dspark_deploy.flow.probing import Probing, Told
from dspark_deploy.flow.report import Detached, RankReport, StatusReport, rank_reports
from dspark_deploy.flow.wish import Wish
from dspark_deploy.plan.journal import Journal, Mark, compared, detached, ranks_word, unconfirmed
from dspark_deploy.plan.situation import Situation, State, state_of_containers
from dspark_deploy.plan.trouble import Silence, troubles_of
from dspark_deploy.remote.clock import Clock

_WORD = {
    "generates": State.SERVING,
    "silent": State.WEDGED,
    "refuses": State.WEDGED,
    "no-api": State.BOOTING,
    "other-api": State.BOOTING,
    "locked": State.UNKNOWN,
}
_ADVICE = {
    State.DOWN: "`dspark up` starts it",
    State.BOOTING: "`dspark watch` shows how far it is, `dspark logs -f` what both ranks print",
    State.SPLIT: "`dspark up` restarts the pair, `dspark down` ends it",
    State.MIXED: "`dspark up` brings both to one release",
    State.WEDGED: "`dspark logs` shows why, `dspark up` restarts it",
    State.UNKNOWN: "`dspark down` ends what can be reached",
}


def read_status(wish: Wish, clock: Clock) -> StatusReport:
    """Both nodes as they are now. A node that can't be asked makes it UNKNOWN; the other is still told.

    A boot that another run began and left is noted in the history, once it serves.
    """
    inventory = load_inventory_of(wish)
    with reach_pair(inventory, wish, clock) as reached:
        return StatusReader(PairLook(inventory.name, reached, bundled_rules(), clock), clock).read()


def watch_status(wish: Wish, clock: Clock, *, every_s: float) -> Generator[StatusReport, None, None]:
    """The same, again and again, until whoever asks has enough. A node that goes away is tried again at every turn."""
    inventory = load_inventory_of(wish)
    with reach_pair(inventory, wish, clock) as reached:
        look = PairLook(inventory.name, reached, bundled_rules(), clock)
        status = StatusReader(look, clock)
        while True:
            yield status.read()
            clock.sleep(every_s)
            look.reopen()


@dataclass
class StatusReader:
    """One pair, looked at once or often."""

    look: PairLook
    clock: Clock
    probing: Probing | None = None

    def read(self) -> StatusReport:
        """The pair now."""
        seen = self.look.look()
        report = self._judge(seen)
        mark = detached(seen.journals, report.release)
        if mark is not None and report.state is State.SERVING:
            complete(
                self.look.hosts,
                self.look.pair,
                mark,
                self.clock,
                release=report.release,
                profile=report.profile,
                family=report.family,
            )
        return _with_marks(report, seen, mark)

    def _judge(self, seen: Seen) -> StatusReport:
        if seen.silent:
            return self._report(State.UNKNOWN, seen)
        state = state_of_containers(seen.situation)
        return self._report(state, seen) if state is not State.BOOTING else self._whole(seen)

    def _whole(self, seen: Seen) -> StatusReport:
        """Both ranks run the same release: its API decides between booting, serving and wedged."""
        self.probing = self.probing or Probing(self.look.pair, self.clock)
        told = self.probing.ask(self.look.hosts, seen.situation)
        if told is None:
            release = seen.situation.release
            detail = f"the head keeps no readable manifest of release {release}, so its API can't be asked"
            return self._report(State.UNKNOWN, seen, detail=detail)
        return self._report(_WORD[told.generation.verdict], seen, told, told.generation.detail)

    def _report(self, state: State, seen: Seen, told: Told | None = None, detail: str = "") -> StatusReport:
        situation = seen.situation
        running = situation.alive("head") or situation.alive("worker")
        marks = running.labels if running is not None else {}
        reasons = {node: error.message for node, error in seen.silent.items()}
        served = told.served if told else None
        ranks = rank_reports(situation, reasons)
        costly = seen.diagnosis.warnings if seen.diagnosis else ()
        agreed_at, differed_at = _parity(situation, seen.journals)
        locked = told is not None and told.generation.verdict == "locked"  # a key is missing here, and nothing to end
        advice = "" if locked else _ADVICE.get(state, "")
        return StatusReport(
            pair=self.look.pair,
            state=state,
            profile=marks.get(labels.PROFILE),
            family=marks.get(labels.FAMILY),
            release=situation.release,
            base_url=told.base_url if told else None,
            ranks=tuple(_with_memory(rank, situation.alive(rank.node), seen, told) for rank in ranks),
            served_name=served.served_name if served else None,
            max_model_len=served.max_model_len if served else None,
            keyed=served.keyed if served else False,
            detail="; ".join(part for part in (*reasons.values(), detail, advice) if part),
            at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            troubles=troubles_of(state, situation, seen.silent, _silence(seen, told)),
            generation=told.generation if told else None,
            load=told.load if told else None,
            version=told.server.version if told and told.server else None,
            stand_in=told.server.stand_in if told and told.server else None,
            costly=costly,
            patches=seen.patches,
            agreed_at=agreed_at,
            differed_at=differed_at,
            untold=seen.untold,
        )


def _parity(situation: Situation, journals: tuple[Journal, ...]) -> tuple[str | None, str | None]:
    """When the ranks that run were last found to agree, and to differ since."""
    head, worker = situation.alive("head"), situation.alive("worker")
    if head is None or worker is None:
        return None, None
    return compared(journals, ranks_word(*((rank.id, rank.started_at) for rank in (head, worker))))


def _with_memory(rank: RankReport, alive: Container | None, seen: Seen, told: Told | None) -> RankReport:
    """A rank, and what its node remembers of it."""
    recalled = seen.recalled.get(rank.node)
    tagged = told.images.get(rank.node) if told else None
    return replace(
        rank,
        uptime_s=_uptime_s(alive, seen.skew_s.get(rank.node)),
        gpu=recalled.gpu if recalled else None,
        image_as_tagged=None if tagged is None or alive is None else tagged == alive.image_id,
        cache=recalled.hashed_of(told.served.model) if recalled and told else None,
        good_at=recalled.noted.at if recalled and recalled.noted else None,
    )


def _uptime_s(alive: Container | None, skew_s: float | None) -> float | None:
    """By the node's own clock, as its start is."""
    if alive is None or alive.state != "running" or alive.started_at is None or skew_s is None:
        return None
    return max(0.0, time.time() + skew_s - nanoseconds(alive.started_at) / SECOND)


def _silence(seen: Seen, told: Told | None) -> Silence | None:
    if told is None:
        return None
    failures = seen.diagnosis.failures if seen.diagnosis else ()
    return Silence(
        detail=told.generation.detail,
        busy_at=seen.busy_at,
        running=told.load.running if told.load else None,
        waiting=told.load.waiting if told.load else None,
        named=tuple(f"{each.failure or each.signature} on the {each.node}: {each.means}" for each in failures),
    )


def _with_marks(report: StatusReport, seen: Seen, mark: Mark | None) -> StatusReport:
    owed = tuple(sorted(unconfirmed(seen.journals)))
    said = [report.detail]
    if mark is not None and report.state is State.BOOTING:
        said.append(f"{mark.who} began it at {mark.at} and left it to boot on")
    if owed:
        said.append(f"an earlier run could not confirm a stop on {' and '.join(owed)}: the next `up` or `down` does")
    return replace(
        report,
        detached=Detached(mark.at, mark.who) if mark is not None and report.state is State.BOOTING else None,
        owed=owed,
        detail="; ".join(filter(None, said)),
    )
