"""`profiles` and `families` list what can be read and name what can't."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dspark_deploy.cli.commands import register_all
from dspark_deploy.cli.group import main

BROKEN = "name: mine\nextends: no-such-profile\n"


@pytest.fixture
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a broken profile, one that names no family there is, and one that is no YAML."""
    monkeypatch.chdir(tmp_path)
    register_all()
    (tmp_path / "profiles/families").mkdir(parents=True)
    (tmp_path / "profiles/mine.yaml").write_text(BROKEN)
    (tmp_path / "profiles/other.yaml").write_text("name: other\nextends: agent-1m\nfamily: anemal\n")
    (tmp_path / "profiles/families/bad.yaml").write_text("name: [\n")


@pytest.mark.usefixtures("_here")
def test_one_broken_profile_does_not_hide_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles"]) == 0
    said = capsys.readouterr().out
    assert "agent-1m" in said
    assert "profiles/mine.yaml line 2: no profile is called `no-such-profile`" in said
    assert "profiles/other.yaml line 3: no family is called `anemal` -> did you mean `anemll`?" in said


@pytest.mark.usefixtures("_here")
def test_the_list_in_json_holds_what_can_be_chosen_and_warns_of_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", "--output", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"agent-1m", "coding-1m"} <= {each["name"] for each in told["result"]}
    assert [warning.split()[0] for warning in told["warnings"]] == ["mine", "other"]


@pytest.mark.usefixtures("_here")
def test_a_broken_family_is_named_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["families"]) == 0
    said = capsys.readouterr().out
    assert "stage-c" in said
    assert "profiles/families/bad.yaml line" in said


@pytest.mark.usefixtures("_here")
@pytest.mark.parametrize("name", ["mine", "other"])
def test_a_broken_profile_that_is_asked_for_is_exit_2(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("inventory.yaml").write_text(f"name: p\nprofile: {name}\nhead: {{host: a}}\nworker: {{host: b}}\n")
    assert main(["render", "--dir", "out"]) == 2
    assert f"profiles/{name}.yaml line" in capsys.readouterr().err


@pytest.mark.usefixtures("_here")
@pytest.mark.parametrize(
    ("words", "dotenv", "place"),
    [
        ((), None, "inventory.yaml line 2: no profile is called `agent-2m`"),
        ((), "# mine\nDSPARK_PROFILE=agent-3m\n", ".env line 2: no profile is called `agent-3m`"),
        (("-p", "agent-4m"), None, "--profile: no profile is called `agent-4m`"),
        (("-p", "agent-1m", "--family", "anemal"), None, "--family: no family is called `anemal`"),
    ],
)
def test_a_name_that_nothing_has_is_told_with_its_place(
    words: tuple[str, ...], dotenv: str | None, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("inventory.yaml").write_text("name: p\nprofile: agent-2m\nhead: {host: a}\nworker: {host: b}\n")
    if dotenv:
        Path(".env").write_text(dotenv)
    assert main(["render", "--dir", "out", *words]) == 2
    said = capsys.readouterr().err
    assert place in said
    assert "did you mean" in said


@pytest.mark.usefixtures("_here")
def test_an_ssh_config_that_is_a_folder_is_not_called_missing(capsys: pytest.CaptureFixture[str]) -> None:
    Path("inventory.yaml").write_text("name: p\nprofile: agent-1m\nhead: {host: a}\nworker: {host: b}\n")
    assert main(["status", "--ssh-config", "/tmp"]) == 2
    assert "ssh_config /tmp is not a file" in capsys.readouterr().err
