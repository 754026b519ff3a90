"""Tokens as the pair itself counts them: by its running server, or with the tokenizer from a node's cache."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import PurePosixPath
from typing import Final

from dspark_deploy.errors import NotAsWanted
from dspark_deploy.flow.intention import load_inventory_of
from dspark_deploy.flow.pair import reach_pair
from dspark_deploy.flow.tokens import FILE, Counter, counter_from, in_snapshot, repository_folder
from dspark_deploy.flow.wish import Wish
from dspark_deploy.inventory import Inventory, Node
from dspark_deploy.model import Model
from dspark_deploy.plan.deployment import Endpoint
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.host import Host
from dspark_deploy.remote.served import HTTP_OK, Api, NoAnswer, ServedApi

SERVED: Final = "served"
_READ_S = 60.0  # a tokenizer's file is some megabytes
_COUNT_S = 60.0
_REMEDY = "say --tokenizer estimate, or see `dspark status`"


@contextmanager
def open_pair_counter(model: Model, *, named: str, wish: Wish, clock: Clock) -> Iterator[Counter]:
    """`served`: the running server's /tokenize. `head`, `worker`: the tokenizer in that node's cache.

    Raises NodeUnreachable, and NotAsWanted where nothing serves or the node's cache has no tokenizer.
    """
    inventory = load_inventory_of(wish)
    if named == SERVED:
        endpoint = Endpoint(inventory.api.bind, inventory.api.port)
        with (
            _node("head", inventory, wish, clock) as host,
            ServedApi(host, endpoint.probe_address, endpoint.port) as api,
        ):
            yield Counter(partial(count_served, api), "the running server's /tokenize")
        return
    with _node(named, inventory, wish, clock) as host:
        path, text = read_on_node(host, inventory.head if named == "head" else inventory.worker, model)
    yield counter_from(text, f"the model's own tokenizer, {path} on the {named}")


def count_served(api: Api, data: bytes) -> float:
    """As many tokens as the server makes of it."""
    body = {"prompt": data.decode("utf-8", "replace"), "add_special_tokens": False}
    try:
        answer = api.post("/tokenize", body, timeout_s=_COUNT_S)
    except NoAnswer as error:
        raise NotAsWanted(f"head: /tokenize gives no answer: {error}", remedy=_REMEDY, node="head") from error
    document = answer.document()
    if answer.status != HTTP_OK or not isinstance(document, dict) or not isinstance(document.get("count"), int):
        why = answer.text[:200]
        raise NotAsWanted(f"head: /tokenize answers {answer.status}", why=why, remedy=_REMEDY, node="head")
    return float(document["count"])


def read_on_node(host: Host, node: Node, model: Model) -> tuple[PurePosixPath, str]:
    """Where the model's tokenizer lies in a node's cache, and its text."""
    home = _from_home(node.hf_home)
    if model.directory is not None:
        path = home / model.directory / FILE
    else:
        hub = _from_home(node.hub_cache) if node.hub_cache else home / "hub"
        repository = hub / repository_folder(model)
        revision = model.revision or (_cat(host, repository / "refs" / "main") or "main").strip()
        path = PurePosixPath(in_snapshot(repository, revision))
    text = _cat(host, path)
    if text is None:
        remedy = "complete the model there, or say --tokenizer estimate"
        raise NotAsWanted(f"{host.where}: there is no {path}", remedy=remedy, node=host.name)
    return path, text


@contextmanager
def _node(name: str, inventory: Inventory, wish: Wish, clock: Clock) -> Iterator[Host]:
    """One node; the other may be gone."""
    with reach_pair(inventory, wish, clock) as reached:
        if name in reached.unreachable:
            raise reached.unreachable[name]
        yield reached.hosts[name]


def _from_home(path: str) -> PurePosixPath:
    """A path on a node as its commands see it: they run in its home."""
    return PurePosixPath(path.removeprefix("~/"))


def _cat(host: Host, path: PurePosixPath) -> str | None:
    result = host.run(("cat", str(path)), timeout_s=_READ_S)
    return result.stdout if result.returncode == 0 else None
