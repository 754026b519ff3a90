"""Every row left out in turn, and the page that prints what came of it."""

from __future__ import annotations

import pytest

from dspark_deploy.capacity.leave_out import between, leave_each_out, spread
from dspark_deploy.capacity.measurements import load_measurements
from dspark_deploy.capacity.sweep import on_line
from tests.capacity.refresh_docs import PAGE, generated, replaced

DATA = load_measurements()
SWEEP, MATRIX = DATA.sweeps


def test_a_row_between_two_is_estimated_from_those_two() -> None:
    found = next(each for each in leave_each_out(SWEEP) if (each.row.prompt, each.row.concurrency) == (8192, 2))
    expected = on_line(8192, (2048, 1.11), (32768, 26.82)) / 7.51 - 1
    assert between(found)
    assert found.errors["ttft_s"] == pytest.approx(expected)


def test_the_ends_of_a_column_are_not_between_rows() -> None:
    found = {(each.row.prompt, each.row.concurrency): each for each in leave_each_out(SWEEP)}
    assert not between(found[256, 6])
    assert found[256, 6].errors["ttft_s"] == pytest.approx(6.06 / 1.42 - 1)
    assert found[32768, 6].errors == {}
    assert set(found[131072, 1].errors) == {"ttft_s", "prefill_tps"}  # towards the single measurement


def test_errors_are_summed_up_over_the_rows_between_others_alone() -> None:
    left_out = leave_each_out(MATRIX)
    assert sum(between(each) for each in left_out) == 12
    middle, worst = spread(left_out, "ttft_s") or (0.0, 0.0)
    assert (f"{middle:.0%}", f"{worst:.0%}") == ("4%", "31%")
    assert spread(left_out, "prefill_tps") is None


def test_the_page_prints_the_errors_of_today() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert replaced(page, generated(DATA)) == page, "run: python -m tests.capacity.refresh_docs"


def test_the_page_names_every_sweep_and_boot() -> None:
    part = generated(DATA)
    assert all(sweep.name in part for sweep in DATA.sweeps)
    assert all(boot.name in part for boot in DATA.boots)
