"""The API key on a node: whole or not at all, readable by its user alone, and told from another one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import SecretStr

from dspark_deploy.errors import StepFailed
from dspark_deploy.execute.key import keep_key, look_at_key
from dspark_deploy.remote.local import LocalHost
from dspark_deploy.remote.programs._state import secrets_at

PAIR = "spark-pair"
KEY = SecretStr("sk-one$'\"\\#=")


@pytest.fixture
def folder(home: Path) -> Path:
    return home / ".local/share/dspark" / PAIR


def test_it_is_written_whole_for_its_user_alone_whatever_the_umask_and_what_was_there(
    local: LocalHost, folder: Path
) -> None:
    folder.mkdir(parents=True, mode=0o755)
    (folder / "secrets.env").write_text("VLLM_API_KEY=sk-old\n")
    (folder / "secrets.env").chmod(0o644)
    (folder / "secrets.env.part").write_text("of a run that died")
    before = os.umask(0)
    try:
        assert keep_key(local, PAIR, KEY) == SecretStr("sk-old")
    finally:
        os.umask(before)
    assert (folder / "secrets.env").read_text() == f"VLLM_API_KEY={KEY.get_secret_value()}\n"
    assert [path.name for path in folder.iterdir()] == ["secrets.env"]
    modes = [path.stat().st_mode & 0o777 for path in (folder, folder / "secrets.env")]
    assert modes == [0o700, 0o600]


def test_looking_changes_nothing_and_tells_the_same_key_from_another_and_from_none(
    local: LocalHost, folder: Path
) -> None:
    assert not look_at_key(local, PAIR, KEY).same
    assert look_at_key(local, PAIR, None).same
    assert not folder.exists()
    keep_key(local, PAIR, KEY)
    found = look_at_key(local, PAIR, KEY)
    assert (found.same, found.at) == (True, secrets_at(str(folder)))
    assert not look_at_key(local, PAIR, SecretStr("sk-two")).same


def test_the_same_key_is_not_written_again_unless_others_could_read_it(local: LocalHost, folder: Path) -> None:
    keep_key(local, PAIR, KEY)
    path = folder / "secrets.env"
    os.utime(path, (1, 1))
    assert keep_key(local, PAIR, KEY) == KEY
    assert path.stat().st_mtime == 1
    path.chmod(0o640)
    assert not look_at_key(local, PAIR, KEY).same
    keep_key(local, PAIR, KEY)
    assert path.stat().st_mode & 0o777 == 0o600


def test_none_takes_it_away(local: LocalHost, folder: Path) -> None:
    keep_key(local, PAIR, KEY)
    assert keep_key(local, PAIR, None) == KEY
    assert keep_key(local, PAIR, None) is None
    assert list(folder.iterdir()) == []


def test_a_folder_that_can_not_be_written_is_named_and_not_the_key(local: LocalHost, folder: Path) -> None:
    folder.parent.mkdir(parents=True)
    folder.write_text("a file")
    with pytest.raises(StepFailed) as raised:
        keep_key(local, PAIR, KEY)
    assert str(folder) in raised.value.message
    assert "sk-one" not in f"{raised.value.message}{raised.value.why}{raised.value.remedy}"
