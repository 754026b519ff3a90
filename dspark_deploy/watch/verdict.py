"""A boot that failed, as an error: the cause and its rank first, what the other rank says of it after that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dspark_deploy.boot.diagnosis import Answer, Diagnosis
from dspark_deploy.boot.phases import about
from dspark_deploy.boot.quote import masked
from dspark_deploy.boot.signatures import phase_named
from dspark_deploy.errors import LaunchFailed
from dspark_deploy.watch.rank import RankWatch

SHOWN_LINE = 320  # characters


def boot_failed(diagnosis: Diagnosis, ranks: Mapping[str, RankWatch], deaths: Mapping[str, str]) -> LaunchFailed:
    """What both logs and containers say together. `deaths` are the ranks that ended, in the order in which they did."""
    answer = diagnosis.answer
    if answer is not None and answer.failure is not None and _is_cause(answer, deaths):
        return _known(answer, diagnosis, ranks, deaths)
    node = _blamed(answer, deaths, ranks)
    how = deaths.get(node, answer.means if answer is not None else "no line of its log says why")
    return LaunchFailed(
        f"{ranks[node].where}: the {node} rank ended while it started: {how}",
        why="\n".join((last_lines(ranks[node]), *_beside(diagnosis, node, deaths))),
        remedy=answer.remedy if answer is not None and answer.node == node else _read_on(node),
        node=node,
    )


def last_lines(rank: RankWatch, count: int | None = None) -> str:
    """The end of its log, secrets masked."""
    said = rank.tail() if count is None else rank.tail(count)
    return "\n".join(masked(line)[:SHOWN_LINE] for line in said.splitlines()) or "it printed nothing"


def _is_cause(answer: Answer, deaths: Mapping[str, str]) -> bool:
    """Whether the answer tells why. A symptom does not, where the other rank died first without a known word."""
    if answer.role == "cause":
        return True
    return answer.role == "symptom" and (not deaths or next(iter(deaths)) == answer.node)


def _known(
    answer: Answer, diagnosis: Diagnosis, ranks: Mapping[str, RankWatch], deaths: Mapping[str, str]
) -> LaunchFailed:
    node = answer.node if answer.node is not None and answer.node in ranks else next(iter(ranks))
    died = deaths.get(node)
    doing = about(phase_named(answer.phase), answer.node).title
    quoted = (f"| {masked(answer.text)[:SHOWN_LINE]}",) if answer.text else ()
    return LaunchFailed(
        f"{ranks[node].where}: {answer.failure}, while {doing}: {answer.means}{f' ({died})' if died else ''}",
        why="\n".join((*quoted, *_beside(diagnosis, node, deaths))) or last_lines(ranks[node]),
        remedy=answer.remedy,
        node=node,
    )


def _blamed(answer: Answer | None, deaths: Mapping[str, str], ranks: Mapping[str, RankWatch]) -> str:
    """The rank that died without a known word, before the one that only tells of it."""
    told_of = answer.node if answer is not None else None
    silent = [node for node in deaths if node != told_of]
    candidates: list[str | None] = [*silent, told_of, *deaths]
    return next(node for node in (*candidates, *ranks) if node is not None and node in ranks)


def _beside(diagnosis: Diagnosis, blamed: str, deaths: Mapping[str, str]) -> Iterator[str]:
    """What else is known, for whoever doubts the answer."""
    for each in diagnosis.failures:
        if each is diagnosis.answer and each.node == blamed and each.role != "echo":
            continue
        if each.role == "echo":
            yield f"{each.node or 'a rank'} only tells of the other one's end ({each.failure or each.signature})"
        elif each.failure is not None and each.failure != getattr(diagnosis.answer, "failure", None):
            yield f"also {each.failure} on the {each.node or 'pair'}: {each.means}"
    for node, how in deaths.items():
        if node != blamed:
            yield f"the {node} ended too: {how}"


def _read_on(node: str) -> str:
    return f"mend what its last lines name; `dspark explain` reads the kept logs, `dspark logs {node}` while it exists"
