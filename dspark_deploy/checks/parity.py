"""Do two running ranks agree: in all that both were started with, and in what their containers hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from dspark_deploy.checks.finding import Finding, Status
from dspark_deploy.checks.image import named
from dspark_deploy.facts.parity import RankSeen, Value
from dspark_deploy.facts.patches import patch_outcomes
from dspark_deploy.plan.argv import RANK_FLAGS

ANEW = "`dspark down`, then `dspark up`: both ranks start anew from one release"
ONE_IMAGE = "`dspark pull`, or copy one node's image to the other; then `dspark down` and `dspark up`"
MOST_LISTED = 20  # of the files of one kind that differ; the rest is counted
HASH_DIGITS = 12
ABSENT = "not there"
UNREADABLE = "can't be read"


@dataclass(frozen=True, slots=True)
class Compared(Finding):
    """What was held against the other rank or the release. No text holds a secret's value. `fail`: they differ."""

    what: str = ""
    head: str | None = None
    worker: str | None = None


@dataclass(frozen=True, slots=True)
class Both:
    """Both ranks, and what is each rank's own: see plan/environment.py and render/compose.py."""

    head: RankSeen
    worker: RankSeen
    own_variables: frozenset[str]
    own_mounts: frozenset[str] = frozenset()  # places that one rank alone may have, or with a content of its own

    @property
    def ranks(self) -> tuple[RankSeen, RankSeen]:
        """Head first."""
        return self.head, self.worker


@dataclass(frozen=True, slots=True)
class Difference:
    """One item. `status` is `warn` where the ranks that run agree all the same, `skip` where it could not be told."""

    what: str
    head: str = ""
    worker: str = ""
    remedy: str = ANEW
    node: str | None = None
    status: Status = "fail"
    message: str = ""  # empty: both values are named


@dataclass(frozen=True, slots=True)
class Subject:
    """One thing that ranks agree in. `judge` tells the differences, `fine` is the sentence where there are none."""

    id: str
    failure_ids: tuple[str, ...]  # rows of docs/failures.md
    judge: Callable[[Both], Iterator[Difference]]
    fine: Callable[[Both], str]

    def findings(self, both: Both) -> Iterator[Compared]:
        """One for each difference, or one that says there is none."""
        found = list(self.judge(both))
        if not found:
            yield Compared(self.id, "ok", self.fine(both), what=self.id)
        for each in found:
            message = each.message or f"{each.what}: head {each.head}, worker {each.worker}"
            values = (each.what, each.head or None, each.worker or None)
            yield Compared(self.id, each.status, message, each.node, each.remedy, self.failure_ids, "", *values)


def compare(both: Both) -> tuple[Compared, ...]:
    """All that differs, subject by subject, and a line for each subject in which nothing does."""
    return tuple(finding for subject in SUBJECTS for finding in subject.findings(both))


def _release(both: Both) -> Iterator[Difference]:
    if both.head.release != both.worker.release:
        remedy = "`dspark up` brings both to one release"
        yield Difference("release", both.head.release or ABSENT, both.worker.release or ABSENT, remedy)


def _image(both: Both) -> Iterator[Difference]:
    """By content, not by id: ids differ between image stores."""
    head, worker = both.head.image, both.worker.image
    if head is None or worker is None:
        yield from _untold(both, "image")
    elif (head.layers, head.config) != (worker.layers, worker.config):
        yield Difference("image", named(head), named(worker), ONE_IMAGE)


def _argv(both: Both) -> Iterator[Difference]:
    head, worker = (_flags(rank.argv) for rank in both.ranks)
    for flag in dict.fromkeys((*head, *worker)):
        if flag not in RANK_FLAGS:
            yield from _differing(flag or "the command before its flags", head.get(flag), worker.get(flag))


def _flags(argv: tuple[Value, ...]) -> dict[str, tuple[Value, ...]]:
    """Flag -> all that follows it, also behind a `=`; the words before the first flag stand under an empty name."""
    found: dict[str, tuple[Value, ...]] = {}
    flag = ""
    for word in argv:
        name, equals, value = word.text.partition("=")
        is_flag = name.startswith("--")
        flag = name if is_flag else flag
        more = (Value(value),) if is_flag and equals else () if is_flag else (word,)
        found[flag] = (*found.get(flag, ()), *more)
    return found


def _environment(both: Both) -> Iterator[Difference]:
    head, worker = both.head.environment, both.worker.environment
    for name in sorted(head.keys() | worker.keys()):
        if name not in both.own_variables:
            yield from _differing(f"environment {name}", head.get(name), worker.get(name))


def _differing(what: str, head: object, worker: object) -> Iterator[Difference]:
    if head != worker:
        yield Difference(what, _shown(head), _shown(worker))


def _shown(value: object) -> str:
    if value is None:
        return "has it not"
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "without a value"
    return str(value) or "empty"


def _mounts(both: Both) -> Iterator[Difference]:
    head, worker = both.head.mounts, both.worker.mounts
    for target in sorted((head.keys() | worker.keys()) - both.own_mounts):
        yield from _differing(f"mount {target}", head.get(target), worker.get(target))


def _files(both: Both) -> Iterator[Difference]:
    """As the containers themselves see them, against what was pushed and against each other."""
    told = not any("mounted" in rank.untold for rank in both.ranks)
    yield from _untold(both, "mounted")
    head, worker = both.head.mounted, both.worker.mounted
    for path in sorted(head.keys() | worker.keys()) if told else ():
        if path not in both.own_mounts:
            yield from _file(both, path)
    for rank in both.ranks:
        yield from _changed_since(rank)


