"""An env file of upstream's scripts, taken over: what goes into the inventory, what into a profile, what nowhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dspark_deploy.errors import ConfigError
from dspark_deploy.inventory import Api, Inventory, subnet_of
from dspark_deploy.plan.catalogue import Catalogue
from dspark_deploy.plan.upstream_keys import (
    API_KEYS,
    DERIVED,
    IN_INVENTORY,
    OWN,
    PLACEHOLDERS,
    SOCKETS,
    WHOLE_NUMBERS,
    left_out,
)
from dspark_deploy.plan.upstream_workload import UpstreamWorkload, take_workload
from dspark_deploy.strict import Assigned, Data, validate

Fate = Literal["taken", "same", "derived", "left-out"]
_MEANS_SOMETHING_EMPTY = ("DSPARK_REVISION", "DSPARK_REVISION_ABLITERATED")
_LOOPBACK = "127.0.0.1"
_API_PORT, _MASTER_PORT = (
    int(model.model_fields[field].default) for model, field in ((Api, "port"), (Inventory, "master_port"))
)


@dataclass(frozen=True, slots=True)
class KeyFate:
    """What became of one line. `same`: what is there by default already says so. `derived`: nobody has to say it."""

    line: int
    name: str  # "": the line sets nothing
    fate: Fate
    to: str  # a key of the inventory, or a value of the profile; "" where it went nowhere
    why: str


@dataclass(frozen=True, slots=True)
class TakenOver:
    """An env file, as far as it can be taken over."""

    keys: tuple[KeyFate, ...]  # every line that sets something or can't be read, in the file's order
    inventory: Mapping[str, str | int]  # `head.fabric.interface` -> value
    reasons: Mapping[str, str]  # of each of those: why it stands there
    workload: UpstreamWorkload
    warnings: tuple[str, ...]  # what is otherwise than the file has it, and should not pass unseen


def take_over(found: Sequence[Assigned], catalogue: Catalogue, *, profile: str | None, own: str) -> TakenOver:
    """Sort every key. `profile` is the one to start from; None: the published one that is nearest.

    `own` is what a profile and a model are called that are written for the file: an earlier one is no model for it.
    """
    fates: dict[int, KeyFate] = {}  # by position
    last = {each.name: position for position, each in enumerate(found)}
    settled: dict[str, str] = {}
    for position, each in enumerate(found):
        unusable = _unusable(each, found[last[each.name]])
        if unusable is None:
            settled[each.name] = each.value or ""
        else:
            fates[position] = unusable
    lines = {name: found[position].line for name, position in last.items()}
    keyed = next((each.name for each in found if each.name in API_KEYS and each.value != ""), None)
    inventory = _Inventory(settled, lines, keyed)
    workload = take_workload(inventory.rest(), settled, catalogue, profile=profile, own=own)
    for name, (fate, to, why) in {**inventory.fates, **workload.fates}.items():
        fates[last[name]] = KeyFate(lines[name], name, fate, to, why)
    return TakenOver(
        keys=tuple(fates[position] for position in sorted(fates)),
        inventory=inventory.values,
        reasons=inventory.reasons,
        workload=workload,
        warnings=(*inventory.warnings, *workload.warnings),
    )


def _unusable(each: Assigned, last: Assigned) -> KeyFate | None:
    """Why this line's value is of no use, whatever its key."""

    fate: Fate = "left-out"
    if each is not last and each.name:
        why = f"line {last.line} sets it again"
    elif each.value is None:
        why = each.why
    elif each.value in PLACEHOLDERS:
        why = "the example's placeholder still stands there"
    elif each.value or each.name in _MEANS_SOMETHING_EMPTY:
        return None
    elif each.name in DERIVED:
        fate, why = "derived", DERIVED[each.name]
    else:
        why = left_out(each.name) or "it is empty"
    return KeyFate(each.line, each.name, fate, "", why)


