"""What a pair has shown itself: boots of its runs' records, sweeps of its store."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.capacity.measurements import load_measurements
from dspark_deploy.capacity.sweep import choose_sweep
from dspark_deploy.flow.own import own_of
from dspark_deploy.flow.wish import Wish
from dspark_deploy.measure.store import Store
from tests.measure.samples import ORIGIN, sweep

HEAD = {
    "max_num_seqs": 6,
    "draft_tokens": 5,
    "utilization": 0.85,
    "kv_cache_dtype": "nvfp4_ds_mla",
    "max_model_len": 1048576,
    "max_num_batched_tokens": 8192,
    "kv_gib": 18.09,
    "kv_pool_tokens": 2494225,
    "max_concurrency": 2.38,
}
SERVED = {"family": "anemll", "model": "deepseek-ai/DeepSeek-V4-Flash-0731"}


@pytest.fixture(name="wish")
def _wish(tmp_path: Path) -> Wish:
    (tmp_path / "inventory.yaml").write_text("name: example\nhead: {host: a}\nworker: {host: b}\n")
    return Wish(directory=tmp_path, home=tmp_path, environment={"XDG_STATE_HOME": str(tmp_path)})


def record(home: Path, run: str, *, pair: str = "example", served: Any = None, **outcome: Any) -> None:
    """A run's folder as `up` leaves it."""
    folder = home / "dspark" / pair / "runs" / run
    folder.mkdir(parents=True)
    told = {"outcome": "serving", "figures": {"head": HEAD, "worker": {"kv_gib": 17.69}}, **outcome}
    (folder / "run.json").write_text(json.dumps(told))
    (folder / "plan.json").write_text(json.dumps({"served": served or SERVED}))


def test_boots_of_this_pair_are_told_the_newest_first(wish: Wish, tmp_path: Path) -> None:
    record(tmp_path, "20260901T101500-aaaaaa")
    record(tmp_path, "20260902T101500-bbbbbb")
    record(tmp_path, "20260903T101500-cccccc", pair="another")
    boots = own_of(wish).boots
    assert [boot.name for boot in boots] == ["20260902t101500-bbbbbb", "20260901t101500-aaaaaa"]
    assert (boots[0].pool_tokens, boots[0].smaller_gib, boots[0].gpu_memory_utilization) == (2494225, 17.69, 0.85)


@pytest.mark.parametrize(
    "changes",
    [
        {"outcome": "launch-failed"},
        {"figures": {}},
        {"figures": {"head": {**HEAD, "kv_pool_tokens": None}}},
        {"served": {**SERVED, "model": "somebody/else"}},
    ],
)
def test_a_run_that_tells_of_no_pool_is_passed_over(wish: Wish, tmp_path: Path, changes: dict[str, Any]) -> None:
    record(tmp_path, "20260901T101500-aaaaaa", **changes)
    assert own_of(wish).boots == ()


def test_a_record_that_was_cut_short_is_passed_over(wish: Wish, tmp_path: Path) -> None:
    record(tmp_path, "20260901T101500-aaaaaa")
    (tmp_path / "dspark/example/runs/20260901T101500-aaaaaa/run.json").write_text('{"outcome": "serv')
    assert own_of(wish).boots == ()


def test_a_sweep_that_is_whole_goes_before_the_published_ones(wish: Wish, tmp_path: Path) -> None:
    measured = sweep()
    cells = tuple((cell.prompt, cell.concurrency) for cell in measured.result.cells)
    plan = replace(measured.result.plan, prompts=(256, 2048, 8192), concurrency=(1, 2, 4, 6))
    whole = replace(measured, result=replace(measured.result, plan=plan))
    assert set(plan.cells) <= set(cells)
    store = Store(tmp_path, "example")
    store.write(measured)  # the plan's last cells are missing
    assert own_of(wish).sweeps == ()
    store.write(whole)
    (own,) = own_of(wish).sweeps
    assert (own.family, own.conditions.max_num_seqs) == ("anemll", 6)
    chosen = choose_sweep([own], load_measurements().sweeps, family="anemll", model="deepseek-v4-flash-0731")
    assert chosen is own


def test_a_sweep_of_a_model_that_is_not_known_here_says_nothing(wish: Wish, tmp_path: Path) -> None:
    plan = replace(sweep().result.plan, prompts=(256,), concurrency=(1,))
    measured = replace(sweep(), origin=replace(ORIGIN, model="somebody/else"))
    Store(tmp_path, "example").write(replace(measured, result=replace(measured.result, plan=plan)))
    assert own_of(wish).sweeps == ()


def test_without_an_inventory_nothing_is_the_pairs_own(tmp_path: Path) -> None:
    record(tmp_path, "20260901T101500-aaaaaa")
    (tmp_path / "elsewhere").mkdir()
    wish = Wish(directory=tmp_path / "elsewhere", home=tmp_path, environment={"XDG_STATE_HOME": str(tmp_path)})
    assert own_of(wish).boots == ()
