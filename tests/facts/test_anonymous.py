"""Texts that leave this machine."""

from __future__ import annotations

import pytest

from dspark_deploy.facts.anonymous import Anonymous, names_in, names_in_text

HOSTNAME, USER = "canary-spark", "canaryuser"


@pytest.fixture(name="redaction")
def _redaction() -> Anonymous:
    return Anonymous({HOSTNAME: "machine", USER: "user", f"/home/{USER}": "place"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("head (ops@spark-a.lab:2222): no answer", "head (login-1:2222): no answer"),
        (f"on {HOSTNAME}, by {USER}", "on machine-1, by user-1"),
        (f"/home/{USER}/.cache and /home/other/x", "place-1/.cache and /home/user-1/x"),
        ("tcp://192.168.177.11:25000 and 192.168.177.12", "tcp://address-1:25000 and address-2"),
        ("peer fd00::17 at [fe80::1]:22", "peer address-1 at [address-2]:22"),
        ("gid 0000:0000:0000:0000:0000:ffff:c0a8:b10b", "gid address-1"),
        ("mac 4c:bb:47:00:11:22", "mac id-1"),
        ("http://spark-a.lab:8888/v1, https://huggingface.co/x", "http://machine-1:8888/v1, https://huggingface.co/x"),
        ("VLLM_API_KEY=s3cr3t-s3cr3t and --api-key s3cr3t", "VLLM_API_KEY=[redacted] and --api-key [redacted]"),
        ("'HF_TOKEN': 'abcdef'", "'HF_TOKEN': '[redacted]'"),
        ("token hf_abcdefghijkl", "token [redacted]"),
        ("SHA256:" + "a" * 43, "id-1"),
    ],
)
def test_names_addresses_and_secrets_are_replaced(redaction: Anonymous, text: str, expected: str) -> None:
    assert redaction.of(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "(EngineCore pid=7) INFO 11-30 20:13:12 [kv_cache.py:702] GPU KV cache size: 2,493,464 tokens",
        "ghcr.io/anemll/dspark-vllm-gx10@sha256:" + "0123abcd" * 8,
        "Starting vLLM server on http://0.0.0.0:8888, ::1 and 127.0.0.1 too",
        "std::runtime_error in c10::Error, max_num_batched_tokens=8192, VLLM_X_TOKENS=64",
        "nvidia-smi of nvidia on ubuntu, root's head and worker",
        "2026-09-01T10:00:00.000000Z version 0.25.2",
    ],
)
def test_what_is_nobody_s_business_to_hide_stays(text: str) -> None:
    common = dict.fromkeys(("nvidia", "ubuntu", "root", "head"), "user")
    assert Anonymous(common).of(text) == text


def test_the_same_thing_has_the_same_new_name_everywhere(redaction: Anonymous) -> None:
    first, second = redaction.of("10.1.2.3 to 10.1.2.4"), redaction.of("10.1.2.4 from 10.1.2.3")
    assert (first, second) == ("address-1 to address-2", "address-2 from address-1")


def test_a_name_is_replaced_as_a_word_only(redaction: Anonymous) -> None:
    assert redaction.of("canaryusers and canary-spark-2") == "canaryusers and canary-spark-2"


def test_documents_and_logins_tell_names() -> None:
    facts = {"head": {"hostname": HOSTNAME, "user": USER, "netdevs": [{"mac": "4c:bb:47:00:11:22"}], "memory": None}}
    assert names_in({"who": "ann@desk", "facts": facts}) == {
        "ann": "user",
        "desk": "machine",
        HOSTNAME: "machine",
        USER: "user",
        "4c:bb:47:00:11:22": "id",
    }
    assert names_in_text("worker (ops@spark-b.lab): lost") == {"ops": "user", "spark-b.lab": "machine"}
