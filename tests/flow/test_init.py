"""`init`: two nodes in memory become an inventory that loads and that `up` takes; an env file does, with or without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.errors import CheckRefused, ConfigError, ExitCode
from dspark_deploy.facts.node import Netdev
from dspark_deploy.flow.init import Asked, InitReport, begin, finish, initialise
from dspark_deploy.flow.intention import load_intention
from dspark_deploy.flow.meet import meet
from dspark_deploy.flow.preparation import prepare
from dspark_deploy.flow.wish import Wish
from dspark_deploy.inventory import Inventory, load_inventory
from dspark_deploy.remote.host import Host
from tests.fakes import FakeHost
from tests.flow.stand import FakeClock, FakeObserver
from tests.samples import cache_place, image, node_facts

HOSTS = ("spark-a", "ubuntu@10.77.0.2")
MODEL = "deepseek-ai/DeepSeek-V4-Flash-0731"
STAGE_C = "vllm-dspark-runtime:dspark-nvfp4-stage-c"


class Met:
    """Two fake nodes, and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.head, self.worker = FakeHost(node_facts("head")), FakeHost(node_facts("worker"))

    @property
    def hosts(self) -> Mapping[str, Host]:
        return {"head": self.head, "worker": self.worker}

    @property
    def path(self) -> Path:
        return self.folder / "inventory.yaml"

    def wish(self, **changes: Any) -> Wish:
        return Wish(**{"directory": self.folder, "home": self.folder, **changes})

    def change(self, node: str, **changes: Any) -> None:
        """Another fact of a node."""
        host: FakeHost = getattr(self, node)
        host.facts = replace(host.facts, **changes)

    def init(self, env: str | None = None, *, hosts: tuple[str, str] | None = HOSTS, **changes: Any) -> InitReport:
        """What `dspark init` does, on those nodes."""
        wish = self.wish(**{key: changes.pop(key) for key in ("profile", "ssh_config", "inventory") if key in changes})
        if env is not None:
            (self.folder / ".env.dspark").write_text(env)
            changes["from_env"] = Path(".env.dspark")
        asked = Asked(hosts, **changes)
        if hosts is None:
            return initialise(wish, asked, FakeObserver(), FakeClock())
        begun = begin(wish, asked)
        met = meet(
            self.hosts, begun.seed, begun.catalogue, begun.taken, FakeObserver(), FakeClock(), wanted=begun.wanted
        )
        return finish(begun, met)

    def inventory(self) -> Inventory:
        return load_inventory(self.path)


@pytest.fixture(name="met")
def _met(tmp_path: Path) -> Met:
    return Met(tmp_path)


def values(report: InitReport) -> dict[str, Any]:
    return {each.key: each.value for each in report.choices}


# --- two nodes ----------------------------------------------------------------------------------------------------


def test_two_healthy_nodes_become_a_complete_inventory(met: Met) -> None:
    report = met.init()
    inventory = met.inventory()
    assert (inventory.head.host, inventory.worker.host, inventory.profile) == (*HOSTS, "agent-1m")
    assert (inventory.head.fabric.interface, str(inventory.head.fabric.address)) == ("enp1s0f0np0", "192.168.177.11")
    assert inventory.worker.fabric.hca == "=rocep1s0f0,roceP2p1s0f0"
    assert (inventory.head.hf_home, inventory.worker.hf_home) == (
        "/home/nvidia/.cache/huggingface",
        "/home/ubuntu/.cache/huggingface",
    )
    assert (report.written, report.warnings) == (True, ())
    assert [(each.network, each.carried, each.chosen) for each in report.networks] == [
        ("192.168.177.0/24", ("whole", "whole"), True)
    ]


def test_every_value_says_why(met: Met) -> None:
    met.init()
    text = met.path.read_text()
    assert "address: 192.168.177.11  # in 192.168.177.0/24; whole frames of 9000 bytes come through, both ways" in text
    assert "host: spark-a  # nvidia on spark-head, aarch64" in text
    assert f"# the usual place; holds {MODEL}, 1024 GiB free" in text


def test_up_takes_what_init_wrote(met: Met) -> None:
    met.init()
    intention = load_intention(met.wish())
    assert intention.complete
    assert prepare(intention, met.hosts, FakeClock()).deployment.pair == "spark-pair"


def test_one_datagram_program_runs_on_both_for_every_rail(met: Met) -> None:
    met.init()
    requests = [next(detail for what, detail in host.done if what == "link") for host in (met.head, met.worker)]
    assert requests[0]["token"] == requests[1]["token"]
    for here, there in zip(requests[0]["links"], requests[1]["links"], strict=True):
        assert (here["address"], here["peer"], here["port"], here["size"]) == (
            there["peer"],
            there["address"],
            there["port"],
            8972,
        )


def test_an_inventory_that_is_there_is_not_written_over_and_no_node_is_asked(met: Met) -> None:
    met.path.write_text("name: mine\n")
    with pytest.raises(ConfigError, match="is there already") as caught:
        met.init()
    assert (caught.value.code, met.head.done) == (ExitCode.USAGE, [])
    assert met.path.read_text() == "name: mine\n"
    met.init(force=True)
    assert met.inventory().name == "spark-pair"


