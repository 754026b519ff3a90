"""Inventory, profile, overrides and facts become one deployment, each value with its source."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import PurePosixPath

import pytest

from dspark_deploy.errors import CheckRefused, ConfigError
from dspark_deploy.inventory import Inventory, Node
from dspark_deploy.plan.deployment import Deployment, Endpoint, Override, Rank
from dspark_deploy.plan.resolve import resolve, resolve_workload
from dspark_deploy.strict import Given
from tests.plan.deployments import BUNDLED, CATALOGUE, deploy, example_inventory
from tests.samples import pair_facts

DIGEST = "sha256:" + "a" * 64


def shortest(**head: str) -> Inventory:
    return Inventory(name="p", head=Node.model_validate({"host": "a", **head}), worker=Node(host="b"))


def test_the_example_and_the_default_profile_make_one_deployment() -> None:
    deployment = deploy()
    hca = "=rocep1s0f0,roceP2p1s0f0"
    home = PurePosixPath("/home/spark/.cache/huggingface")
    assert deployment == Deployment(
        pair="spark-pair",
        profile=CATALOGUE.profile("agent-1m").profile,
        model=CATALOGUE.model("deepseek-v4-flash-0731"),
        family=CATALOGUE.family("anemll"),
        image="ghcr.io/anemll/dspark-vllm-gx10:0.1.1",
        ranks=(
            Rank(0, "head", "enp1s0f0np0", IPv4Address("192.168.177.11"), hca, None, home),
            Rank(1, "worker", "enp1s0f0np0", IPv4Address("192.168.177.12"), hca, None, home),
        ),
        api=Endpoint("0.0.0.0", 8888),
        master_port=25000,
        offline=True,
        restart="no",
        sources=deployment.sources,
        overrides=(),
        warnings=("the API listens on every address of the head (0.0.0.0:8888) without a key",),
        digest="sha256:a83948492cf13df455170fb42885f5ef4db54fefe0feff0f841ecbff464ac9d8",
    )


def test_every_value_has_a_source() -> None:
    sources = deploy(given={"max_num_seqs": "4"}).sources
    assert sources["max_num_seqs"] == "--set"
    assert sources["max_model_len"] == f"{BUNDLED}/agent-1m.yaml line 9"
    assert sources["served_model_name"] == "default"
    assert sources["head.interface"] == "inventory"


def test_flags_beat_variables_and_those_the_file_and_overrides_are_recorded() -> None:
    given = [
        Given("max_num_seqs", "3", "--set"),
        Given("max_num_seqs", "2", "DSPARK_MAX_NUM_SEQS"),
        Given("thinking", "low", "DSPARK_THINKING"),
        Given("thinking", "high", ".env line 1"),
        Given("block_size", "128", ".env line 2"),
        Given("environment.NCCL_DEBUG", "INFO", "--set"),
    ]
    deployment = resolve(example_inventory(), CATALOGUE, resolve_workload(CATALOGUE, "agent-1m", given))
    assert set(deployment.overrides) == {
        Override("max_num_seqs", "3", "--set", "6"),
        Override("thinking", "low", "DSPARK_THINKING", "max"),
        Override("block_size", "128", ".env line 2", "256"),
        Override("environment.NCCL_DEBUG", "INFO", "--set", "null"),
    }


def test_what_the_inventory_leaves_out_is_read_off_the_nodes() -> None:
    deployment = deploy(inventory=shortest(), facts=pair_facts())
    assert deployment.ranks == (
        Rank(
            number=0,
            node="head",
            interface="enp1s0f0np0",
            address=IPv4Address("192.168.177.11"),
            hca="=rocep1s0f0,roceP2p1s0f0",
            gid_index=None,
            hf_home=PurePosixPath("/home/nvidia/.cache/huggingface"),
        ),
        Rank(
            number=1,
            node="worker",
            interface="enp1s0f0np0",
            address=IPv4Address("192.168.177.12"),
            hca="=rocep1s0f0,roceP2p1s0f0",
            gid_index=None,
            hf_home=PurePosixPath("/home/ubuntu/.cache/huggingface"),
        ),
    )
    assert deployment.sources["worker.hca"] == "read off the node"


@pytest.mark.parametrize(
    ("said", "path"), [("~", "/home/nvidia"), ("~/hub", "/home/nvidia/hub"), ("/data/hub", "/data/hub")]
)
def test_a_tilde_is_the_nodes_own_home(said: str, path: str) -> None:
    deployment = deploy(inventory=shortest(hf_home=said, hub_cache=said), facts=pair_facts())
    assert (deployment.head.hf_home, deployment.head.hub_cache) == (PurePosixPath(path), PurePosixPath(path))


def test_a_home_that_was_not_asked_for_is_never_guessed() -> None:
    example = example_inventory()
    worker = example.worker.model_copy(update={"hf_home": "~/.cache/huggingface"})
    with pytest.raises(ConfigError, match=r"worker: hf_home is ~/\.cache/huggingface, and only the node") as caught:
        deploy(inventory=example.model_copy(update={"worker": worker}))
    assert caught.value.node == "worker"
    assert "write worker.hf_home out" in caught.value.remedy


def test_an_inventory_that_leaves_the_wiring_out_needs_the_nodes() -> None:
    with pytest.raises(ConfigError, match=r"the inventory leaves head\.fabric\.interface"):
        deploy(inventory=shortest())


def test_facts_that_contradict_the_inventory_refuse_the_start() -> None:
    with pytest.raises(CheckRefused, match="head: there is no interface enp1s0f0np0"):
        deploy(facts=pair_facts({"netdevs": ()}))


def test_an_image_with_a_digest_is_a_tag_and_what_it_has_to_be() -> None:
    deployment = deploy(given={"image": f"ghcr.io/anemll/dspark-vllm-gx10:0.2.0@{DIGEST}"})
    assert (deployment.image, deployment.digest) == ("ghcr.io/anemll/dspark-vllm-gx10:0.2.0", DIGEST)


def test_the_familys_digest_is_of_its_own_tag_only() -> None:
    assert deploy(given={"image": "ghcr.io/anemll/dspark-vllm-gx10:0.2.0"}).digest is None


@pytest.mark.parametrize("image", ["ghcr.io/anemll/dspark-vllm-gx10", f"localhost:5000/x@{DIGEST}"])
def test_an_image_without_a_tag_is_refused(image: str) -> None:
    with pytest.raises(ConfigError, match=r"--set: `image` .* has no tag"):
        deploy(given={"image": image})


def test_on_another_family_a_profile_does_not_keep_its_own_familys_tag() -> None:
    deployment = deploy("diagnostic-fp8", {"family": "anemll"})
    assert deployment.image == "ghcr.io/anemll/dspark-vllm-gx10:0.1.1"
    assert deployment.sources["image"] == "--set"


def test_an_unknown_family_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="no family is called `stagec`") as caught:
        deploy(given={"family": "stagec"})
    assert "did you mean `stage-c`?" in caught.value.remedy


def test_an_unknown_model_names_all() -> None:
    with pytest.raises(ConfigError, match="no model is called `zzz`") as caught:
        deploy(given={"model": "zzz"})
    assert "deepseek-v4-flash-0731" in caught.value.remedy
