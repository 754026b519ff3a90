"""Images for the bed's two dockerds, written as a `docker load` archive without docker or a registry.

The base layer is this machine's own python3 with its standard library, bash and coreutils; the families differ in
their own layer, laid out as their published images are. Architecture is this machine's.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dspark_deploy.rehearsal.standin.package_tree import files

from .base_image import base_tree, interpreter, programs
from .layers import Layer, Tree, add_bytes
from .packages import cache_folder

ANEMLL = "ghcr.io/anemll/dspark-vllm-gx10:0.1.1"
STAGE_C = "vllm-dspark-runtime:dspark-nvfp4-stage-c"
STAGE_C_TAGS = (
    STAGE_C,
    "vllm-dspark-runtime:mia-raf-pr1-nvfp4-keys-c",
    "vllm-dspark-runtime:clean",
)
EXITS_AT_ONCE = "bed/exits-at-once:1"

SOURCES = b"".join(Path(__file__).with_name(f"{name}.py").read_bytes() for name in ("images", "base_image", "layers"))
STANDIN = Path(__file__).parents[2] / "dspark_deploy" / "rehearsal" / "standin"
STANDIN_IN_IMAGE = "opt/standin"
ENTRYPOINT = "opt/stage-c/entrypoint.sh"


def archive() -> Path:
    """The `docker load` archive with all images of the bed, built when there is none for today's content."""
    path = cache_folder() / archive_name()
    if not path.exists():
        for old in cache_folder().glob("images-*.tar"):
            old.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
            _write_archive(Path(folder)).replace(path)
    return path


def archive_name() -> str:
    """What that archive is called for today's content."""
    return f"images-{_fingerprint()[:16]}.tar"


def _write_archive(folder: Path) -> Path:
    images: dict[tuple[str, ...], tuple[Tree, Mapping[str, object]]] = {
        (ANEMLL, kept_tag(ANEMLL)): (_family_tree("anemll"), _anemll_config()),
        (*STAGE_C_TAGS, *map(kept_tag, STAGE_C_TAGS)): (_family_tree("stage-c"), _stage_c_config()),
        (EXITS_AT_ONCE, kept_tag(EXITS_AT_ONCE)): (_broken_tree(), {"Cmd": ["/bin/bash"]}),
    }
    return write_archive(folder, images)


def write_archive(folder: Path, images: Mapping[tuple[str, ...], tuple[Tree, Mapping[str, object]]]) -> Path:
    """Write a `docker load` archive into `folder`. `images`: tags -> their own layer and configuration."""
    base = base_tree().write(folder / "base.tar")
    manifest = []
    target = folder / "images.tar"
    with tarfile.open(target, "w") as tar:
        tar.add(base.path, arcname=f"{base.digest}.tar")
        for number, (tags, (tree, config)) in enumerate(images.items()):
            layer = tree.write(folder / f"own-{number}.tar")
            tar.add(layer.path, arcname=f"{layer.digest}.tar")
            document = _image_document(config, (base, layer))
            name = f"{hashlib.sha256(document).hexdigest()}.json"
            add_bytes(tar, name, document)
            layers = [f"{base.digest}.tar", f"{layer.digest}.tar"]
            manifest.append({"Config": name, "RepoTags": list(tags), "Layers": layers})
        add_bytes(tar, "manifest.json", json.dumps(manifest).encode())
    return target


def kept_tag(reference: str) -> str:
    """A second tag of the same image, so that its content survives a `docker rmi` of the first."""
    return "bed-kept/" + reference.replace("/", "_").replace(":", ":_")


def _image_document(config: Mapping[str, object], layers: tuple[Layer, ...]) -> bytes:
    document = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine()),
        "os": "linux",
        "created": "2026-07-14T00:00:00Z",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.digest}" for layer in layers]},
        "history": [{"created": "2026-07-14T00:00:00Z", "created_by": "bed"} for _ in layers],
    }
    return json.dumps(document, sort_keys=True).encode()


