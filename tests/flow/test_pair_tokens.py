"""Tokens as the pair counts them: through the served API, and with the file from a node's cache."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest

from dspark_deploy.errors import NotAsWanted
from dspark_deploy.flow.pair_tokens import count_served, read_on_node
from dspark_deploy.inventory import Node
from dspark_deploy.model import Model
from dspark_deploy.remote.served import ServedApi
from tests.fakes import FakeHost
from tests.flow.test_tokens import DIRECTORY, PINNED, UNPINNED, snapshot
from tests.samples import node_facts

HOME = PurePosixPath("/home/nvidia")


def served(status: int, answer: Any) -> tuple[FakeHost, list[Any]]:
    host, asked = FakeHost(node_facts("head")), []

    def answerer(method: str, path: str, body: Any) -> tuple[int, Any]:
        asked.append((method, path, body))
        return status, answer

    host.api = answerer
    return host, asked


def test_the_running_server_is_asked_for_each_piece() -> None:
    host, asked = served(200, {"count": 3, "tokens": [1, 2, 3]})
    with ServedApi(host, "127.0.0.1", 8888) as api:
        assert count_served(api, "a b \xff".encode("latin-1")) == 3
    assert asked == [("POST", "/tokenize", {"prompt": "a b \ufffd", "add_special_tokens": False})]


@pytest.mark.parametrize(("status", "answer"), [(404, {"detail": "Not Found"}), (200, {"tokens": []}), (200, "text")])
def test_an_answer_that_is_no_count_is_an_error(status: int, answer: Any) -> None:
    host, _ = served(status, answer)
    with (
        ServedApi(host, "127.0.0.1", 8888) as api,
        pytest.raises(NotAsWanted, match=f"/tokenize answers {status}") as raised,
    ):
        count_served(api, b"text")
    assert raised.value.node == "head"


def test_where_nothing_serves_it_says_so() -> None:
    with (
        ServedApi(FakeHost(node_facts("head")), "127.0.0.1", 8888) as api,
        pytest.raises(NotAsWanted, match="/tokenize gives no answer"),
    ):
        count_served(api, b"text")


@pytest.mark.parametrize(
    ("node", "model", "place"),
    [
        ({}, PINNED, f".cache/huggingface/{snapshot(PINNED)}"),
        ({"hf_home": "~/hf"}, UNPINNED, f"hf/{snapshot(UNPINNED, 'abc')}"),
        ({"hf_home": "/data/hf", "hub_cache": "/data/hub"}, PINNED, f"/data/{snapshot(PINNED)}"),
        ({}, DIRECTORY, f".cache/huggingface/{DIRECTORY.directory}/tokenizer.json"),
    ],
)
def test_a_nodes_cache_is_read_where_its_inventory_says(node: dict[str, str], model: Model, place: str) -> None:
    host = FakeHost(node_facts("head"))
    host.files[HOME / place] = b"{}"
    host.files[HOME / "hf/hub/models--deepseek-ai--DeepSeek-V4-Flash-DSpark/refs/main"] = b"abc\n"
    path, text = read_on_node(host, Node.model_validate({"host": "spark-head", **node}), model)
    assert (str(path), text) == (place, "{}")


def test_a_cache_without_a_tokenizer_is_named_with_its_node() -> None:
    host = FakeHost(node_facts("head"))
    with pytest.raises(NotAsWanted, match=r"head .*there is no \.cache/huggingface/hub/") as raised:
        read_on_node(host, Node(host="spark-head"), PINNED)
    assert raised.value.node == "head"
