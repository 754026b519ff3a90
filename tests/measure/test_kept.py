"""Measurements kept and read again, set beside what was published, and against an earlier one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.bundled import data_folder, search_path
from dspark_deploy.errors import ConfigError
from dspark_deploy.measure.figures import compare_figures, figures_of
from dspark_deploy.measure.lanes import find_lane, load_lanes, set_beside
from dspark_deploy.measure.store import Measurement, Store
from tests.measure.samples import decode, gate, sweep


@pytest.mark.parametrize("measurement", [decode(), sweep(), gate()], ids=["decode", "sweep", "gate"])
def test_what_is_kept_is_read_again_as_it_was(tmp_path: Path, measurement: Measurement[Any]) -> None:
    store = Store(tmp_path, "example")
    path = store.write(measurement)
    assert store.all() == (measurement,)
    assert store.named(measurement.id) == store.named(measurement.id[:10]) == store.named(str(path)) == measurement
    assert path.stat().st_mode & 0o077 == 0


def test_what_can_not_be_read_is_passed_over(tmp_path: Path) -> None:
    store = Store(tmp_path, "example")
    store.write(decode())
    broken = store.folder / "20260101T000000-decode-000000"
    broken.mkdir()
    (broken / "measurement.json").write_text('{"kind": "decode"')
    assert [each.id for each in store.all()] == [decode().id]


def test_an_unknown_name_is_an_error_with_the_nearest(tmp_path: Path) -> None:
    store = Store(tmp_path, "example")
    store.write(decode())
    with pytest.raises(ConfigError) as raised:
        store.named(decode().id[:-1] + "9")
    assert decode().id in raised.value.remedy
    with pytest.raises(ConfigError):
        store.named(str(tmp_path / "absent.json"))


def test_most_sequences_are_read_off_the_command_line() -> None:
    assert decode().origin.max_num_seqs == 6
    assert replace(decode().origin, argv={}).max_num_seqs is None


def test_nothing_regressed_within_noise() -> None:
    changes = compare_figures(sweep(0.985), sweep())
    assert len(changes) == 4 * 18
    assert not any(change.regressed for change in changes)


def test_what_got_slower_is_named() -> None:
    changes = compare_figures(sweep(0.8), sweep())
    assert all(change.regressed for change in changes)
    (ttft,) = (each for each in changes if (each.now.metric, each.now.prompt, each.now.concurrency) == ("ttft", 256, 1))
    assert ttft.worse == pytest.approx(0.25)
    assert not any(change.regressed for change in compare_figures(sweep(1.25), sweep()))


def test_the_trials_own_noise_may_allow_more_than_the_tolerance() -> None:
    noisy = compare_figures(decode(0.955), decode(), tolerance=0.001)
    allowed = [change.allowed for change in noisy if change.now.metric == "aggregate"]
    assert allowed == pytest.approx([0.05] * 4)  # the trials of each lie 2.5 % apart
    assert not any(change.regressed for change in noisy)


def test_figures_carry_where_they_were_measured() -> None:
    places = {(figure.metric, figure.place) for figure in (*figures_of(decode()), *figures_of(sweep()))}
    assert ("aggregate", "6 at once") in places
    assert ("ttft", "131072 tokens x 2") in places
    assert figures_of(gate()) == ()


@pytest.mark.parametrize(
    ("rate", "within", "drift"),
    [
        (63.97, True, 0.0),
        (58.0, True, 58.0 / 63.97 - 1),
        (50.0, False, 50.0 / 63.97 - 1),
        (80.0, False, 80.0 / 63.97 - 1),
    ],
)
def test_a_rate_is_set_beside_the_published_one(rate: float, within: bool, drift: float) -> None:
    published = find_lane(load_lanes(), "diagnostic-fp8", "static")
    lane = decode().result.lanes[0]
    trial = replace(lane.trials[0], aggregate_tps=rate)
    (found,) = set_beside([replace(lane, trials=(trial,))], published)
    assert found.published_tps == (63.97, 63.97)
    assert found.within is within
    assert found.drift == pytest.approx(drift)


def test_a_concurrency_that_nobody_published_has_no_drift() -> None:
    (_, two, *_) = set_beside(decode().result.lanes, find_lane(load_lanes(), "agent-1m", "static"))
    assert (two.concurrency, two.drift, two.within) == (2, None, None)


def test_arrivals_choose_the_lane() -> None:
    assert find_lane(load_lanes(), "concurrent-200k", "staggered").name == "concurrent-200k-staggered"
    with pytest.raises(ConfigError):
        find_lane(load_lanes(), "agent-1m", "staggered")
    with pytest.raises(ConfigError) as raised:
        find_lane(load_lanes(), "diagnostic-fp", "static")
    assert "diagnostic-fp8" in raised.value.remedy


def test_every_lane_names_profiles_and_models_that_exist() -> None:
    search = search_path(Path("/nowhere"), Path("/nowhere"))
    for lane in load_lanes():
        assert set(lane.profiles) <= set(search.files("profile"))
        assert lane.model in search.files("model")
    assert "lanes" not in search.files("profile")
    assert (data_folder("profiles") / "lanes.yaml").is_file()
