"""`status`: the pair's word, told from its containers' labels and from what its API does."""

from __future__ import annotations

from collections.abc import Mapping

from dspark_deploy.errors import NodeUnreachable
from dspark_deploy.facts import labels
from dspark_deploy.flow.intention import load_inventory_of
from dspark_deploy.flow.pair import reach_pair
from dspark_deploy.flow.releases import read_served
from dspark_deploy.flow.report import PairReport, rank_reports
from dspark_deploy.flow.wish import Wish
from dspark_deploy.plan.served import Served
from dspark_deploy.plan.situation import Situation, State, state_of_containers
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.served import ServedApi
from dspark_deploy.watch.gather import look
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
    State.UNKNOWN: "reach the node first; `dspark down` ends what can be reached",
}


def read_status(wish: Wish, clock: Clock) -> PairReport:
    """Both nodes as they are now. A node that can't be reached makes it UNKNOWN; the other is still told."""
    inventory = load_inventory_of(wish)
    with reach_pair(inventory, wish, clock) as reached:
        situation = look(reached.hosts, inventory.name, clock)
        if reached.unreachable:
            return _report(inventory.name, State.UNKNOWN, situation, None, reached.unreachable, None, "")
        state = state_of_containers(situation)
        if state is not State.BOOTING:
            return _report(inventory.name, state, situation, None, {}, None, "")
        return _whole(inventory.name, reached.hosts["head"], situation, clock)


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
    unreachable: Mapping[str, NodeUnreachable],
    base_url: str | None,
    detail: str,
) -> PairReport:
    reasons = {node: error.message for node, error in unreachable.items()}
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
