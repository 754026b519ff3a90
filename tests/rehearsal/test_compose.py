"""The stand-in of compose and the real one read the same files, and judge them alike."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspark_deploy.rehearsal.composefile import ComposeError, check_project_name, load_services
from dspark_deploy.rehearsal.envfile import BadEnvFile, read_env
from dspark_deploy.render.quoting import env_string

from ..bed.packages import BedUnavailable, compose_binary

GOLDEN = Path(__file__).parents[1] / "golden" / "agent-1m" / "worker"

# What to change in a rendered file, and whether it may still be taken.
COMPOSE_CHANGES: tuple[tuple[str, str, str, bool], ...] = (
    ("as rendered", "", "", True),
    ("an unknown key at the top", "services:", "colour: red\nservices:", False),
    ("an unknown key of a service", "    ipc:", "    colour: red\n    ipc:", False),
    ("an unknown key of a mount", "create_host_path: false", "create_host_path: false, colour: red", False),
    ("an unknown key of a device", "driver: nvidia", "driver: nvidia\n              colour: red", False),
    ("a list for a text", '    ipc: "host"', "    ipc: [host]", False),
    ("a text for a list", '    env_file: ["./.env"]', "    cap_add: ALL", False),
    ("a number for a text", '    ipc: "host"', "    ipc: 7", False),
    ("a key twice", '    ipc: "host"', '    ipc: "host"\n    ipc: "host"', False),
    ("a quote that does not end", '    ipc: "host"', '    ipc: "host', False),
    ("a tab for a blank", '    ipc: "host"', '\tipc: "host"', False),
    ("a variable that nobody set", '    ipc: "host"', '    ipc: "host${NOBODY_SET_THIS}"', True),
    ("a variable with a default", '    ipc: "host"', '    ipc: "${NOBODY_SET_THIS:-host}"', True),
    ("a variable that has to be set", '    ipc: "host"', '    ipc: "${NOBODY_SET_THIS:?say it}"', False),
    ("a variable without its end", '    ipc: "host"', '    ipc: "ho${st"', False),
    ("an escaped dollar", '    ipc: "host"', '    ipc: "ho$$st"', True),
    ("a lone dollar", '    ipc: "host"', '    ipc: "ho$ st"', True),
    ("no image", '    image: "ghcr.io/anemll/dspark-vllm-gx10:0.1.1"\n', "", False),
    ("a pull policy that is none", "pull_policy: never", "pull_policy: perhaps", False),
    ("a time without a unit", "stop_grace_period: 10s", "stop_grace_period: 10q", False),
    ("an env file that is missing", 'env_file: ["./.env"]', 'env_file: ["./none.env"]', False),
)
# Lines of an env file, and what is read from them: None is a refusal.
ENV_LINES: tuple[tuple[str, str | None], ...] = (
    ("A=plain", "plain"),
    ("A=with blanks # and a comment", "with blanks"),
    ("A=a#b", "a#b"),
    ("A=", ""),
    ("A: colon", "colon"),
    ("export A=exported", "exported"),
    ('A="quoted # no comment" # comment', "quoted # no comment"),
    ("A='single $NOBODY \\n'", "single $NOBODY \\n"),
    (r'A="escaped \" \\ \$HOME"', 'escaped " \\ $HOME'),
    (r'A="two\nlines"', "two\nlines"),
    ('A="two\nlines"', "two\nlines"),
    ('B=first\nA="$B and ${B}"', "first and first"),
    ('A="${NOBODY:-default}"', "default"),
    ('A="does not end', None),
    ("A B=1", None),
)


def warned(text: str) -> None:
    assert "NOBODY_SET_THIS" in text


@pytest.fixture(scope="session", name="real")
def _real() -> Path:
    """The compose that the stand-in follows: 2.40, as a program of its own."""
    try:
        return compose_binary(newer=True)
    except BedUnavailable as reason:
        pytest.skip(f"no docker compose to compare with: {reason}")


def config(real: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    argv = [str(real), "-p", "pair", "-f", "compose.yaml", "config", "--format", "json"]
    return subprocess.run(argv, check=False, capture_output=True, text=True, cwd=folder, env={})


@pytest.fixture(name="changed", params=COMPOSE_CHANGES, ids=[each[0] for each in COMPOSE_CHANGES])
def _changed(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, bool]:
    """A rendered file with one change, and whether it may still be taken."""
    _, old, new, taken = request.param
    for file in ("compose.yaml", ".env"):
        (tmp_path / file).write_text((GOLDEN / file).read_text().replace(old, new, 1))
    return tmp_path, taken


def test_the_stand_in_takes_what_may_be_taken_and_refuses_the_rest(changed: tuple[Path, bool]) -> None:
    folder, taken = changed
    if taken:
        assert [each.name for each in load_services(folder / "compose.yaml", {}, warned)] == ["vllm"]
    else:
        with pytest.raises(ComposeError):
            load_services(folder / "compose.yaml", {}, warned)


def test_the_real_compose_judges_alike(changed: tuple[Path, bool], real: Path) -> None:
    folder, taken = changed
    assert (config(real, folder).returncode == 0) == taken


@pytest.mark.parametrize(("line", "value"), ENV_LINES)
def test_the_stand_in_reads_env_files(line: str, value: str | None) -> None:
    if value is None:
        with pytest.raises(BadEnvFile):
            read_env(f"{line}\n", {})
    else:
        assert read_env(f"{line}\n", {})["A"] == value


@pytest.mark.parametrize(("line", "value"), ENV_LINES)
def test_the_real_compose_reads_them_alike(tmp_path: Path, real: Path, line: str, value: str | None) -> None:
    (tmp_path / "own.env").write_text(f"{line}\n")
    (tmp_path / "compose.yaml").write_text("services: {vllm: {image: a, env_file: [own.env]}}\n")
    ran = config(real, tmp_path)
    if value is None:
        assert ran.returncode != 0
    else:
        read = json.loads(ran.stdout)["services"]["vllm"]["environment"]["A"]
        assert read.replace("$$", "$") == value  # it prints what could be read again


@given(value=st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1))
def test_every_value_that_is_rendered_comes_back(value: str) -> None:
    assert read_env(f"BEFORE=1\nA={env_string(value)}\nAFTER=1\n", {"BEFORE": "x"})["A"] == value


def test_a_service_is_what_its_file_says(tmp_path: Path) -> None:
    for file in ("compose.yaml", ".env"):
        (tmp_path / file).write_text((GOLDEN / file).read_text())
    (service,) = load_services(tmp_path / "compose.yaml", {}, warned)
    assert service.entrypoint == ("/bin/bash", "/opt/dspark/serve.sh")
    assert service.command is not None
    assert service.command[:2] == ("serve", "deepseek-ai/DeepSeek-V4-Flash-0731")
    assert (service.gpu, service.never_pulled, service.stop_grace_s) == (True, True, 10)
    assert service.environment["VLLM_HOST_IP"] == "192.168.177.12"
    assert service.labels["dspark.rank"] == "1"
    assert [str(mount.source) for mount in service.mounts][2:] == [f"{tmp_path}/serve.sh", f"{tmp_path}/prepare.py"]


def test_a_changed_env_file_changes_the_services_hash(tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text((GOLDEN / "compose.yaml").read_text())
    hashes = set()
    for text in ("A=1\n", "A=2\n", "A=2\n"):
        (tmp_path / ".env").write_text(text)
        hashes.add(load_services(tmp_path / "compose.yaml", {}, warned)[0].hash)
    assert len(hashes) == 2


@pytest.mark.parametrize("name", ["X", "a.b", "-a", "", "ä"])
def test_a_bad_project_name_is_refused(name: str) -> None:
    with pytest.raises(ComposeError, match="invalid project name"):
        check_project_name(name)