def _anemll_config() -> dict[str, object]:
    """Its own entrypoint is the engine, as in the public image: a compose file has to clear it."""
    return {
        "Entrypoint": ["/usr/local/bin/vllm", "serve"],
        "WorkingDir": "/workspace",
        "Env": [
            "PATH=/usr/local/cuda/bin:/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LD_LIBRARY_PATH=/usr/local/cuda/lib64",
            "VLLM_BUILD_URL=",
            "VLLM_BUILD_COMMIT=752a3a504",
            "VLLM_BUILD_PIPELINE=gx10",
            "VLLM_IMAGE_TAG=0.1.1",
        ],
        "Labels": {
            "org.opencontainers.image.version": "0.1.1",
            "org.opencontainers.image.revision": "47503f8",
        },
    }


def _stage_c_config() -> dict[str, object]:
    return {
        "Entrypoint": [f"/{ENTRYPOINT}"],
        "Cmd": ["/bin/bash"],
        "WorkingDir": "/workspace",
        "Env": ["PATH=/opt/env/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
    }


def _family_tree(family: str) -> Tree:
    python, packages, executable = {
        "anemll": ("usr/bin/python3", "usr/local/lib/python3.12/dist-packages", "usr/local/bin/vllm"),
        "stage-c": ("opt/env/bin/python", "opt/env/lib/python3.12/site-packages", "opt/env/bin/vllm"),
    }[family]
    tree = Tree()
    if family == "stage-c":
        tree.links[python] = "/usr/bin/python3"
        tree.links[f"{python}3"] = "/usr/bin/python3"
        tree.text(ENTRYPOINT, '#!/bin/bash\nexec "$@"\n', 0o755)
    tree.links[executable] = f"/{STANDIN_IN_IMAGE}/vllm.py"
    for path in sorted(STANDIN.iterdir()):
        if path.name == "__init__.py" or path.match("vllm*.py") or path.suffix == ".tsv":
            mode = 0o755 if path.name == "vllm.py" else 0o644
            tree.text(f"{STANDIN_IN_IMAGE}/{path.name}", path.read_bytes(), mode)
    for name, content in _compiled_standin().items():
        tree.text(f"{STANDIN_IN_IMAGE}/__pycache__/{name}", content)
    tree.text(f"{STANDIN_IN_IMAGE}/family", family + "\n")
    for path_in_package, text in package_files(family).items():
        tree.text(f"{packages}/{path_in_package}", text)
    # This machine's interpreter may be another version than the 3.12 of the published layout: point it there.
    tree.text(f"{interpreter().site}/bed.pth", f"/{packages}\n")
    tree.text("workspace/.keep", "")
    return tree


def package_files(family: str) -> dict[str, str]:
    """The stand-in's vllm package tree for a family: path below the packages folder -> text."""
    return files(family)


def _broken_tree() -> Tree:
    """Whatever is asked of it through bash ends at once with 3."""
    tree = Tree()
    tree.text("usr/bin/bash", "#!/bin/dash\necho bed: this image exits at once >&2\nexit 3\n", 0o755)
    return tree


def _compiled_standin() -> dict[str, bytes]:
    """The stand-in's byte code for this machine's interpreter: half of its start would go into compiling."""
    with tempfile.TemporaryDirectory() as folder:
        for path in (STANDIN / "__init__.py", *STANDIN.glob("vllm_*.py")):
            shutil.copy(path, folder)
        argv = ["/usr/bin/python3", "-m", "compileall", "-q", "-d", f"/{STANDIN_IN_IMAGE}"]
        subprocess.run([*argv, "--invalidation-mode", "unchecked-hash", folder], check=True, capture_output=True)
        return {path.name: path.read_bytes() for path in (Path(folder) / "__pycache__").glob("*.pyc")}


def _fingerprint() -> str:
    """Changes with the stand-in, with this file, and with the interpreter and programs of the machine."""
    digest = hashlib.sha256(SOURCES)
    for path in sorted([*STANDIN.glob("*.py"), *STANDIN.glob("*.tsv")]):
        digest.update(path.name.encode() + path.read_bytes())
    for program in ["/usr/bin/python3", *programs()]:
        status = Path(program).stat()
        digest.update(f"{program} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()