class _Inventory:
    """The keys that say how the pair is wired and reached."""

    def __init__(self, settled: Mapping[str, str], lines: Mapping[str, int], keyed: str | None) -> None:
        self._settled = settled
        self._lines = lines
        self.values: dict[str, str | int] = {}
        self.reasons: dict[str, str] = {}
        self.fates: dict[str, tuple[Fate, str, str]] = {}
        self.warnings: list[str] = []
        self._origins: dict[str, str] = {}  # upstream's name -> our key
        own = "worker" if settled.get("NODE_RANK") == "1" else "head"
        for name, to in IN_INVENTORY.items():
            if name in settled:
                self._take(name, to.replace(f"{OWN}.", f"{own}."))
        self._worker_cache()
        self._together()
        self._sockets()
        if keyed is not None:
            self._stay_closed(keyed)

    def rest(self) -> tuple[str, ...]:
        """The keys that are none of these."""
        return tuple(name for name in self._settled if name not in self.fates)

    def _take(self, name: str, to: str) -> None:
        value = _value(to, self._settled[name])
        if to in self.values:
            same = self.values[to] == value
            other = next(each for each, key in self._origins.items() if key == to)
            self.fates[name] = (
                ("same", to, f"{other} says so") if same else ("left-out", "", f"{other} says {self.values[to]}")
            )
        elif why := self._refusal(name, to, value):
            self.fates[name] = ("left-out", "", why)
        else:
            self.values[to], self._origins[name] = value, to
            self.reasons[to] = f"{name}, line {self._lines[name]}"
            self.fates[name] = ("taken", to, "")

    def _refusal(self, name: str, to: str, value: str | int) -> str | None:
        if to.endswith(".gid_index") and self._settled.get("NCCL_IB_GID_AUTO") != "0":
            return "the index moves when a node boots: it is looked up at each start, as upstream's script does"
        try:
            fabric = _inventory({to: value}, name)
        except ConfigError as error:
            return f"{error.message.partition(': ')[2]}; {error.remedy}"
        addresses = [each.fabric.address for each in (fabric.head, fabric.worker)]
        if any(each != "auto" and each.is_link_local for each in addresses):
            return "a link-local address changes: it is looked up at each start"
        return None

    def _worker_cache(self) -> None:
        """Upstream mounts the head's path on the worker, too, where the worker has none of its own."""
        if "head.hf_home" in self.values and "worker.hf_home" not in self.values:
            self.values["worker.hf_home"] = self.values["head.hf_home"]
            self.reasons["worker.hf_home"] = f"{self.reasons['head.hf_home']}: the head's, as upstream mounts it"
            self.fates["HF_CACHE"] = ("taken", "head.hf_home", "and worker.hf_home, since WORKER_HF_CACHE says nothing")

    def _together(self) -> None:
        """What can't be meant at once: the later key goes."""
        if self.values.get("api.port", _API_PORT) == self.values.get("master_port", _MASTER_PORT):
            later, other = ("master_port", "API") if "master_port" in self.values else ("api.port", "rendezvous")
            self._drop(later, f"it is the {other}'s port too, and the head can't listen twice on one port")
        both = _inventory({key: self.values[key] for key in self.values if key.endswith(".address")}, "")
        head, worker = subnet_of(both.head.fabric), subnet_of(both.worker.fabric)
        if head is None or worker is None:
            return
        if both.head.fabric.address == both.worker.fabric.address:
            self._drop("worker.fabric.address", "it is the head's address too")
        elif head != worker:
            self._drop("worker.fabric.address", f"it is not in {head}, where the head's is: it is looked up instead")

    def _sockets(self) -> None:
        """Interfaces that were set apart from NCCL's are told: a stale one is a common fault there (F45)."""
        for name in SOCKETS:
            nccl = name.replace("TP_", "NCCL_").replace("GLOO_", "NCCL_")
            if name in self._settled and self._settled[name] != self._settled.get(nccl, self._settled[name]):
                self.fates[name] = ("derived", "", f"{DERIVED[name]}; here it differs from {nccl}")

    def _stay_closed(self, keyed: str) -> None:
        """An API that asked for keys does not become one that is open to everybody."""
        why = f"the file sets {keyed}, and a key is never copied"
        if self.values.get("api.bind") != _LOOPBACK:
            self.values["api.bind"], self.reasons["api.bind"] = _LOOPBACK, why
            how = "write one key into a file of its own, chmod 600, name it as api.key_file, and set api.bind back"
            self.warnings.append(f"the API listens on {_LOOPBACK} only: {why}: {how}")
            if "VLLM_HOST" in self.fates:
                self.fates["VLLM_HOST"] = ("left-out", "", f"api.bind is {_LOOPBACK}: {why}")

    def _drop(self, to: str, why: str) -> None:
        del self.values[to], self.reasons[to]
        for name in [name for name, key in self._origins.items() if key == to]:
            del self._origins[name]
            self.fates[name] = ("left-out", "", why)


def _value(to: str, text: str) -> str | int:
    return int(text) if to in WHOLE_NUMBERS and text.isascii() and text.isdigit() else text


def _inventory(values: Mapping[str, str | int], name: str) -> Inventory:
    """An inventory that says nothing else. Raises ConfigError."""
    return validate(Inventory, nested({"name": "x", "head.host": "a", "worker.host": "b", **values}), lambda _: name)


def nested(values: Mapping[str, Data]) -> dict[str, Data]:
    """`{"head.host": "a"}` as `{"head": {"host": "a"}}`."""
    tree: dict[str, Data] = {}
    for key, value in values.items():
        *sections, leaf = key.split(".")
        place = tree
        for section in sections:
            place = place.setdefault(section, {})
        place[leaf] = value
    return tree
