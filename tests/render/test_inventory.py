"""What `init` writes is read back as it was meant, whatever a node or an env file had to say."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspark_deploy.bundled import SearchPath, data_folder
from dspark_deploy.inventory import load_inventory
from dspark_deploy.plan.catalogue import Catalogue
from dspark_deploy.plan.draft import OF_THE_PAIR, Draft, Said
from dspark_deploy.render.inventory import inventory_file, model_file, profile_file
from dspark_deploy.render.quoting import plain_value, quoted
from dspark_deploy.strict import read_document
from tests.plan.deployments import CATALOGUE

DRAFT: Draft = {
    "name": Said("spark-pair"),
    "profile": Said("agent-1m", "the default lane"),
    "ssh_config": Said("/home/dev/my configs/ssh"),
    "head.host": Said("ops@[fd00::1]:2222", "nvidia on spark-1"),
    "head.fabric.interface": Said("enp1s0f0np0", "a reason\nwith: a line end # and a mark"),
    "head.fabric.address": Said("10.9.0.1", "in 10.9.0.0/30"),
    "head.fabric.prefix": Said(30),
    "head.fabric.hca": Said("=rocep1s0f0,roceP2p1s0f0"),
    "head.fabric.gid_index": Said("auto"),
    "head.hf_home": Said("/data/ü \\ \" '/hf"),
    "worker.host": Said("local"),
    "worker.fabric.address": Said("10.9.0.2"),
    "worker.fabric.prefix": Said(30),
    "worker.hf_home": Said("~/.cache/huggingface"),
    "worker.hub_cache": Said("/data/hub"),
    **OF_THE_PAIR,
}


def test_an_inventory_is_read_back_as_it_was_drafted(tmp_path: Path) -> None:
    path = tmp_path / "inventory.yaml"
    path.write_text(inventory_file(DRAFT, ["one thing", "another"], origin="what both nodes say", tool="1"))
    inventory = load_inventory(path)
    head, worker = inventory.head, inventory.worker
    assert (head.host, worker.host, str(inventory.ssh_config)) == (
        "ops@[fd00::1]:2222",
        "local",
        "/home/dev/my configs/ssh",
    )
    assert (head.hf_home, head.fabric.hca) == ("/data/ü \\ \" '/hf", "=rocep1s0f0,roceP2p1s0f0")
    assert (str(head.fabric.address), head.fabric.prefix) == ("10.9.0.1", 30)
    assert (worker.fabric.interface, worker.hub_cache) == ("auto", "/data/hub")
    assert inventory.restart == "no"
    text = path.read_text()
    assert "# NOTE one thing.\n# NOTE another.\n" in text
    assert "enp1s0f0np0  # a reason with: a line end # and a mark\n" in text


def test_what_nobody_said_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "inventory.yaml"
    bare = {
        key: said for key, said in DRAFT.items() if ".fabric." not in key and "hf_home" not in key and "hub" not in key
    }
    path.write_text(inventory_file(bare, [], origin="x", tool="1"))
    assert "fabric:" not in path.read_text()
    assert load_inventory(path).head.fabric.address == "auto"


def test_a_profile_of_an_env_file_extends_the_published_one(tmp_path: Path) -> None:
    values = {
        "max_num_seqs": Said(4, "MAX_NUM_SEQS, line 3"),
        "generation_config": Said(None, "x"),
        "environment.NCCL_DEBUG": Said("INFO", "NCCL_DEBUG, line 4"),
        "environment.NCCL_IB_MERGE_NICS": Said("0", "NCCL_IB_MERGE_NICS, line 5"),
    }
    text = profile_file("mine", "agent-1m", values, origin=".env.dspark", tool="1")
    (tmp_path / "mine.yaml").write_text(text)
    profile = Catalogue(SearchPath((tmp_path, data_folder("profiles")))).profile("mine").profile
    assert (profile.max_num_seqs, profile.generation_config, profile.draft_tokens) == (4, None, 5)
    assert profile.environment == {"NCCL_DEBUG": "INFO", "NCCL_IB_MERGE_NICS": "0"}


def test_a_model_is_written_whole(tmp_path: Path) -> None:
    model = CATALOGUE.model("deepseek-v4-flash-0731").model_copy(update={"name": "mine", "revision": "1" * 40})
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine.yaml").write_text(model_file(model, like="x", origin=".env.dspark", tool="1"))
    assert Catalogue(SearchPath((tmp_path,))).model("mine") == model


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12))
def test_any_text_is_read_back(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("yaml") / "x.yaml"
    path.write_text(f"plain: {plain_value(text)}\nquoted: {quoted(text)}\n", encoding="utf-8", newline="\n")
    data = read_document(path, absent="").data
    assert (data["plain"], data["quoted"]) == (text, text)


def test_numbers_and_words_of_yaml_stay_what_they_are() -> None:
    assert [plain_value(value) for value in ("no", "null", "1", "1.5", "=x", "")] == [
        '"no"',
        '"null"',
        '"1"',
        '"1.5"',
        '"=x"',
        '""',
    ]
    assert [plain_value(value) for value in (None, True, 4, 0.85)] == ["null", "true", "4", "0.85"]
    assert [plain_value(value) for value in ("10.77.0.2", "~/hf", "agent-1m")] == ["10.77.0.2", "~/hf", "agent-1m"]