def test_a_dry_run_shows_the_text_and_writes_nothing(met: Met) -> None:
    report = met.init(dry_run=True)
    assert not report.written
    assert "name: spark-pair" in report.files[str(met.path)]
    assert list(met.folder.iterdir()) == []


def test_another_file_a_name_and_an_ssh_config_are_taken(met: Met) -> None:
    (met.folder / "ssh.conf").write_text("")
    met.init(name="two", inventory=Path("pairs/two.yaml"), ssh_config=Path("ssh.conf"))
    inventory = load_inventory(met.folder / "pairs" / "two.yaml")
    assert (inventory.name, inventory.ssh_config) == ("two", met.folder / "ssh.conf")


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        (("spark-a", "ops@SPARK-A"), "a pair is two nodes"),
        (("local", "local"), "a pair is two nodes"),
        (("spark-a", "spark b"), "worker.host"),
    ],
)
def test_hosts_that_can_t_be_a_pair_are_refused_before_anything(met: Met, hosts: tuple[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        met.init(hosts=hosts)
    assert met.head.done == []


def test_two_names_of_one_machine_are_refused(met: Met) -> None:
    met.change("worker", boot_id="boot-head", hostname="spark-head")
    with pytest.raises(CheckRefused, match="one machine, spark-head"):
        met.init()
    assert not met.path.exists()


def test_nodes_that_nothing_joins_get_no_inventory(met: Met) -> None:
    bare = tuple(replace(netdev, addresses=()) for netdev in met.worker.facts.netdevs)
    met.change("worker", netdevs=bare)
    with pytest.raises(CheckRefused, match="worker enp1s0f0np0 has no IPv4 address") as caught:
        met.init()
    assert "192.168.177.12/24 dev enp1s0f0np0" in caught.value.remedy
    assert not met.path.exists()


def test_a_link_over_which_nothing_comes_is_refused(met: Met) -> None:
    for host in (met.head, met.worker):
        host.hears = {"small": False, "full": False}
    with pytest.raises(CheckRefused, match="nothing that one sends over it reaches the other"):
        met.init()


def test_a_link_that_could_not_be_tried_is_taken_and_told(met: Met) -> None:
    for host in (met.head, met.worker):
        host.hears = {"small": False, "full": False, "problem": "Operation not permitted"}
    met.init()
    assert "not tried: Operation not permitted" in met.path.read_text()


def test_a_second_network_is_written_down_with_what_it_would_take(met: Met) -> None:
    for node, number in (("head", 11), ("worker", 12)):
        facts = getattr(met, node).facts
        port = replace(facts.hca_ports[0], device="rocep1s0f1", netdev="enp1s0f1np1", gids=())
        netdev = Netdev("enp1s0f1np1", up=True, mtu=9000, addresses=(IPv4Interface(f"10.5.0.{number}/24"),))
        met.change(node, netdevs=(*facts.netdevs, netdev), hca_ports=(*facts.hca_ports, port))
    (warning,) = met.init().warnings
    assert warning.startswith("2 networks join the nodes")
    assert "10.5.0.0/24 (enp1s0f1np1 10.5.0.11 - enp1s0f1np1 10.5.0.12)" in warning
    assert f"# NOTE {warning}." in met.path.read_text()


def test_the_cache_that_holds_the_model_is_taken(met: Met) -> None:
    elsewhere = {"setting": "HF_HUB_CACHE", "hf_home": "/data/hf", "hub": "/data/hub"}
    met.worker.places = [
        cache_place(met.worker.facts, models=[]),
        cache_place(met.worker.facts, **elsewhere),
    ]
    met.init()
    worker = met.inventory().worker
    assert (worker.hf_home, worker.hub_cache) == ("/data/hf", "/data/hub")


def test_the_profile_is_one_that_can_start(met: Met) -> None:
    for host in (met.head, met.worker):
        host.places = [cache_place(host.facts, models=["deepseek-ai/DeepSeek-V4-Flash-DSpark"])]
        host.facts = replace(host.facts, images=(image(reference=STAGE_C),))
    report = met.init()
    assert values(report)["profile"] == "concurrent-200k"
    assert report.images == {"head": {STAGE_C: "stage-c"}, "worker": {STAGE_C: "stage-c"}}


def test_what_up_would_refuse_is_told_at_once(met: Met) -> None:
    met.change("worker", images=())
    met.worker.places = [cache_place(met.worker.facts, models=[])]
    report = met.init()
    assert values(report)["profile"] == "agent-1m"
    assert {(each.id, each.node) for each in report.findings if each.status == "fail"} == {("image-present", "worker")}
    assert any("worker: " in warning and "verify-cache" in warning for warning in report.warnings)


def test_a_profile_that_was_asked_for_is_named(met: Met) -> None:
    assert values(met.init(profile="deep-1m"))["profile"] == "deep-1m"


# --- an env file --------------------------------------------------------------------------------------------------


def test_an_env_file_alone_asks_no_node(met: Met) -> None:
    report = met.init("WORKER_HOST=ubuntu@10.0.0.2\nMASTER_ADDR=10.0.0.1\nMASTER_PORT=25001\n", hosts=None)
    inventory = met.inventory()
    assert (inventory.head.host, inventory.worker.host, inventory.master_port) == ("local", "ubuntu@10.0.0.2", 25001)
    assert (str(inventory.head.fabric.address), inventory.worker.fabric.address) == ("10.0.0.1", "auto")
    assert (met.head.done, report.networks) == ([], ())


def test_what_it_serves_otherwise_is_a_profile_of_its_own(met: Met) -> None:
    met.init("MAX_NUM_SEQS=5\nNCCL_DEBUG=INFO\nDSPARK_REVISION=\n", hosts=None)
    intention = load_intention(met.wish())
    assert (intention.workload.profile.name, intention.workload.profile.max_num_seqs) == ("spark-pair-env", 5)
    assert intention.workload.profile.environment == {"NCCL_DEBUG": "INFO"}
    assert intention.workload.model.revision is None


def test_taking_it_over_again_is_the_same(met: Met) -> None:
    env = "MAX_NUM_SEQS=5\nDSPARK_REVISION=\n"
    first = met.init(env, hosts=None)
    assert met.init(env, hosts=None, force=True).files == first.files


def test_nothing_is_written_where_one_of_the_files_is_there(met: Met) -> None:
    (met.folder / "profiles").mkdir()
    (met.folder / "profiles" / "spark-pair-env.yaml").write_text(
        "name: spark-pair-env\nextends: agent-1m\ntitle: mine\n"
    )
    with pytest.raises(ConfigError, match=r"spark-pair-env\.yaml is there already"):
        met.init("MAX_NUM_SEQS=5\n", hosts=None)
    assert not met.path.exists()


def test_a_worker_that_it_does_not_name_is_to_be_filled_in(met: Met) -> None:
    met.init("WORKER_HOST: 10.0.0.2\n", hosts=None)
    assert "host: spark-worker  # FILL IN" in met.path.read_text()


def test_with_hosts_what_the_nodes_contradict_is_left_out(met: Met) -> None:
    report = met.init(
        "WORKER_HOST=old\nMASTER_ADDR=169.254.88.1\nVLLM_HOST_IP=192.168.177.99\nNCCL_SOCKET_IFNAME=enp9s9\n"
        "NCCL_IB_HCA=rocep9s9\nWORKER_VLLM_HOST_IP=192.168.177.12\nHF_CACHE=/data/hf\nVLLM_PORT=8899\n"
    )
    told = {each.name: (each.fate, each.why) for each in report.keys}
    assert told["VLLM_HOST_IP"] == (
        "left-out",
        "the head has no such address on its fabric; it has 192.168.177.11, 192.168.178.11",
    )
    assert "enp1s0f0np0, enP2p1s0f0np0" in told["NCCL_SOCKET_IFNAME"][1]
    assert "it has rocep1s0f0, roceP2p1s0f0" in told["NCCL_IB_HCA"][1]
    assert "no such folder on the head" in told["HF_CACHE"][1]
    assert told["WORKER_VLLM_HOST_IP"][0] == "taken"
    inventory = met.inventory()
    assert (inventory.worker.host, inventory.api.port) == (HOSTS[1], 8899)
    assert inventory.head.fabric.hca == "=rocep1s0f0,roceP2p1s0f0"
    assert inventory.head.hf_home == "/home/nvidia/.cache/huggingface"


def test_with_hosts_what_the_nodes_confirm_is_taken_over(met: Met) -> None:
    met.init("NCCL_SOCKET_IFNAME=enP2p1s0f0np0\nWORKER_NCCL_SOCKET_IFNAME=enP2p1s0f0np0\nNCCL_IB_HCA==roceP2p1s0f0\n")
    inventory = met.inventory()
    assert (inventory.head.fabric.interface, str(inventory.head.fabric.address)) == ("enP2p1s0f0np0", "192.168.178.11")
    assert str(inventory.worker.fabric.address) == "192.168.178.12"
    assert (inventory.head.fabric.hca, inventory.worker.fabric.hca) == ("=roceP2p1s0f0", "=roceP2p1s0f0,rocep1s0f0")
    assert prepare(load_intention(met.wish()), met.hosts, FakeClock()).deployment.ranks[0].interface == "enP2p1s0f0np0"


def test_a_file_that_is_no_text_is_refused_with_what_to_do(met: Met) -> None:
    (met.folder / "x.env").write_bytes("WORKER_HOST=a\n".encode("utf-16"))
    with pytest.raises(ConfigError, match="not UTF-8") as caught:
        met.init(hosts=None, from_env=Path("x.env"))
    assert caught.value.remedy == "save the file as UTF-8"
    with pytest.raises(ConfigError, match="no such file"):
        met.init(hosts=None, from_env=Path("nowhere.env"))
