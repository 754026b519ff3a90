"""`status`: the pair's word, told from its containers' labels and from what its API does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from dspark_deploy.errors import DsparkError
from dspark_deploy.execute.journal import note, try_journals
from dspark_deploy.facts import labels
from dspark_deploy.facts.node import Container
from dspark_deploy.flow.intention import load_inventory_of
from dspark_deploy.flow.pair import Reached, reach_pair
from dspark_deploy.flow.releases import read_served
from dspark_deploy.flow.report import Detached, PairReport, rank_reports
from dspark_deploy.flow.wish import Wish
from dspark_deploy.plan.journal import BOOTING, Entry, Journal, Mark, detached, unconfirmed
from dspark_deploy.plan.served import Served
from dspark_deploy.plan.situation import Situation, State, sort_containers, state_of_containers
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.parallel import beside
from dspark_deploy.remote.served import ServedApi
from dspark_deploy.watch.gather import look_at_each
from dspark_deploy.watch.generation import Generation, ask_for_a_token

_WORD = {
    "generates": State.SERVING,
    "silent": State.WEDGED,
    "refuses": State.WEDGED,
    "no-api": State.BOOTING,
    "other-api": State.BOOTING,
}
_ADVICE = {
    State.DOWN: "`dspark up` starts it",
    State.BOOTING: "`dspark logs -f` shows both ranks, `dspark up` waits for it",
    State.SPLIT: "`dspark up` restarts the pair, `dspark down` ends it",
    State.MIXED: "`dspark up` brings both to one release",
    State.WEDGED: "`dspark logs` shows why, `dspark up` restarts it",
    State.UNKNOWN: "mend that first; `dspark down` ends what can be reached",
}


def read_status(wish: Wish, clock: Clock) -> PairReport:
    """Both nodes as they are now. A node that can't be asked makes it UNKNOWN; the other is still told.

    A boot that another run began and left is noted in the history, once it serves.
    """
    inventory = load_inventory_of(wish)
    with reach_pair(inventory, wish, clock) as reached:
        seen = _look(reached, inventory.name, clock)
        report = _judge(seen, reached.hosts, inventory.name, clock)
        mark = detached(seen.journals, report.release)
        if mark is not None and report.state is State.SERVING:
            note(reached.hosts, inventory.name, clock, entry=_completed(mark, report), marks={BOOTING: None})
    return _with_marks(report, seen, mark)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What both nodes tell. `silent` are those whose containers are not known, with the reason."""

    situation: Situation
    silent: Mapping[str, DsparkError]
    journals: tuple[Journal, ...]  # of the nodes that tell one


def _look(reached: Reached, pair: str, clock: Clock) -> _Seen:
    containers: dict[str, tuple[Container, ...]] = {}
    silent: dict[str, DsparkError] = dict(reached.unreachable)
    ranks, journals = beside(
        partial(look_at_each, reached.hosts, pair, clock), partial(try_journals, reached.hosts, pair, clock), clock
    )
    for node, outcome in ranks.items():
        if isinstance(outcome, DsparkError):
            silent[node] = outcome
        else:
            containers[node] = outcome
    return _Seen(sort_containers(pair, containers), silent, tuple(journals.values()))


def _judge(seen: _Seen, hosts: Mapping[str, Host], pair: str, clock: Clock) -> PairReport:
    if seen.silent:
        return _report(pair, State.UNKNOWN, seen.situation, None, seen.silent, None, "")
    state = state_of_containers(seen.situation)
    if state is not State.BOOTING:
        return _report(pair, state, seen.situation, None, {}, None, "")
    return _whole(pair, hosts["head"], seen.situation, clock)


def _completed(mark: Mark, report: PairReport) -> Entry:
    """The run that left before the end, as it would have noted it."""
    return Entry(
        run=mark.run or mark.at,
        at=mark.at,
        who=mark.who,
        command="up",
        outcome="serving",
        release=report.release,
        profile=report.profile,
        family=report.family,
        message="it had left the pair to boot on",
    )


def _with_marks(report: PairReport, seen: _Seen, mark: Mark | None) -> PairReport:
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


def _whole(pair: str, head: Host, situation: Situation, clock: Clock) -> PairReport:
    """Both ranks run the same release: its API decides between booting, serving and wedged."""
    served = read_served(head, pair, situation.release or "")
    if served is None:
        detail = f"the head keeps no readable manifest of release {situation.release}, so its API can't be asked"
        return _report(pair, State.UNKNOWN, situation, None, {}, None, detail)
    endpoint = served.endpoint
    with ServedApi(head, endpoint.probe_address, endpoint.port) as api:
        generation: Generation = ask_for_a_token(api, served, clock)
    base_url = served.base_url(head.address)
    return _report(pair, _WORD[generation.verdict], situation, served, {}, base_url, generation.detail)


def _report(
    pair: str,
    state: State,
    situation: Situation,
    served: Served | None,
    silent: Mapping[str, DsparkError],
    base_url: str | None,
    detail: str,
) -> PairReport:
    reasons = {node: error.message for node, error in silent.items()}
    told = situation.alive("head") or situation.alive("worker")
    marks = told.labels if told is not None else {}
    advice = _ADVICE.get(state, "")
    return PairReport(
        pair=pair,
        state=state,
        profile=marks.get(labels.PROFILE),
        family=marks.get(labels.FAMILY),
        release=situation.release,
        base_url=base_url,
        ranks=rank_reports(situation, reasons),
        served_name=served.served_name if served else None,
        max_model_len=served.max_model_len if served else None,
        detail="; ".join(part for part in (*reasons.values(), detail, advice) if part),
    )
