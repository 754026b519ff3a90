"""Profiles: the published ones, what extends what, and which override holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspark_deploy.bundled import SearchPath, data_folder
from dspark_deploy.errors import ConfigError, ExitCode
from dspark_deploy.profile import OVERRIDABLE, Applied, Profile, Resolved, load_profile
from dspark_deploy.strict import Given

BUNDLED = SearchPath((data_folder("profiles"),))
BASE = """\
name: base
aliases: [ground]
title: Base
family: anemll
model: m
max_model_len: 1000
max_num_seqs: 2
max_num_batched_tokens: 500
gpu_memory_utilization: 0.5
environment: {A: "1", B: "2"}
extra_flags: {--seed: 7}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "base.yaml").write_text(BASE)
    return tmp_path


def load(folder: Path, name: str, *given: Given) -> Resolved:
    return load_profile(name, SearchPath((folder,)), given)


def refused(folder: Path, name: str, *given: Given) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(folder, name, *given)
    assert caught.value.code is ExitCode.USAGE
    return caught.value


def set_flag(key: str, text: str) -> Given:
    return Given(key, text, "--set")


def headline(name: str) -> tuple[object, ...]:
    profile = load_profile(name, BUNDLED).profile
    return (
        profile.family,
        profile.model,
        profile.max_model_len,
        profile.max_num_seqs,
        profile.max_num_batched_tokens,
        profile.gpu_memory_utilization,
        profile.draft_tokens,
        profile.thinking,
    )


PREVIEW = "deepseek-v4-flash-dspark"
PLAIN = "deepseek-v4-flash-dspark-directory"
TABLE = {
    "agent-1m": ("anemll", "deepseek-v4-flash-0731", 1048576, 6, 8192, 0.85, 5, "max"),
    "coding-1m": ("anemll", "deepseek-v4-flash-0731", 1048576, 4, 16384, 0.87, 5, "max"),
    "deep-1m": ("anemll", "deepseek-v4-flash-0731", 1048576, 2, 8192, 0.85, 5, "max"),
    "balanced-500k": ("anemll", "deepseek-v4-flash-0731", 500000, 4, 8192, 0.85, 5, "max"),
    "stage-c-c12": ("stage-c", PLAIN, 1048576, 6, 8192, 0.85, 3, "off"),
    "concurrent-200k": ("stage-c", PREVIEW, 200000, 16, 8192, 0.85, 5, "off"),
    "agent-1m-conservative": ("stage-c", PLAIN, 1048576, 6, 8192, 0.80, 5, "off"),
    "diagnostic-fp8": ("stage-c", PREVIEW, 262144, 1, 8192, 0.80, 5, "off"),
}


def test_every_bundled_profile_has_its_published_values() -> None:
    assert {name: headline(name) for name in BUNDLED.files("profile")} == TABLE


@pytest.mark.parametrize(("alias", "name"), [("long-coding", "coding-1m"), ("keys-concurrency", "concurrent-200k")])
def test_a_published_name_still_works(alias: str, name: str) -> None:
    assert load_profile(alias, BUNDLED) == load_profile(name, BUNDLED)


def test_the_profiles_with_a_tag_of_their_own_name_it() -> None:
    images = {name: load_profile(name, BUNDLED).profile.image for name in TABLE}
    assert {name: image for name, image in images.items() if image} == {
        "agent-1m-conservative": "vllm-dspark-runtime:mia-raf-pr1-nvfp4-keys-c",
        "diagnostic-fp8": "vllm-dspark-runtime:clean",
    }


def test_a_child_takes_over_what_it_does_not_say(folder: Path) -> None:
    (folder / "child.yaml").write_text(
        "name: child\nextends: base\ntitle: Child\nmax_num_seqs: 9\nenvironment: {A: '3', B: null, C: '4'}\n"
    )
    resolved = load(folder, "child")
    assert resolved.profile == Profile(
        name="child",
        title="Child",
        family="anemll",
        model="m",
        max_model_len=1000,
        max_num_seqs=9,
        max_num_batched_tokens=500,
        gpu_memory_utilization=0.5,
        environment={"A": "3", "C": "4"},
        extra_flags={"--seed": 7},
    )
    assert resolved.sources["max_num_seqs"] == f"{folder}/child.yaml line 4"
    assert resolved.sources["max_model_len"] == f"{folder}/base.yaml line 6"
    assert resolved.sources["environment.A"] == f"{folder}/child.yaml line 5"
    assert resolved.sources["extra_flags.--seed"] == f"{folder}/base.yaml line 11"
    assert resolved.sources["block_size"] == "default"


def test_extends_may_be_deep_and_by_alias(folder: Path) -> None:
    (folder / "a.yaml").write_text("name: a\nextends: ground\ntitle: A\nmax_num_seqs: 3\n")
    (folder / "b.yaml").write_text("name: b\nextends: a\ntitle: B\nblock_size: 128\n")
    profile = load(folder, "b").profile
    assert (profile.name, profile.aliases, profile.max_num_seqs, profile.block_size) == ("b", (), 3, 128)


