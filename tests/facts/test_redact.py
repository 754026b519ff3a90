from __future__ import annotations

import json

import pytest

from dspark_deploy.facts.redact import HIDDEN, Redaction, masked, redaction_of

DOCUMENT = {
    "home": "/home/ada",
    "user": "ada",
    "hostname": "ada-spark",
    "machine_id": "0123456789abcdef",
    "boot_id": "fedc-ba98",
    "netdevs": [{"name": "lo", "mac": "00:00:00:00:00:00"}, {"name": "enP7s7", "mac": "3c:6d:66:00:00:01"}],
}
REDACTION = redaction_of("head", DOCUMENT)


def test_names_and_what_identifies_a_machine_are_replaced() -> None:
    found = REDACTION.of(DOCUMENT)
    assert (found["home"], found["user"], found["hostname"]) == ("/home/head-user", "head-user", "head-machine")
    assert found["netdevs"][0] == {"name": "lo", "mac": "00:00:00:00:00:00"}
    hidden = (found["machine_id"], found["boot_id"], found["netdevs"][1]["mac"])
    assert not {"0123456789abcdef", "fedc-ba98", "3c:6d:66:00:00:01"} & set(hidden)


def test_the_same_thing_has_the_same_new_name_everywhere() -> None:
    found = REDACTION.of({"boot_id": "fedc-ba98", "noted": {"values": {"boot": "fedc-ba98"}}})
    assert found["noted"]["values"]["boot"] == found["boot_id"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/ada/.cache/huggingface", "/home/head-user/.cache/huggingface"),
        ("/data/ada/hub: Permission denied", "/data/head-user/hub: Permission denied"),
        ("worker (ada@10.77.0.2): gone", "worker (head-user@10.77.0.2): gone"),
        ("python3, pid 7 of ada", "python3, pid 7 of head-user"),
        ("ghcr.io/ada/image:1", "ghcr.io/ada/image:1"),
        ("ada", "ada"),
    ],
)
def test_a_login_is_replaced_where_it_is_one(text: str, shown: str) -> None:
    assert REDACTION.of({"message": text}) == {"message": shown}


@pytest.mark.parametrize(
    "text",
    [
        "hf_abcdefghijkl",
        "login with sk-abcdefgh12345 failed",
        "Authorization: Bearer abc.def.ghi",
        "https://me:geheim@registry.local/v2/",
        "?token=abcdefgh",
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str) -> None:
    found = Redaction().of(text)
    assert HIDDEN in found
    assert not any(secret in found for secret in ("abcdefgh", "abc.def", "geheim"))


def test_a_variable_that_names_a_secret_is_hidden_and_no_other() -> None:
    found = Redaction().of({"HF_TOKEN": "x", "MY_API_KEY": "y", "token_count": "z", "VLLM_PORT": "1"})
    assert found == {"HF_TOKEN": HIDDEN, "MY_API_KEY": HIDDEN, "token_count": "z", "VLLM_PORT": "1"}


def test_numbers_and_nothing_stay() -> None:
    assert Redaction().of({"a": [1, None, True, 2.5]}) == {"a": [1, None, True, 2.5]}


def test_a_known_secret_is_masked_in_each_of_its_forms() -> None:
    secret = 'sk-"a+b/c='
    text = f"key {secret}, in a URL ?key=sk-%22a%2Bb%2Fc%3D, in JSON {json.dumps({'key': secret})}"
    assert masked(text, secret) == 'key ***, in a URL ?key=***, in JSON {"key": "***"}'
