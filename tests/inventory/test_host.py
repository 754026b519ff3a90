"""A node's host, in all the ways in which people write one."""

from __future__ import annotations

import pytest

from dspark_deploy.inventory import HostSpec, parse_host
from dspark_deploy.strict import Mistake


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("spark-a", HostSpec("spark-a")),
        ("local", HostSpec("", local=True)),
        ("ops@10.0.0.2", HostSpec("10.0.0.2", "ops")),
        ("ops@10.0.0.2:2222", HostSpec("10.0.0.2", "ops", 2222)),
        ("ops@[fd00::2]:2222", HostSpec("fd00::2", "ops", 2222)),
        ("[fd00::2]", HostSpec("fd00::2")),
        ("ops@fd00::2", HostSpec("fd00::2", "ops")),
        ("fe80::1%enp1s0f1np1", HostSpec("fe80::1%enp1s0f1np1")),
        ("ops@[fe80::1%eth0]:22", HostSpec("fe80::1%eth0", "ops", 22)),
        ("ops@corp@10.0.0.2", HostSpec("10.0.0.2", "ops@corp")),
        ("spark-b:22", HostSpec("spark-b", None, 22)),
    ],
)
def test_a_host_is_taken_apart(text: str, spec: HostSpec) -> None:
    assert parse_host(text) == spec


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("spark-b:ssh", "`ssh` is no port"),
        ("spark-b:", "`` is no port"),
        ("spark-b:0", "`0` is no port"),
        ("spark-b:70000", "`70000` is no port"),
        ("[fd00::2]:ssh", "`ssh` is no port"),
        ("[fd00::2", "brackets"),
        ("[spark]:22", "brackets"),
        ("a:b:c", "neither an IPv6 address nor host:port"),
        ("@spark", "can't be read"),
        ("ops@", "can't be read"),
        ("-oProxyCommand=x", "can't be read"),
        ("ssh://spark-a", "slash"),
        ("spark a", "blank"),
    ],
)
def test_a_host_that_cannot_be_meant_is_refused(text: str, reason: str) -> None:
    with pytest.raises(Mistake, match=reason):
        parse_host(text)
