"""`budget` from a command line's wish to its report: which profile, pool, sweep and text."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.errors import ConfigError
from dspark_deploy.flow.budget import Answer, BudgetReport, Question, work_out
from dspark_deploy.flow.own import NOTHING, Own
from dspark_deploy.flow.scan import ScanRules
from dspark_deploy.flow.tokens import OpenCounter, open_counter
from dspark_deploy.flow.wish import Wish
from dspark_deploy.patch import Patch
from tests.capacity.lanes import SWEEP
from tests.capacity.test_pool import recorded_boot
from tests.flow.stand import INVENTORY


def estimating(home: Path) -> OpenCounter:
    return lambda model: open_counter(model, named="estimate", chars_per_token=4.0, environment={}, home=home)


def answer(folder: Path, question: Question, *overrides: str, own: Own = NOTHING, **wish: Any) -> Answer:
    wanted = Wish(directory=folder, home=folder, overrides=overrides, **wish)
    return work_out(wanted, question, estimating(folder), own=own)


def report(folder: Path, question: Question, *overrides: str, **wish: Any) -> BudgetReport:
    return answer(folder, question, *overrides, **wish).report


ASKED = Question(prompt_tokens=125_272)


def test_no_host_and_no_inventory_are_needed(tmp_path: Path) -> None:
    found = report(tmp_path, ASKED)
    assert (found.profile, found.family, found.model) == ("agent-1m", "anemll", "deepseek-v4-flash-0731")
    assert found.measured.kv_pool_tokens == 2_493_464
    assert found.interpolated is not None
    assert found.interpolated.sweep == "sweep-2026-08-01"
    assert (found.measured.output_tokens, found.measured.sessions) == (2048, 1)


def test_the_inventory_names_the_profile_where_no_flag_does(tmp_path: Path) -> None:
    (tmp_path / "inventory.yaml").write_text(INVENTORY.replace("agent-1m", "deep-1m"))
    assert report(tmp_path, ASKED).profile == "deep-1m"
    assert report(tmp_path, ASKED, profile="agent-1m").profile == "agent-1m"
    assert report(tmp_path, ASKED, environment={"DSPARK_PROFILE": "coding-1m"}).profile == "coding-1m"


def test_an_inventory_that_is_named_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        report(tmp_path, ASKED, inventory=Path("other.yaml"))


def test_an_override_takes_the_published_pool_away_and_a_prediction_says_how_far_off_it_may_be(tmp_path: Path) -> None:
    found = report(tmp_path, ASKED, "max_num_batched_tokens=16384")
    assert found.measured.kv_pool_source.startswith("predicted: ")
    assert found.prediction_error is not None
    assert report(tmp_path, ASKED).prediction_error is None


def test_a_pool_may_be_given(tmp_path: Path) -> None:
    given = report(tmp_path, Question(prompt_tokens=1000, kv_pool=3_048_000))
    assert (given.measured.kv_pool_source, given.measured.sessions_that_fit) == ("given: --kv-pool", 1000)


def test_the_pairs_own_boots_and_sweeps_go_first(tmp_path: Path) -> None:
    own_sweep = SWEEP.model_copy(update={"name": "mine"})
    found = answer(tmp_path, ASKED, own=Own((recorded_boot(),), (own_sweep,))).report
    assert found.measured.kv_pool_source == "recorded: this pair's boot 20260901"
    assert found.interpolated is not None
    assert found.interpolated.sweep == "mine"


def test_patches_of_the_scheduler_choose_the_sweep_that_ran_with_them(tmp_path: Path) -> None:
    programs = [
        {"file": f"scheduler/{name}"}
        for name in (
            "hotfix-dsv4-issue27-partial-prefill-concurrency.py",
            "hotfix-dsv4-issue43-decode-fairness-and-diag.py",
        )
    ]
    patch = {"folder": "/recipe", "image": "ghcr.io/anemll/dspark-vllm-gx10:0.1.1", "programs": programs}
    for family, sweep in (("anemll", "matrix-2026-08-14"), ("stage-c", "sweep-2026-08-01")):
        own = Own(patches=(Patch.model_validate({**patch, "family": family}),))
        found = answer(tmp_path, ASKED, own=own).report.interpolated
        assert found is not None
        assert found.sweep == sweep


def test_a_sweep_may_be_named(tmp_path: Path) -> None:
    found = report(tmp_path, Question(prompt_tokens=2048, concurrency=6, sweep="matrix-2026-08-14"))
    assert found.interpolated is not None
    assert (found.interpolated.ttft_s, found.interpolated.prefill_tps) == (4.41, None)
    with pytest.raises(ConfigError, match="no sweep is called `matrix`") as raised:
        report(tmp_path, Question(prompt_tokens=2048, sweep="matrix"))
    assert "matrix-2026-08-14" in raised.value.remedy


def test_a_sweep_may_be_a_file_of_the_users_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "name: mine\ntitle: ours\nsource: bench sweep\nfamily: stage-c\nmodel: m\noutput_tokens: 512\n"
        "rows:\n  - {prompt: 2048, concurrency: 1, ttft_s: 0.5}\n"
    )
    found = report(tmp_path, Question(prompt_tokens=2048, sweep=str(file)), profile="concurrent-200k")
    assert found.interpolated is not None
    assert (found.interpolated.ttft_s, found.interpolated.sweep) == (0.5, "mine")


def test_a_profile_without_a_sweep_has_no_number(tmp_path: Path) -> None:
    found = report(tmp_path, ASKED, profile="concurrent-200k")
    assert (found.interpolated, found.derived) == (None, None)
    assert found.no_number == "no sweep was published for deepseek-v4-flash-dspark on stage-c"


def test_text_files_and_tokens_add_up_to_one_prompt(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("12345678" * 100)
    (tmp_path / "b.md").write_text("1234")
    question = Question(
        prompt_tokens=1000,
        paths=(tmp_path,),
        rules=ScanRules(extensions=frozenset({"py"})),
        text=io.BytesIO("你好".encode()).read,
    )
    found = report(tmp_path, question)
    assert found.text is not None
    assert found.text.scan is not None
    assert (found.text.tokens, found.text.scan.files, found.measured.prompt_tokens) == (202, 1, 1202)
    assert found.text.counted_by.startswith("an estimate")


def test_nothing_to_count_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="nothing was found to count"):
        report(tmp_path, Question(paths=(tmp_path / "empty",)))


def test_a_mix_holds_what_it_says_and_answers_only_where_asked_for(tmp_path: Path) -> None:
    assert report(tmp_path, Question(mix="6x50k")).measured.live_tokens_total == 300_000
    assert report(tmp_path, Question(mix="6x50k", output_tokens=1000)).measured.live_tokens_total == 306_000


def test_an_answer_may_be_of_no_length(tmp_path: Path) -> None:
    found = report(tmp_path, Question(prompt_tokens=50_000, concurrency=6, output_tokens=0))
    assert f"{found.measured.kv_pool_used_pct:.2f}" == "12.03"
    assert found.derived is None


def test_a_shape_that_up_refuses_is_said_to_be_one(tmp_path: Path) -> None:
    (warning,) = report(tmp_path, ASKED, "max_num_seqs=16").warnings
    assert warning.startswith("`up` refuses this shape: 96 verify rows, and family anemll survives 64")
    assert report(tmp_path, ASKED, "max_num_seqs=10").warnings == ()
