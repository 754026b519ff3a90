"""serve.sh, run for real on folders that stand for an image."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from dspark_deploy.family import Family
from dspark_deploy.model import Model
from dspark_deploy.plan.deployment import Deployment
from dspark_deploy.render.serve import Preparation, preparation, prepare_program, serve_script

from .conftest import REVISION

BASH = shutil.which("bash") or "bash"
VLLM = f"""#!{sys.executable}
import json, os, sys
print(json.dumps({{"argv": sys.argv[1:], "environment": dict(os.environ), "pid": os.getpid()}}))
"""


@dataclass
class Image:
    """Folders as an image of the family has them, and a container that starts from it."""

    folder: Path
    deployment: Deployment
    secrets: str | None = None  # what the file of the API key holds

    @property
    def executable(self) -> Path:
        return Path(self.deployment.family.executable)

    def run(self, *argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
        scripts = self.folder / "opt dspark"
        scripts.mkdir(exist_ok=True)
        if self.secrets is not None:
            (scripts / "secrets.env").write_text(self.secrets)
        (scripts / "serve.sh").write_text(serve_script(self.deployment, tool="1.2.3").content)
        (scripts / "prepare.py").write_text(prepare_program().content)
        given = {"PATH": "/usr/bin:/bin", "HF_HOME": str(self.folder / "hf"), **environment}
        command = [BASH, str(scripts / "serve.sh"), *argv]
        return subprocess.run(command, env=given, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def image(deployment: Deployment, tmp_path: Path) -> Image:
    """An image whose family asks for no step. Its folder has a space and a quote in its name."""
    root = tmp_path / "it's an image"
    family = deployment.family.model_copy(
        update={
            "executable": f"{root}/bin/vllm",
            "python": f"{root}/bin/python3",
            "packages": f"{root}/dist-packages",
            "prepare": (),
        }
    )
    (root / "bin").mkdir(parents=True)
    (root / "bin/vllm").write_text(VLLM)
    (root / "bin/vllm").chmod(0o755)
    (root / "bin/python3").symlink_to(sys.executable)
    (root / "dist-packages/vllm").mkdir(parents=True)
    return Image(root, replace(deployment, family=family))


def test_the_shell_finds_no_fault_in_it(deployment: Deployment) -> None:
    script = serve_script(deployment, tool="1.2.3")
    subprocess.run([BASH, "-n"], input=script.content, text=True, check=True)
    assert script.mode == 0o755


def test_it_becomes_vllm_with_its_arguments_as_they_are(image: Image) -> None:
    argv = ["serve", "org/model", "--config", '{"a": "it\'s $HOME `id`"}', "", "a  b\n"]
    done = image.run(*argv)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["argv"] == argv


def test_vllm_takes_the_place_of_the_shell(image: Image) -> None:
    image.executable.write_text("#!/bin/bash\nkill -TERM $$\n")
    assert image.run("serve").returncode == -15  # a shell in between would have made it 143


def test_the_familys_paths_come_before_the_images_own(image: Image) -> None:
    environment = json.loads(image.run("serve", LD_LIBRARY_PATH="/usr/lib/x").stdout)["environment"]
    assert environment["PATH"] == "/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin"
    assert environment["LD_LIBRARY_PATH"] == "/usr/local/cuda/lib64:/usr/lib/x"
    assert environment["CUDA_HOME"] == "/usr/local/cuda"


def test_a_library_path_that_was_not_set_gets_no_empty_element(image: Image) -> None:
    environment = json.loads(image.run("serve").stdout)["environment"]
    assert environment["LD_LIBRARY_PATH"] == "/usr/local/cuda/lib64"  # an empty one is the current folder


@pytest.mark.parametrize(("gone", "code"), [("bin/vllm", 43), ("dist-packages/vllm", 42), ("bin/python3", 41)])
def test_an_image_of_another_family_is_named_and_not_started(image: Image, gone: str, code: int) -> None:
    path = image.folder / gone
    path.rename(path.with_name("elsewhere"))
    done = image.run("serve", VLLM_IMAGE_TAG="stage-c-build")
    assert (done.returncode, done.stdout) == (code, "")
    what, why, marks, where = done.stderr.splitlines()
    assert what == f"dspark serve: FATAL: {path} is not in the image ghcr.io/anemll/dspark-vllm-gx10:0.1.1"
    assert "rendered for the image family anemll" in why
    assert "VLLM_IMAGE_TAG=stage-c-build" in marks
    assert f"exit code {code}" in where


def test_without_arguments_nothing_is_started(image: Image) -> None:
    assert image.run().returncode == 40


def test_a_step_that_fails_ends_the_start_with_its_code(image: Image) -> None:
    family = image.deployment.family.model_copy(update={"prepare": ("kv_dispatch",)})
    image.deployment = replace(image.deployment, family=family)
    done = image.run("serve")
    assert done.returncode == 49
    assert "FATAL" in done.stdout
    assert "argv" not in done.stdout


def test_a_step_is_taken_before_vllm_starts(image: Image) -> None:
    family = image.deployment.family.model_copy(update={"prepare": ("kv_dispatch",)})
    image.deployment = replace(image.deployment, family=family)
    target = image.folder / "dist-packages/vllm/v1/attention/backends/mla/flashmla_sparse.py"
    target.parent.mkdir(parents=True)
    target.write_text('class A:\n  def forward(self):\n    use_fp8_cache = self.kv_cache_dtype == "fp8_ds_mla"\n')
    said, vllm = image.run("serve").stdout.splitlines()
    assert said == f"dspark prepare: kv_dispatch: corrected {target}"
    assert json.loads(vllm)["argv"] == ["serve"]


def keyed(image: Image, secret: str | None) -> Image:
    """The same with an API that asks for a key, and what its secrets file holds."""
    image.deployment = replace(image.deployment, keyed=True)
    if secret is not None:
        image.secrets = secret
    return image


def test_the_key_is_in_the_environment_of_the_rank_that_serves_the_api_alone(image: Image) -> None:
    key = "sk-$HOME`id`\"'=#\\"
    vllm = json.loads(keyed(image, f"VLLM_API_KEY={key}\n").run("serve", "m").stdout)
    assert vllm["environment"]["VLLM_API_KEY"] == key
    assert {"secret", "secrets"} & set(vllm["environment"]) == set()
    assert key not in "".join(vllm["argv"])
    worker = keyed(image, None).run("serve", "m", "--node-rank", "1", "--headless")
    assert "VLLM_API_KEY" not in json.loads(worker.stdout)["environment"]


@pytest.mark.parametrize("secret", [None, "", "VLLM_API_KEY=\n", "OTHER=sk-one\n"])
def test_without_its_key_the_api_is_not_opened(image: Image, secret: str | None) -> None:
    done = keyed(image, secret).run("serve")
    assert (done.returncode, done.stdout) == (50, "")
    assert "the API is not opened without" in done.stderr
    assert "sk-one" not in done.stderr


def test_a_0731_checkpoint_on_anemll_gets_every_step(deployment: Deployment) -> None:
    assert preparation(deployment) == Preparation(
        encoder="deepseek-ai/DeepSeek-V4-Flash-0731", revision=REVISION, effort=True, kv_dispatch=True
    )


def test_an_encoder_of_a_plain_folder_is_looked_for_below_the_cache_mount(deployment: Deployment) -> None:
    plain = Model(name="m", directory="org/model", served_name="m", families=("anemll",), ships_encoder=True)
    steps = preparation(replace(deployment, model=plain))
    assert (steps.encoder, steps.revision) == ("/cache/huggingface/org/model", None)


def test_a_model_without_encoder_keeps_the_images_effort_mapping(deployment: Deployment, model: Model) -> None:
    """The image's own encoder asserts that the effort is max or high: a low one would be an error a request."""
    earlier = replace(deployment, model=model.model_copy(update={"ships_encoder": False}))
    assert preparation(earlier) == Preparation(kv_dispatch=True)


def test_another_kv_dtype_needs_no_kernel_dispatch(deployment: Deployment) -> None:
    profile = deployment.profile.model_copy(update={"kv_cache_dtype": "fp8"})
    assert not preparation(replace(deployment, profile=profile)).kv_dispatch


def test_a_family_gets_only_the_steps_it_names(deployment: Deployment, family: Family) -> None:
    encoder_only = replace(deployment, family=family.model_copy(update={"prepare": ("encoder",)}))
    assert preparation(encoder_only) == Preparation(encoder="deepseek-ai/DeepSeek-V4-Flash-0731", revision=REVISION)


def test_every_exit_code_stands_in_the_docs() -> None:
    docs = (Path(__file__).parents[2] / "docs/preparation.md").read_text(encoding="utf-8")
    assert all(f"| {code} |" in docs for code in range(40, 52))
