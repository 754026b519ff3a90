from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256

import pytest

from dspark_deploy import __version__
from dspark_deploy.plan.deployment import Deployment
from dspark_deploy.plan.served import served_by
from dspark_deploy.render.manifest import parse_served
from dspark_deploy.render.release import File
from dspark_deploy.render.render import release_id, render


def test_the_same_deployment_gives_the_same_bytes(deployment: Deployment) -> None:
    assert render(deployment) == render(replace(deployment))


def test_each_node_gets_its_own_half(deployment: Deployment) -> None:
    release = render(deployment)
    assert (
        set(release.head) == set(release.worker) == {".env", "compose.yaml", "serve.sh", "prepare.py", "manifest.json"}
    )
    assert 'VLLM_HOST_IP="192.168.177.11"' in release.head[".env"].content
    assert 'VLLM_HOST_IP="192.168.177.12"' in release.worker[".env"].content
    assert '"--headless"' not in release.head["compose.yaml"].content
    assert '"--headless"' in release.worker["compose.yaml"].content


def test_both_containers_carry_the_id_as_a_label(deployment: Deployment) -> None:
    release = render(deployment)
    assert len(release.id) == 12
    assert all(
        f'dspark.release: "{release.id}"' in half["compose.yaml"].content for half in (release.head, release.worker)
    )


def test_the_id_is_the_pairs_and_changes_with_either_node(deployment: Deployment) -> None:
    worker = replace(deployment.worker, gid_index=3)
    assert render(replace(deployment, ranks=(deployment.head, worker))).id != render(deployment).id


@pytest.mark.parametrize(
    "half",
    [
        {"a": File("xy", 0o644)},
        {"b": File("x", 0o644)},
        {"a": File("x", 0o600)},
        {"a": File("x", 0o644), "b": File("")},
    ],
)
def test_the_id_changes_with_a_name_a_mode_and_a_content(half: dict[str, File]) -> None:
    known = {"a": File("x", 0o644)}
    assert len({release_id([known, known]), release_id([half, known]), release_id([known, half])}) == 3


def test_an_upgrade_of_the_tool_alone_is_no_new_release(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = render(deployment)
    monkeypatch.setattr("dspark_deploy.render.render.__version__", "99.0.0")
    after = render(deployment)
    assert after.id == before.id
    assert "Rendered by dspark 99.0.0" in after.head["compose.yaml"].content


def test_a_manifest_says_what_the_release_is_and_hashes_every_other_file(deployment: Deployment) -> None:
    release = render(deployment)
    manifest = json.loads(release.worker["manifest.json"].content)
    hashes = manifest.pop("files")
    assert manifest == {
        "release": release.id,
        "tool": __version__,
        "node": "worker",
        "rank": 1,
        "served": served_by(deployment).document(),
    }
    assert parse_served(release.worker["manifest.json"].content) == served_by(deployment)
    assert hashes == {
        name: {"mode": f"{file.mode:04o}", "sha256": sha256(file.content.encode()).hexdigest()}
        for name, file in release.worker.items()
        if name != "manifest.json"
    }


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"served": {"pair": "p", "new": 1}}', '{"served": 3}'])
def test_a_manifest_of_another_shape_says_nothing_of_what_is_served(text: str) -> None:
    assert parse_served(text) is None


def test_no_file_has_a_carriage_return_or_lacks_its_last_line_end(deployment: Deployment) -> None:
    release = render(deployment)
    texts = [file.content for half in (release.head, release.worker) for file in half.values()]
    assert not any("\r" in text for text in texts)
    assert all(text.endswith("\n") and not text.endswith("\n\n") for text in texts)