def _file(both: Both, path: str) -> Iterator[Difference]:
    seen = {rank.node: rank.mounted.get(path, "") for rank in both.ranks}
    pushed = {rank.node: file.sha256 for rank in both.ranks for file in rank.release_files if file.mounted_at == path}
    strange = [node for node, digest in seen.items() if digest != pushed.get(node, digest)]
    head, worker = _hash(seen["head"]), _hash(seen["worker"])
    if strange:
        wanted = " and ".join(dict.fromkeys(pushed[node][:HASH_DIGITS] for node in strange))
        message = f"file {path}: head {head}, worker {worker}, and {wanted} was pushed"
        yield Difference(f"file {path}", head, worker, node=strange[0] if len(strange) == 1 else None, message=message)
    elif seen["head"] != seen["worker"]:
        yield Difference(f"file {path}", head, worker)


def _changed_since(rank: RankSeen) -> Iterator[Difference]:
    """In the release's folder alone: the rank that runs has not read it, the next one would."""
    for file in rank.release_files:
        if file.state != "whole" and rank.mounted.get(file.mounted_at or "") in {None, file.sha256}:
            message = f"{rank.node}: {file.name} of release {rank.release} is {file.state} since it was pushed"
            yield Difference(f"release file {file.name}", node=rank.node, status="warn", message=message)


def _package(both: Both) -> Iterator[Difference]:
    head, worker = both.head.package, both.worker.package
    if head is None or worker is None:
        yield from _untold(both, "package")
    else:
        yield from _unequal("vllm package", head, worker)


def _unequal(what: str, head: Mapping[str, str | None], worker: Mapping[str, str | None]) -> Iterator[Difference]:
    names = sorted(name for name in head.keys() | worker.keys() if head.get(name, "") != worker.get(name, ""))
    for name in names[:MOST_LISTED]:
        yield Difference(f"{what} {name}", _hash(head.get(name, "")), _hash(worker.get(name, "")))
    if len(names) > MOST_LISTED:
        yield Difference(what, message=f"{what}: {len(names) - MOST_LISTED} more files differ")


def _hash(digest: str | None) -> str:
    return UNREADABLE if digest is None else digest[:HASH_DIGITS] or ABSENT


def _preparation(both: Both) -> Iterator[Difference]:
    """What it did shows in the package; where the beginning of a log is gone, this alone is not known."""
    head, worker = (_steps(rank.printed) for rank in both.ranks)
    silent = [rank.node for rank, steps in zip(both.ranks, (head, worker), strict=True) if not steps]
    if len(silent) == 1:
        message = f"{silent[0]}: the log does not reach back to the preparation any more"
        yield Difference("preparation", node=silent[0], status="skip", message=message, remedy="")
    elif head != worker:
        yield Difference("preparation", ", ".join(head), ", ".join(worker))
    outcomes = [_outcomes(rank.printed) for rank in both.ranks]
    for name in () if silent else dict.fromkeys((*outcomes[0], *outcomes[1])):
        yield from _differing(f"patch {name}", outcomes[0].get(name), outcomes[1].get(name))


def _steps(printed: tuple[str, ...]) -> tuple[str, ...]:
    """The steps that were taken. A container that was started again finds its own work, and says so in other words."""
    words = (line.split(": ") for line in printed if line.startswith("dspark prepare: "))
    return tuple(dict.fromkeys(line[1] for line in words))


def _outcomes(printed: tuple[str, ...]) -> dict[str, str]:
    """Patch -> done or failed: that one was there already, after a second start, is no difference."""
    return {each.name: "failed" if each.outcome == "failed" else "done" for each in patch_outcomes(printed)}


def _untold(both: Both, what: str) -> Iterator[Difference]:
    """What is not known is not equal: a verdict rests on all of it."""
    for rank in both.ranks:
        why = rank.untold.get(what)
        if why is not None:
            remedy = f"see that the rank on {rank.node} runs well (`dspark status`), then ask again"
            yield Difference(
                what, node=rank.node, message=f"{rank.node}: {what} could not be read: {why}", remedy=remedy
            )


SUBJECTS = (
    Subject("release", (), _release, lambda both: f"both ranks run release {both.head.release}"),
    Subject("image", ("F01",), _image, lambda both: f"both run {named(both.head.image) if both.head.image else ''}"),
    Subject("argv", (), _argv, lambda _: f"one command line, but for {' and '.join(RANK_FLAGS)}"),
    Subject(
        "environment",
        ("F58",),
        _environment,
        lambda both: (
            f"{len(both.head.environment.keys() - both.own_variables)} variables are equal; others are each rank's own"
        ),
    ),
    Subject(
        "mounts",
        ("F08",),
        _mounts,
        lambda both: f"the same {len(both.head.mounts.keys() - both.own_mounts)} places are mounted",
    ),
    Subject(
        "files", ("F07", "F85"), _files, lambda both: f"{len(both.head.mounted)} mounted files are as pushed, and equal"
    ),
    Subject(
        "package",
        ("F01", "F07"),
        _package,
        lambda both: f"{len(both.head.package or {})} files of the vllm package are equal",
    ),
    Subject("preparation", ("F85",), _preparation, lambda _: "both were prepared alike"),
)
