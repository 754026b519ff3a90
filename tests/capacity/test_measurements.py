"""The published tables: complete, and as consistent with themselves as their publishers said they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspark_deploy.capacity.measurements import Boot, Row, load_measurements, load_sweep
from dspark_deploy.errors import ConfigError

DATA = load_measurements()
SWEEP, MATRIX = DATA.sweeps


def row(prompt: int, concurrency: int) -> Row:
    return next(each for each in SWEEP.rows if (each.prompt, each.concurrency) == (prompt, concurrency))


def figure(prompt: int, concurrency: int, metric: str) -> float:
    value = getattr(row(prompt, concurrency), metric)
    assert isinstance(value, float)
    return value


def test_both_sweeps_are_whole() -> None:
    assert (len(SWEEP.rows), len(SWEEP.points), len(MATRIX.rows)) == (18, 1, 20)
    assert {(each.prompt, each.concurrency) for each in MATRIX.rows} == {
        (prompt, concurrency) for prompt in (256, 2048, 8192, 32768, 131072) for concurrency in (1, 2, 4, 6)
    }
    assert (131072, 4) not in {(each.prompt, each.concurrency) for each in SWEEP.rows}


def test_from_the_shortest_to_the_longest_prompt_decoding_keeps_86_percent_and_the_aggregate_9() -> None:
    short, long = row(256, 1), row(131072, 1)
    assert long.decode_tps is not None
    assert short.decode_tps is not None
    assert f"{long.decode_tps / short.decode_tps:.0%}" == "86%"
    assert f"{figure(131072, 1, 'aggregate_tps') / figure(256, 1, 'aggregate_tps'):.0%}" == "9%"
    assert f"{figure(131072, 1, 'ttft_s') / figure(256, 1, 'ttft_s'):.0f}" == "125"


@pytest.mark.parametrize(("prompt", "gain"), [(256, "2.77"), (2048, "2.32"), (8192, "1.67"), (32768, "1.68")])
def test_six_at_once_gain_what_was_published(prompt: int, gain: str) -> None:
    assert f"{figure(prompt, 6, 'aggregate_tps') / figure(prompt, 1, 'aggregate_tps'):.2f}" == gain


def test_two_at_once_gain_little_at_the_longest_prompt() -> None:
    assert f"{figure(131072, 2, 'aggregate_tps') / figure(131072, 1, 'aggregate_tps'):.2f}" == "1.12"
    assert f"{figure(131072, 2, 'ttft_s') / figure(131072, 1, 'ttft_s') - 1:.0%}" == "41%"


@pytest.mark.parametrize("boot", DATA.boots, ids=lambda boot: boot.name)
def test_a_boot_printed_its_pool_over_its_length(boot: Boot) -> None:
    assert f"{boot.ratio:.2f}" == f"{boot.concurrency:.2f}"


def test_the_smaller_rank_counts() -> None:
    boots = {boot.name: boot for boot in DATA.boots}
    assert boots["anemll-350k"].smaller_gib == 10.61
    assert boots["anemll-preview"].smaller_gib == 19.03
    assert boots["stage-c-c12"].smaller_gib is None


def test_a_sweep_of_the_users_own_is_one_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "name: mine\ntitle: ours\nsource: bench sweep\nfamily: anemll\nmodel: m\noutput_tokens: 512\n"
        "rows:\n  - {prompt: 256, concurrency: 1, ttft_s: 0.5}\n"
    )
    sweep = load_sweep(file)
    assert (sweep.name, sweep.rows[0].ttft_s, sweep.rows[0].decode_tps) == ("mine", 0.5, None)


def test_a_place_that_stands_twice_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    row_text = "  - {prompt: 256, concurrency: 1, ttft_s: 0.5}\n"
    file.write_text(
        f"name: mine\ntitle: t\nsource: s\nfamily: a\nmodel: m\noutput_tokens: 1\nrows:\n{row_text}{row_text}"
    )
    with pytest.raises(ConfigError, match=r"mine\.yaml line 1: 256 tokens x 1 stands there twice"):
        load_sweep(file)
