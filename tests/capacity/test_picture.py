"""The picture: titles, axes with units, the point, the pool; and a clear word where it can't be drawn."""

from __future__ import annotations

import importlib
import sys
from xml.etree import ElementTree as ET

import pytest

from dspark_deploy.capacity.picture import draw
from dspark_deploy.capacity.work import parse_mix
from dspark_deploy.errors import ConfigError
from tests.capacity.lanes import lane, work


def words(picture: bytes) -> set[str]:
    """Every text in an SVG."""
    root = ET.fromstring(picture)  # noqa: S314  drawn a line above
    return {"".join(each.itertext()).strip() for each in root.iter("{http://www.w3.org/2000/svg}text")}


def test_it_shows_ttft_throughput_and_the_pool_with_the_point_asked_about() -> None:
    found = words(draw(work(6, 20_000, 2_048), lane(), "svg"))
    assert {"Time to first token", "Throughput", "KV pool"} <= found
    assert {"seconds", "tokens a second", "prompt (tokens)", "live tokens"} <= found
    assert {"TTFT", "prefill", "decode, a stream", "aggregate", "asked: 20000"} <= found
    assert {"6 x 22048", "pool: 2493464 (published)", "agent-1m: 6 at a time"} <= found


def test_a_mix_and_a_lane_without_sweep_or_pool_are_drawn_too() -> None:
    found = words(draw(parse_mix("6x50k,1x900k"), lane(sweep=None, pool=None), "svg"))
    assert {"6 x 50000", "1 x 900000"} <= found
    assert not any(each.startswith("pool:") for each in found)


def test_the_same_question_gives_the_same_picture() -> None:
    assert draw(work(1, 1000), lane(), "svg") == draw(work(1, 1000), lane(), "svg")


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "dspark_deploy.capacity.picture")
    with pytest.raises(ConfigError, match="drawing needs the package matplotlib") as raised:
        importlib.import_module("dspark_deploy.capacity.picture")
    assert raised.value.remedy == "pip install 'dspark-deploy[plot]'"
