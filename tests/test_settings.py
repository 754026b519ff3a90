"""Variables and `.env`: literal values, a source for each, and no name that silently means nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dspark_deploy.errors import ConfigError, ExitCode
from dspark_deploy.profile import OVERRIDABLE
from dspark_deploy.settings import Settings, load_settings
from dspark_deploy.strict import Given


def load(folder: Path, dotenv: str | bytes | None = None, **environment: str) -> Settings:
    if dotenv is not None:
        (folder / ".env").write_bytes(dotenv if isinstance(dotenv, bytes) else dotenv.encode())
    return load_settings(environment, OVERRIDABLE, directory=folder)


def refused(folder: Path, dotenv: str | bytes) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(folder, dotenv)
    assert caught.value.code is ExitCode.USAGE
    return caught.value


def test_nothing_set_is_the_default(tmp_path: Path) -> None:
    assert load(tmp_path) == Settings(tmp_path / "inventory.yaml", None, None, None, (), ())


def test_the_environment_beats_the_file_and_each_value_has_its_source(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        "DSPARK_PROFILE=deep-1m\nDSPARK_MAX_NUM_SEQS=2\nDSPARK_THINKING=off\n",
        DSPARK_PROFILE="coding-1m",
        DSPARK_MAX_NUM_SEQS="4",
    )
    assert settings.profile == "coding-1m"
    assert settings.given == (
        Given("max_num_seqs", "4", "DSPARK_MAX_NUM_SEQS"),
        Given("max_num_seqs", "2", f"{tmp_path}/.env line 2"),
        Given("thinking", "off", f"{tmp_path}/.env line 3"),
    )


def test_the_file_lies_beside_the_inventory(tmp_path: Path) -> None:
    (tmp_path / "pairs").mkdir()
    (tmp_path / "pairs" / ".env").write_text("DSPARK_OUTPUT=json\nDSPARK_SSH_CONFIG=ssh.conf\n")
    by_flag = load_settings({}, OVERRIDABLE, inventory=Path("pairs/a.yaml"), directory=tmp_path)
    by_variable = load(tmp_path, DSPARK_INVENTORY="pairs/a.yaml")
    assert by_flag == by_variable
    assert (by_flag.inventory, by_flag.output) == (tmp_path / "pairs" / "a.yaml", "json")
    assert by_flag.ssh_config == tmp_path / "pairs" / "ssh.conf"


def test_the_flag_beats_the_variable(tmp_path: Path) -> None:
    environment = {"DSPARK_INVENTORY": "b.yaml", "DSPARK_SSH_CONFIG": "ssh.conf"}
    settings = load_settings(environment, OVERRIDABLE, inventory=Path("a.yaml"), directory=tmp_path)
    assert (settings.inventory, settings.ssh_config) == (tmp_path / "a.yaml", tmp_path / "ssh.conf")


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path: Path) -> None:
    settings = load(tmp_path, b"\xef\xbb\xbfDSPARK_PROFILE=deep-1m\r\n\r\nDSPARK_THINKING=off\r\n")
    assert settings.profile == "deep-1m"
    assert settings.given == (Given("thinking", "off", f"{tmp_path}/.env line 3"),)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("DSPARK_SERVED_MODEL_NAME=sk-a$b$$c${NOPE}d", "sk-a$b$$c${NOPE}d"),
        ("DSPARK_SERVED_MODEL_NAME='m_$literal'", "m_$literal"),
        ("DSPARK_SERVED_MODEL_NAME=abc#def", "abc#def"),
        ("DSPARK_SERVED_MODEL_NAME=abc #def", "abc"),
        ('DSPARK_SERVED_MODEL_NAME="abc #def" # note', "abc #def"),
        ("DSPARK_SERVED_MODEL_NAME='x \"y\" z'", 'x "y" z'),
        ("export DSPARK_SERVED_MODEL_NAME=exported", "exported"),
        ("DSPARK_SERVED_MODEL_NAME = spaced ", "spaced"),
    ],
)
def test_a_value_is_literal(tmp_path: Path, line: str, value: str) -> None:
    assert [each.text for each in load(tmp_path, line).given] == [value]


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("\n# note\n\nF: colon-style\n", "line 4: not NAME=value", "write NAME=value"),
        ("DSPARK_PROFILE\n", "line 1: not NAME=value", "write NAME=value"),
        ('DSPARK_PROFILE="open\n', "line 1: not NAME=value", "quotes in pairs"),
        ("\nDSPARK_PROFILE=\n", "line 2: DSPARK_PROFILE is empty", "take the line out"),
        ("DSPARK_PROFILE=a\nDSPARK_PROFILE=b\n", "line 2: DSPARK_PROFILE is set twice, first on ", "keep one"),
        ("DSPARK_MAX_SEQS=1\n", "DSPARK_MAX_SEQS is not a setting", "did you mean DSPARK_MAX_NUM_SEQS?"),
        ("DSPARK_WORKER_HOST=10.0.0.2\n", "DSPARK_WORKER_HOST is not a setting of dspark", "take it out"),
        ("DSPARK_INVENTORY=b.yaml\n", "found by way of the inventory", "-i"),
        ("DSPARK_OUTPUT=xml\n", '.env line 1: `output` is "xml"', "`text` or `json`"),
    ],
)
def test_a_line_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, message: str, remedy: str) -> None:
    error = refused(tmp_path, text)
    assert message in error.message
    assert remedy in error.remedy


def test_what_other_tools_have_in_the_file_is_one_warning_and_never_an_error(tmp_path: Path) -> None:
    theirs = "WORKER_HOST=10.0.0.2\nMAX_MODEL_LENGTH=1\nEMPTY=\nEMPTY=twice\nBARE\nLAST=1\n"
    settings = load(tmp_path, theirs + "DSPARK_PROFILE=deep-1m\n")
    assert settings.profile == "deep-1m"
    (warning,) = settings.warnings
    told = "MAX_MODEL_LENGTH (did you mean DSPARK_MAX_MODEL_LEN?), WORKER_HOST, EMPTY, BARE and 1 more"
    assert warning == f"{tmp_path}/.env: passed over, for only DSPARK_* is read there: {told}"


def test_a_folder_of_that_name_is_another_tools(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    assert load(tmp_path).warnings == ()


def test_a_pipe_that_nobody_writes_into_is_refused_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".env")
    with pytest.raises(ConfigError, match="a pipe that nobody writes into"):
        load(tmp_path)


def test_a_variable_that_is_no_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="DSPARK_PROFILE: `profile` is not UTF-8"):
        load(tmp_path, DSPARK_PROFILE="\udcff")


def test_utf_16_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, "DSPARK_PROFILE=a\n".encode("utf-16")).remedy == "save the file as UTF-8"


def test_a_variable_that_means_nothing_is_a_warning(tmp_path: Path) -> None:
    settings = load(tmp_path, DSPARK_MODLE="x", DSPARK_RESTART_POLICY="no", PATH="/bin", DSPARK_PROFILE="")
    assert settings.warnings == (
        "DSPARK_MODLE is set in the environment and means nothing; did you mean DSPARK_MODEL?",
        "DSPARK_RESTART_POLICY is set in the environment and means nothing",
    )
    assert settings.given == ()


def test_a_wrong_variable_names_itself(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='DSPARK_OUTPUT: `output` is "xml"'):
        load(tmp_path, DSPARK_OUTPUT="xml")


def test_every_value_of_a_profile_can_be_set(tmp_path: Path) -> None:
    for name in OVERRIDABLE:
        assert [each.key for each in load(tmp_path, **{f"DSPARK_{name.upper()}": "x"}).given] == [name]


def test_an_api_key_is_taken_from_the_environment_or_a_private_dotenv_and_never_shown(tmp_path: Path) -> None:
    settings = load_settings({"DSPARK_API_KEY": "sk-one"}, (), directory=tmp_path)
    assert settings.api_key is not None
    assert settings.api_key.get_secret_value() == "sk-one"
    assert "sk-one" not in repr(settings)
    (tmp_path / ".env").write_text("DSPARK_API_KEY=sk-two\n")
    (tmp_path / ".env").chmod(0o600)
    written = load_settings({}, (), directory=tmp_path).api_key
    assert written is not None
    assert written.get_secret_value() == "sk-two"


@pytest.mark.parametrize(
    ("environment", "mode", "message"),
    [
        ({"DSPARK_API_KEY": "sk one"}, 0o600, "DSPARK_API_KEY: DSPARK_API_KEY holds a blank"),
        ({"DSPARK_API_KEY": "sk\udcff"}, 0o600, "holds a blank or a character that no HTTP header carries"),
        ({}, 0o644, ".env line 1: DSPARK_API_KEY can be read by others"),
    ],
)
def test_an_api_key_that_can_not_be_one_is_refused_unseen(
    tmp_path: Path, environment: dict[str, str], mode: int, message: str
) -> None:
    (tmp_path / ".env").write_text("DSPARK_API_KEY=sk-two\n")
    (tmp_path / ".env").chmod(mode)
    with pytest.raises(ConfigError) as raised:
        load_settings(environment, (), directory=tmp_path)
    assert message in raised.value.message
    assert "sk" not in raised.value.message.replace(str(tmp_path), "")
