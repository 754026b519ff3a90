"""Boots of real vLLM that fail: each caused for real, its cause named, and nothing left of it."""

from __future__ import annotations

from tests.bed.bed import Bed
from tests.bed.host import wait_until
from tests.bed.run import Ran
from tests.bed.tool import nothing_is_left

from .pair import BOOT_S, Pair


def failed(ran: Ran, node: str, *words: str) -> None:
    """The launch failed on that node, with these words as message, reason or remedy."""
    assert ran.returncode == 4, ran
    (error,) = ran.json()["errors"]
    said = "\n".join([error["message"], error["why"], error["remedy"]])
    assert error["node"] == node, ran
    assert [word for word in words if word not in said] == [], ran


def test_a_kv_cache_that_holds_no_request_is_f34(bed: Bed, pair: Pair) -> None:
    ran = pair.up("--set", "extra_flags.--kv-cache-memory-bytes=1048576")
    failed(ran, "head", "F34", "one request of 16384 tokens needs")
    nothing_is_left(bed)


def test_a_dev_shm_that_is_too_small_is_f122_with_the_size_to_give(bed: Bed, pair: Pair) -> None:
    pair.vary_family("cramped", "shm_size: 1gb", "shm_size: 64mb")
    failed(pair.up("--family", "cramped"), "head", "F122", "160 MiB required, 64 MiB free", "shm_size")
    nothing_is_left(bed)


def test_a_rendezvous_that_never_completes_ends_by_the_rendered_limit(bed: Bed, pair: Pair) -> None:
    pair.vary_family("impatient", "--distributed-timeout-seconds: 300", "--distributed-timeout-seconds: 20")
    filtered = ["OUTPUT", "-p", "tcp", "--dport", "25000", "-j", "DROP"]
    bed.worker.exec(["iptables", "-A", *filtered]).check()
    ran = pair.up("--family", "impatient")
    bed.worker.exec(["iptables", "-D", *filtered]).check()
    failed(ran, "worker", "F52", "20000ms", str(bed.head.fabric_address))
    nothing_is_left(bed)


def test_a_wrong_gloo_interface_on_one_node_is_f45_with_its_name(bed: Bed, pair: Pair) -> None:
    file = pair.rendered(bed.worker, ".env")
    text = bed.worker.read(file)
    assert f'GLOO_SOCKET_IFNAME="{bed.worker.fabric_interface}"' in text
    changed = text.replace(bed.worker.fabric_interface, "enp9s0f9np9")
    bed.worker.write(file, changed, mode=0o600, owner=bed.worker.identity.uid)
    pair.start_by_hand()
    wait_until(lambda: not bed.worker.running(), BOOT_S, "the end of the worker")
    answer = pair.explained()["answer"]
    assert (answer["failure"], answer["node"]) == ("F45", "worker")
    assert "enp9s0f9np9" in answer["means"]
    assert pair.told("status")["state"] in {"split", "down"}
    pair.dspark("down").check()
    nothing_is_left(bed)
    bed.worker.write(file, text, mode=0o600, owner=bed.worker.identity.uid)
