"""A node's Hugging Face caches: where its user's settings say, in the usual places, and what lies there."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspark_deploy.facts.places import CachePlace, parse_places
from dspark_deploy.remote.local import LocalHost

MODEL = "deepseek-ai/DeepSeek-V4-Flash-0731"
SETTINGS = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME")


@pytest.fixture(autouse=True)
def _no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DSPARK_NODE_ROOT", str(tmp_path / "no-root"))


def places(local: LocalHost, *also: str, directories: tuple[str, ...] = ()) -> list[CachePlace]:
    request = {"directories": list(directories), "also": list(also)}
    found = parse_places(local.call("places", request, timeout_s=10))
    return [place for place in found if place.setting != "a usual place"]


def keep(hub: Path, name: str = MODEL) -> None:
    (hub / f"models--{name.replace('/', '--')}" / "snapshots" / ("9" * 40)).mkdir(parents=True)


def test_without_any_setting_it_is_the_usual_place(local: LocalHost, home: Path) -> None:
    (place,) = places(local)
    assert (place.setting, place.hf_home) == ("the usual place", f"{home}/.cache/huggingface")
    assert (place.there, place.writable, place.models, place.hub_elsewhere) == (False, True, (), False)


def test_a_model_is_there_once_it_has_a_snapshot(local: LocalHost, home: Path) -> None:
    hub = home / ".cache/huggingface/hub"
    keep(hub)
    (hub / "models--other--empty" / "snapshots").mkdir(parents=True)
    (hub / "datasets--some--thing" / "snapshots" / "x").mkdir(parents=True)
    (home / ".cache/huggingface/fraserprice/DeepSeek").mkdir(parents=True)
    (place,) = places(local, directories=("fraserprice/DeepSeek", "fraserprice/Other"))
    assert (place.there, place.models, place.directories) == (True, (MODEL,), ("fraserprice/DeepSeek",))


def test_the_sessions_own_settings_come_first(local: LocalHost, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(home / "hf"))
    monkeypatch.setenv("HF_HUB_CACHE", str(home / "hub"))
    first, second, usual = places(local)
    assert (first.setting, first.hf_home, first.hub) == ("HF_HUB_CACHE", f"{home}/hf", f"{home}/hub")
    assert first.hub_elsewhere
    assert (second.setting, second.hf_home) == ("HF_HOME", f"{home}/hf")
    assert usual.setting == "the usual place"


@pytest.mark.parametrize(
    "line",
    [
        "export HF_HOME=/data/hf",
        'HF_HOME="/data/hf"  # on the large disk',
        "  export HF_HOME='/data/hf'",
    ],
)
def test_what_only_an_interactive_shell_sets_is_read_as_text(local: LocalHost, home: Path, line: str) -> None:
    (home / ".bashrc").write_text(f"case $- in *i*) ;; *) return;; esac\n{line}\n")
    first, _ = places(local)
    assert (first.setting, first.hf_home) == ("HF_HOME in ~/.bashrc", "/data/hf")


def test_the_home_is_this_logins_own(local: LocalHost, home: Path) -> None:
    (home / ".profile").write_text("export HF_HOME=$HOME/models\n")
    assert places(local)[0].hf_home == f"{home}/models"
    assert places(local, "~/asked")[0].hf_home == f"{home}/asked"


@pytest.mark.parametrize(
    "line", ["export HF_HOME=$(touch ran)", "export HF_HOME=$DATA/hf", "HF_HOME=`id`", "HF_HOME=hf"]
)
def test_nothing_is_run_and_nothing_guessed(local: LocalHost, home: Path, line: str) -> None:
    (home / ".bashrc").write_text(f"{line}\n")
    (place,) = places(local)
    assert place.setting == "the usual place"
    assert not (home / "ran").exists()


def test_a_place_that_is_asked_for_comes_first_and_is_told_once(local: LocalHost, home: Path) -> None:
    (home / ".cache/huggingface").mkdir(parents=True)
    (place,) = places(local, "~/.cache/huggingface")
    assert (place.setting, place.there) == ("asked for", True)
