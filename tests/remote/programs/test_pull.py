"""A pull tells how far it is, what it waits for, and how it ended."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dspark_deploy.facts.pull import PullEnd, PullProgress, cause_of, parse_end, parse_progress
from dspark_deploy.remote.local import LocalHost
from tests.remote.stub_docker import StubDocker

NAME, TAG, DIGEST = "ghcr.io/anemll/dspark-vllm-gx10", "0.1.1", "sha256:" + "a" * 64
BY_TAG = f"POST /images/create?fromImage={NAME}&tag={TAG}"
BY_DIGEST = f"POST /images/create?fromImage={NAME}&tag={DIGEST}"
NAMED = f"POST /images/{NAME}@{DIGEST}/tag?repo={NAME}&tag={TAG}"
LINES: tuple[Mapping[str, Any], ...] = (
    {"status": "Pulling from anemll/dspark-vllm-gx10", "id": TAG},
    {"status": "Already exists", "id": "base"},
    {"status": "Pulling fs layer", "progressDetail": {}, "id": "own"},
    {"status": "Downloading", "progressDetail": {"current": 400, "total": 1000}, "id": "own"},
    {"status": "Download complete", "id": "own"},
    {"status": "Extracting", "progressDetail": {"current": 1000, "total": 1000}, "id": "own"},
    {"status": "Pull complete", "id": "own"},
    {"status": f"Digest: {DIGEST}"},
)


def lines(*documents: Mapping[str, Any]) -> str:
    return "".join(f"{json.dumps(each)}\r\n" for each in documents)


def pull(local: LocalHost, **changes: Any) -> tuple[PullProgress, PullEnd]:
    """The last progress, and the end."""
    request = {"reference": f"{NAME}:{TAG}", "digest": None, "or_tag": True, "stall_s": 30, **changes}
    progress = PullProgress()
    with closing(local.start("pull", request, timeout_s=10)) as session:
        while "progress" in (answer := session.receive(timeout_s=10)):
            progress = parse_progress(answer["progress"])
    return progress, parse_end(answer["end"])


@pytest.mark.parametrize("chunked", [False, True])
def test_layers_and_bytes_are_counted(local: LocalHost, docker: StubDocker, chunked: bool) -> None:
    docker.set(chunked=chunked)
    docker.answer(BY_TAG, lines(*LINES))
    assert pull(local) == (PullProgress(1000, 1000, layers=2, ready=2), PullEnd())


def test_a_digest_is_pulled_and_gets_its_tag(local: LocalHost, docker: StubDocker) -> None:
    docker.answer(BY_DIGEST, lines(*LINES))
    docker.answer(NAMED, "", status=201)
    assert pull(local, digest=DIGEST)[1] == PullEnd()
    assert [what for what, _, _ in docker.asked()] == ["GET /version", BY_DIGEST, NAMED]


@pytest.mark.parametrize(("or_tag", "end"), [(True, PullEnd(by_tag=True)), (False, None)])
def test_a_digest_that_is_gone_is_pulled_by_its_tag_where_that_will_do(
    local: LocalHost, docker: StubDocker, or_tag: bool, end: PullEnd | None
) -> None:
    unknown = f"manifest for {NAME}@{DIGEST} not found: manifest unknown: manifest unknown"
    docker.answer(BY_DIGEST, {"message": unknown}, status=404)
    docker.answer(BY_TAG, lines(*LINES))
    ended = pull(local, digest=DIGEST, or_tag=or_tag)[1]
    assert ended == (end or PullEnd(f"the docker daemon answered 404: {unknown}", "not-found"))


def test_an_error_in_the_middle_is_the_end(local: LocalHost, docker: StubDocker) -> None:
    broken = {"errorDetail": {"message": "x"}, "error": "write /var/lib/docker/tmp/x: no space left on device"}
    docker.answer(BY_TAG, lines(*LINES[:4], broken))
    progress, end = pull(local)
    assert (progress.done_bytes, end.cause) == (400, "disk-full")


def test_a_download_that_broke_off_is_told_while_docker_waits(local: LocalHost, docker: StubDocker) -> None:
    docker.answer(BY_TAG, lines(*LINES[:4], {"status": "Retrying in 5 seconds", "id": "own"}))
    assert pull(local)[0].note == "layer own: Retrying in 5 seconds: its download broke off"


def test_an_engine_that_says_no_more_is_given_up(local: LocalHost, docker: StubDocker) -> None:
    docker.answer(BY_TAG, None, status=0)
    end = pull(local, stall_s=0.2)[1]
    assert end.cause == "stalled"
    assert end.failed == "no byte came for 0.2 s"


def test_a_node_without_docker_says_so(local: LocalHost, docker: StubDocker) -> None:
    docker.set(error="Cannot connect to the Docker daemon at unix:///var/run/docker.sock.")
    assert pull(local)[1].cause == "no-docker"


def _auth(docker: StubDocker) -> Any:
    (headers,) = [headers for what, _, headers in docker.asked() if what == BY_TAG]
    given = headers.get("x-registry-auth")
    return given and json.loads(base64.urlsafe_b64decode(given))


def test_the_login_that_the_user_keeps_goes_to_the_engine(local: LocalHost, docker: StubDocker, home: Path) -> None:
    docker.answer(BY_TAG, {"message": "denied: denied"}, status=403)
    (home / ".docker").mkdir()
    auth = base64.b64encode(b"me:secret:with:colons").decode()
    (home / ".docker/config.json").write_text(json.dumps({"auths": {"ghcr.io": {"auth": auth}, "other": {}}}))
    end = pull(local)[1]
    assert (end.cause, end.stored_login) == ("denied", True)
    assert _auth(docker) == {"username": "me", "password": "secret:with:colons", "serveraddress": "ghcr.io"}


@pytest.mark.parametrize(
    ("secret", "expected"),
    [
        ({"Username": "me", "Secret": "s"}, {"username": "me", "password": "s", "serveraddress": "ghcr.io"}),
        ({"Username": "<token>", "Secret": "t"}, {"identitytoken": "t", "serveraddress": "ghcr.io"}),
    ],
)
def test_a_credential_helper_is_asked(
    local: LocalHost, docker: StubDocker, home: Path, secret: dict[str, str], expected: dict[str, str]
) -> None:
    docker.answer(BY_TAG, lines(*LINES))
    (home / ".docker").mkdir()
    (home / ".docker/config.json").write_text(json.dumps({"credsStore": "desk"}))
    helper = docker.folder / "docker-credential-desk"
    helper.write_text(f"#!/bin/sh\n[ $1 = get ] && [ \"$(cat)\" = ghcr.io ] && echo '{json.dumps(secret)}'\n")
    helper.chmod(0o755)
    assert pull(local)[1].stored_login
    assert _auth(docker) == expected


@pytest.mark.parametrize("config", ["", "[]", "{", '{"auths": {"ghcr.io": {"auth": "!"}}}', '{"credsStore": "gone"}'])
def test_no_login_that_can_be_read_is_none(local: LocalHost, docker: StubDocker, home: Path, config: str) -> None:
    docker.answer(BY_TAG, lines(*LINES))
    (home / ".docker").mkdir()
    (home / ".docker/config.json").write_text(config)
    assert pull(local)[1] == PullEnd()
    assert _auth(docker) is None


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("denied: denied", "denied"),
        ("unauthorized: authentication required", "denied"),
        ("pull access denied for x, repository does not exist or may require 'docker login'", "denied"),
        ("manifest for ghcr.io/x:9 not found: manifest unknown: manifest unknown", "not-found"),
        ("toomanyrequests: You have reached your pull rate limit.", "rate-limit"),
        ("error parsing HTTP 429 response body: invalid character", "rate-limit"),
        ('Get "https://ghcr.io/v2/": x509: certificate has expired or is not yet valid: current time 2026-…', "clock"),
        ('Get "https://ghcr.io/v2/": x509: certificate signed by unknown authority', "certificate"),
        ("failed to register layer: write /x: no space left on device", "disk-full"),
        ('Get "https://ghcr.io/v2/": dial tcp: lookup ghcr.io: no such host', "no-route"),
        ('Get "https://ghcr.io/v2/": dial tcp 1.2.3.4:443: connect: network is unreachable', "no-route"),
        ('Get "https://ghcr.io/v2/": net/http: TLS handshake timeout', "no-route"),
        ("something else", "other"),
    ],
)
def test_causes_are_told_apart_by_the_engine_s_words(said: str, cause: str) -> None:
    assert cause_of(said) == cause
