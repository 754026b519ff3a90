"""The API key in a run: given before the head starts, given back when the start fails, and a reason to restart."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from dspark_deploy.errors import ConfigError, LaunchFailed
from dspark_deploy.facts.node import Container
from dspark_deploy.flow.history import prepare_rollback
from dspark_deploy.flow.key import key_of
from dspark_deploy.inventory import Inventory, load_inventory
from dspark_deploy.plan.launch import GiveKey
from dspark_deploy.settings import load_settings
from tests.fakes import FakeHost
from tests.flow.stand import INVENTORY, FakeClock, Stand

FIRST, SECOND = SecretStr("sk-first"), SecretStr("sk-second")


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    """Two healthy nodes, and a key in the inventory's key file."""
    stand = Stand(tmp_path)
    give(stand, FIRST)
    (tmp_path / "inventory.yaml").write_text(f"{INVENTORY}api: {{key_file: api.key}}\n")
    return stand


def give(stand: Stand, key: SecretStr) -> None:
    path = stand.folder / "api.key"
    path.write_text(f"{key.get_secret_value()}\n")
    path.chmod(0o600)
    stand.head.api_key = key


def steps(stand: Stand) -> list[str]:
    return [step for step in stand.observer.steps if "API key" in step]


def serves_no_more(host: FakeHost, container: Container) -> None:
    host.api = None
    host.engine_.die(container.id, 1, "RuntimeError: no")


def test_the_head_alone_gets_the_key_before_it_starts_and_only_once(stand: Stand) -> None:
    stand.bring_up().up()
    assert (stand.head.held_key, stand.worker.held_key) == (FIRST, None)
    assert [what for what, _ in stand.head.done].index("secret") < [what for what, _ in stand.head.done].index("run")
    assert steps(stand) == ["give the head its API key"]
    stand.head.held_since_s = 0  # before the head's container was started
    report = stand.bring_up().up()
    assert (report.changed, len(steps(stand))) == (False, 1)


def test_another_key_is_a_restart_of_the_same_release_that_says_why_and_asks(stand: Stand) -> None:
    before = stand.bring_up().up()
    give(stand, SECOND)
    after = stand.bring_up().up()
    assert (after.release, after.changed, stand.head.held_key) == (before.release, True, SECOND)
    assert any("the API key is not the one that the head was started with" in each for each in after.warnings)
    assert len(stand.asked) == 1


def test_a_key_that_was_written_after_the_heads_start_is_not_the_one_it_runs_with(stand: Stand) -> None:
    stand.bring_up().up()  # the fake's container was started long before its key is written
    assert stand.bring_up().up().changed


def test_a_start_that_fails_gives_back_the_key_that_was_there_and_what_served_with_it(stand: Stand) -> None:
    first = stand.bring_up().up().release
    give(stand, SECOND)
    good = stand.head.on_start

    def bad_once(host: FakeHost, container: Container) -> None:
        stand.head.on_start = good
        serves_no_more(host, container)

    stand.head.on_start = bad_once
    with pytest.raises(LaunchFailed) as raised:
        stand.bring_up().up()
    assert f"release {first}" in raised.value.why
    assert stand.head.held_key == FIRST


def test_a_first_start_that_fails_leaves_no_key(stand: Stand) -> None:
    stand.head.on_start = serves_no_more
    with pytest.raises(LaunchFailed):
        stand.bring_up().up()
    assert stand.head.held_key is None


def test_a_key_that_nothing_needs_is_taken_off_both_nodes(stand: Stand) -> None:
    stand.head.held_key = stand.worker.held_key = FIRST
    (stand.folder / "inventory.yaml").write_text(INVENTORY)
    stand.bring_up().up()
    assert [stand.head.held_key, stand.worker.held_key] == [None, None]


def test_going_back_to_a_release_with_a_key_needs_one_and_gives_it(stand: Stand) -> None:
    with_key = stand.bring_up().up().release
    (stand.folder / "inventory.yaml").write_text(INVENTORY)
    stand.head.api_key = None
    stand.bring_up().up()
    assert stand.head.held_key is None
    with pytest.raises(ConfigError, match="asks for an API key, and none is given"):
        prepare_rollback(stand.hosts, "spark-pair", with_key, stand.observer, FakeClock())
    stand.head.api_key = SECOND
    target = prepare_rollback(stand.hosts, "spark-pair", with_key, stand.observer, FakeClock())
    assert [str(step) for step in target.steps if isinstance(step, GiveKey)] == ["give the head its API key"]


def inventory(folder: Path, key: str | None) -> Inventory:
    path = folder / "inventory.yaml"
    if key is not None:
        (folder / "key").write_text(key)
        (folder / "key").chmod(0o600)
    path.write_text(INVENTORY + ("" if key is None else "api: {key_file: key}\n"))
    return load_inventory(path)


@pytest.mark.parametrize(
    ("written", "exported", "found"),
    [(None, "", None), ("sk-a\n", "", "sk-a"), (None, "sk-b", "sk-b"), ("sk-a\r\n", "sk-a", "sk-a")],
)
def test_a_key_comes_from_its_file_or_the_variable(
    tmp_path: Path, written: str | None, exported: str, found: str | None
) -> None:
    settings = load_settings({"DSPARK_API_KEY": exported}, (), directory=tmp_path)
    key = key_of(inventory(tmp_path, written), settings)
    assert (key and key.get_secret_value()) == found


def test_two_keys_that_differ_are_refused_without_a_word_of_either(tmp_path: Path) -> None:
    settings = load_settings({"DSPARK_API_KEY": "sk-exported"}, (), directory=tmp_path)
    with pytest.raises(ConfigError) as raised:
        key_of(inventory(tmp_path, "sk-written"), settings)
    said = f"{raised.value.message} {raised.value.why} {raised.value.remedy}"
    assert "DSPARK_API_KEY holds another key" in said
    assert not {"sk-exported", "sk-written"} & set(said.replace(",", " ").split())