def test_a_circle_is_refused(folder: Path) -> None:
    (folder / "a.yaml").write_text("name: a\nextends: b\n")
    (folder / "b.yaml").write_text("name: b\nextends: a\n")
    assert "b.yaml line 2: `extends` goes in a circle: a -> b -> a" in refused(folder, "a").message
    (folder / "c.yaml").write_text("name: c\nextends: c\n")
    assert "goes in a circle: c -> c" in refused(folder, "c").message


def test_a_mistake_in_a_parent_names_the_parents_file(folder: Path) -> None:
    (folder / "base.yaml").write_text(BASE.replace("0.5", "0,80"))
    (folder / "child.yaml").write_text("name: child\nextends: base\ntitle: Child\n")
    assert f'{folder}/base.yaml line 9: `gpu_memory_utilization` is "0,80"' in refused(folder, "child").message


def test_an_unknown_profile_names_the_nearest_one_and_all(folder: Path) -> None:
    error = refused(folder, "grund")
    assert error.message == "no profile is called `grund`"
    assert error.remedy == "did you mean `ground`? known: base, ground"


def test_an_unknown_key_names_the_nearest_one(folder: Path) -> None:
    (folder / "base.yaml").write_text(BASE + "max_num_seq: 3\n")
    error = refused(folder, "base")
    assert "line 12: `max_num_seq` is not a known key" in error.message
    assert error.remedy == "did you mean `max_num_seqs`?"


def test_a_profile_may_be_given_by_path(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    path = folder / "elsewhere" / "mine.yaml"
    path.write_text("name: mine\nextends: base\ntitle: Mine\n")
    assert load(folder, str(path)).profile.max_num_seqs == 2


def test_the_first_override_holds_and_is_recorded_with_what_it_replaced(folder: Path) -> None:
    variable = Given("max_num_seqs", "5", "DSPARK_MAX_NUM_SEQS")
    resolved = load(folder, "base", set_flag("max_num_seqs", "4"), variable)
    assert resolved.profile.max_num_seqs == 4
    assert resolved.applied == (Applied("max_num_seqs", 4, "--set", 2),)
    assert resolved.sources["max_num_seqs"] == "--set"


def test_an_override_can_change_one_entry_of_a_mapping(folder: Path) -> None:
    resolved = load(folder, "base", set_flag("environment.A", "9"), set_flag("environment.D", "x"))
    assert resolved.profile.environment == {"A": "9", "B": "2", "D": "x"}
    assert set(resolved.applied) == {
        Applied("environment.A", "9", "--set", "1"),
        Applied("environment.D", "x", "--set", None),
    }
    assert (resolved.sources["environment.A"], resolved.sources["environment.B"][-7:]) == ("--set", "line 10")


def test_a_whole_mapping_from_an_override_replaces_the_profiles(folder: Path) -> None:
    resolved = load(folder, "base", set_flag("environment.A", "9"), Given("environment", '{"Z": "1"}', ".env line 1"))
    assert resolved.profile.environment == {"Z": "1", "A": "9"}
    assert (resolved.sources["environment.A"], resolved.sources["environment.Z"]) == ("--set", ".env line 1")


def test_an_overrides_mistake_names_its_source(folder: Path) -> None:
    error = refused(folder, "base", Given("gpu_memory_utilization", "0,80", ".env line 3"))
    assert error.message == '.env line 3: `gpu_memory_utilization` is "0,80"'
    assert error.remedy == "give a number above 0, up to 1"


@pytest.mark.parametrize(
    ("key", "message", "remedy"),
    [
        ("max_num_seq", "--set: `max_num_seq` is not a value of a profile", "did you mean `max_num_seqs`?"),
        ("zzz", "--set: `zzz` is not a value of a profile", f"known: {', '.join(OVERRIDABLE)}"),
        ("node_rank", "--set: `node_rank` can't be set here", "leave it out"),
        ("revision", "--set: `revision` can't be set here", "leave it out"),
        ("api.port", "--set: `api.port` can't be set here", "leave it out"),
        ("name", "--set: `name` can't be set here", "leave it out"),
    ],
)
def test_an_unknown_or_derived_value_cannot_be_set(folder: Path, key: str, message: str, remedy: str) -> None:
    error = refused(folder, "base", set_flag(key, "1"))
    assert (error.message, error.remedy) == (message, remedy)


def test_verify_rows_are_all_drafts_and_the_token_after_them(folder: Path) -> None:
    assert load(folder, "base").profile.verify_rows == 2 * 6


def test_what_differs_is_enough_for_a_profile_of_one_s_own(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("extends: agent-1m\nmax_num_seqs: 2\n")
    profile = load_profile("mine", SearchPath((tmp_path, data_folder("profiles")))).profile
    assert (profile.name, profile.title, profile.max_num_seqs) == ("mine", "Like agent-1m, changed", 2)
