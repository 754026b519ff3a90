"""NCCL's selector against a slow, literal second reading of its rules."""

from __future__ import annotations

import string

from hypothesis import example, given
from hypothesis import strategies as st

from dspark_deploy.facts.node import HcaPort
from dspark_deploy.plan.gid import selected_ports

DEVICES = ("rocep1s0f0", "rocep1s0f1", "roceP2p1s0f0", "mlx5_1", "mlx5_10", "x" * 63, "x" * 64)


def literally(ports: list[HcaPort], selector: str) -> list[HcaPort]:
    """One rule a line, in the words that they are written down in."""
    candidates = []
    for port in ports:
        if port.state is not None and port.state != "ACTIVE":
            continue
        if port.link_layer is not None and port.link_layer not in {"Ethernet", "InfiniBand"}:
            continue
        candidates.append(port)
    candidates = candidates[:32]
    exclude = selector[:1] == "^"
    if exclude:
        selector = selector[1:]
    exact = selector[:1] == "="
    if exact:
        selector = selector[1:]
    tokens = []
    for token in selector.split(","):
        parts = token.split(":")
        if parts[0] == "":
            continue
        tokens.append(parts)
    tokens = tokens[:32]
    taken = []
    for port in candidates:
        hit = len(tokens) == 0
        for parts in tokens:
            name = parts[0].encode()[:63]
            device = port.device.encode()
            named = device == name if exact else device[: len(name)] == name
            if named and (len(parts) == 1 or parts[1] == "" or c_atoi(parts[1]) == port.port):
                hit = True
        if hit != exclude:
            taken.append(port)
    return taken


def c_atoi(text: str) -> int | None:
    """None: a port that cannot exist."""
    position = 0
    while position < len(text) and text[position] in " \t\n\v\f\r":
        position += 1
    sign = 1
    if position < len(text) and text[position] in "+-":
        sign = -1 if text[position] == "-" else 1
        position += 1
    digits = ""
    while position < len(text) and text[position] in "0123456789":
        digits += text[position]
        position += 1
    significant = digits.lstrip("0")
    if len(significant) > 9:
        return None
    return sign * int(significant or "0")


names = st.one_of(
    st.sampled_from([*DEVICES, "roce", "rocep1", "mlx5", "x", "", "nothing"]), st.text("mlx5_10rc", max_size=6)
)
numbers = st.one_of(
    st.sampled_from(["", "1", "01", " 1", "+1", "-1", "2", "1x", "abc", "08", "1" * 20, "\t2", "0"]),
    st.text(string.digits + "+- x", max_size=12),
)
tokens = st.builds(lambda name, rest: ":".join([name, *rest]), names, st.lists(numbers, max_size=3))
selectors = st.builds(
    lambda mark, many: mark + ",".join(many),
    st.sampled_from(["", "^", "=", "^=", "=^", "^^"]),
    st.lists(tokens, max_size=40),
)
ports = st.lists(
    st.builds(
        lambda device, port, state, layer: HcaPort(device, port, state, layer, None, ()),
        st.sampled_from(DEVICES),
        st.integers(1, 12),
        st.sampled_from(["ACTIVE", "ACTIVE", "ACTIVE", "DOWN", "INIT", None]),
        st.sampled_from(["Ethernet", "Ethernet", "InfiniBand", "Unspecified", None]),
    ),
    max_size=40,
)


@given(ports, selectors)
@example([HcaPort("rocep1s0f0", 1, "ACTIVE", "Ethernet", None, ())], "=rocep1s0f0:1:0:0")
@example([HcaPort("x" * 63, 1, "ACTIVE", "Ethernet", None, ())], "=" + "x" * 64)
def test_both_readings_take_the_same_ports(found: list[HcaPort], selector: str) -> None:
    assert list(selected_ports(found, selector)) == literally(found, selector)
