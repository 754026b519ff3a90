"""A container's root folder and the paths in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspark_deploy.rehearsal.images import Image
from dspark_deploy.rehearsal.root import CannotStart, Mount, Root


@pytest.fixture(name="image")
def _image(tmp_path: Path) -> Image:
    (tmp_path / "tree/usr/local/bin").mkdir(parents=True)
    (tmp_path / "tree/usr/local/bin/vllm").write_text("")
    return Image("sha256:1", "anemll", tmp_path / "tree", {}, ())


@pytest.mark.parametrize(
    ("told", "moved"),
    [
        ("/usr/local/bin/vllm", "ROOT/usr/local/bin/vllm"),
        ("/usr", "ROOT/usr"),
        ("A=/usr/x:/usr/y", "A=ROOT/usr/x:ROOT/usr/y"),
        ("'/cache/huggingface'", "'ROOT/cache/huggingface'"),
        ("/bin/bash", "/bin/bash"),
        ("/dev/null", "/dev/null"),
        ("/user/bin", "/user/bin"),
        ("a/usr/bin", "a/usr/bin"),
        ("https://host/usr/bin", "https://host/usr/bin"),
        ("./usr", "./usr"),
    ],
)
def test_paths_of_the_container_are_moved_below_its_root_and_back(
    tmp_path: Path, image: Image, told: str, moved: str
) -> None:
    root = Root(tmp_path / "root", image, [Mount(tmp_path, "/cache/huggingface")])
    assert root.inside(told) == moved.replace("ROOT", str(tmp_path / "root"))
    assert root.outside(root.inside(told)) == told


def test_what_a_container_writes_stays_in_its_own_copy(tmp_path: Path, image: Image) -> None:
    root = Root(tmp_path / "root", image, [])
    (root.folder / "usr/local/bin/vllm").write_text("changed")
    assert (image.tree / "usr/local/bin/vllm").read_text() == ""


def test_of_a_mounted_script_a_copy_is_run_that_names_paths_as_they_are_here(tmp_path: Path, image: Image) -> None:
    script, other = tmp_path / "serve.sh", tmp_path / "prepare.py"
    script.write_text("exec /usr/local/bin/vllm\n")
    other.write_text("pass\n")
    mounts = [Mount(script, "/opt/dspark/serve.sh"), Mount(other, "/opt/dspark/prepare.py")]
    root = Root(tmp_path / "root", image, mounts)
    run = Path(root.runnable("/opt/dspark/serve.sh"))
    assert run.read_text() == f"exec {root.folder}/usr/local/bin/vllm\n"
    assert (run.parent / "prepare.py").read_text() == "pass\n"
    assert root.outside(f"{run}: {root.folder}/usr") == "/opt/dspark/serve.sh: /usr"
    assert (root.folder / "opt/dspark/serve.sh").read_text() == script.read_text() == "exec /usr/local/bin/vllm\n"
    assert root.runnable("/usr/local/bin/vllm") == f"{root.folder}/usr/local/bin/vllm"


def test_a_file_may_be_mounted_over_one_of_the_images_in_the_containers_own_copy(tmp_path: Path, image: Image) -> None:
    (tmp_path / "own").write_text("own")
    root = Root(tmp_path / "root", image, [Mount(tmp_path / "own", "/usr/local/bin/vllm")])
    assert (root.folder / "usr/local/bin/vllm").read_text() == "own"
    assert (image.tree / "usr/local/bin/vllm").read_text() == ""


def test_a_mount_below_a_mount_is_refused(tmp_path: Path, image: Image) -> None:
    (tmp_path / "hf/hub").mkdir(parents=True)
    mounts = [Mount(tmp_path / "hf", "/cache/hf"), Mount(tmp_path / "hf", "/cache/hf/hub")]
    with pytest.raises(CannotStart, match="/cache/hf/hub"):
        Root(tmp_path / "root", image, mounts)
