"""One model on this node, looked at as its container will see it: which files there are, and what is wrong with each.

Request: `hf_home`, `hub_cache` or null (~ is the home here), `mount` (where the container has hf_home), `model`
(org/name) with `revision` or null, or `directory` (below hf_home), `encoder` (whether the model ships one).
The document has the shape of facts/snapshot.py. Nothing is changed, and of a shard no more than its header is read.
"""

from __future__ import annotations

import hashlib
import os
import stat

from dspark_deploy.remote.programs._cache_files import (
    File,
    judge_encoder,
    judge_shard,
    parse_object,
    stamp,
    user_name,
)
from dspark_deploy.remote.programs._cache_places import free_bytes, other_places, owned_by_others, unfinished
from dspark_deploy.remote.programs._cache_view import Leaves, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONFIG, INDEX, ENCODER = "config.json", "model.safetensors.index.json", "encoding/encoding_dsv4.py"
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")
SINGLE = "model.safetensors"  # a checkpoint of one file needs no index
LONGEST_REF = 256  # bytes; a good one has 40


class Snapshot:
    """The model's files while they are looked at."""

    def __init__(self, request: dict[str, Any]) -> None:
        mount = request["mount"]
        self.hf_home = os.path.expanduser(request["hf_home"])
        self.hub = os.path.expanduser(request["hub_cache"] or f"{self.hf_home}/hub")
        mounts = {mount: self.hf_home, **({f"{mount}/hub": self.hub} if request["hub_cache"] else {})}
        self._view = View(mounts)
        self._pinned: str | None = request["revision"]
        self._ships_encoder: bool = request["encoder"]
        self._model: str | None = request["model"]
        self._inside = f"{mount}/{request['directory'] or f'hub/{self._folder_name}'}"  # as the container names it
        self.root = self._view.on_node(self._inside) or self._inside
        self.folder: str | None = None  # the files' own folder, None where there is none
        self.files: dict[str, File] = {}
        self._told: dict[str, Any] = {"leaves": None, "unreadable": "", "ref": None, "revision": None, "revisions": []}
        self._config: dict[str, Any] = {}
        self._shards: list[str] = []
        self._total_bytes: int | None = None

    def read(self) -> None:
        """Look at everything. What can't be read is said in the document."""
        try:
            self.root = self._view.follow(self._inside)
            self._choose_folder()
            if self.folder is not None:
                self._list(self.folder, "")
        except Leaves as error:
            real = os.path.realpath(error.link) if os.path.exists(error.link) else None
            self._told["leaves"] = {"link": error.link, "target": error.target, "real": real}
        except (FileNotFoundError, NotADirectoryError):
            self.folder = None
        except OSError as error:
            self._told["unreadable"] = f"{error.filename or self.root}: {error.strerror}"
        else:
            if self.folder is not None:
                self._judge()
                self._see_whether_anything_moved()

    def document(self) -> dict[str, Any]:
        """What the caller gets."""
        transfers = locks = f"{self.root}/.cache/huggingface/download"
        owned: tuple[str, ...] = (self.root,)
        elsewhere: list[dict[str, str]] = []
        if self._model is not None:
            transfers, locks = f"{self.root}/blobs", f"{self.hub}/.locks/{self._folder_name}"
            owned = (self.root, locks)
            if self.folder is None:
                elsewhere = other_places(self.hf_home, self.hub, self._folder_name, self._pinned)
        return {
            **self._told,
            "user": user_name(os.geteuid()),
            "hub": self.hub,
            "root": self.root,
            "folder": self.folder,
            "files": [file.document() for _, file in sorted(self.files.items())],
            "shards": sorted(self._shards),
            "total_bytes": self._total_bytes,
            "architectures": self._config.get("architectures"),
            "draft_block_size": self._config.get("dspark_block_size"),
            "unfinished": unfinished(transfers, locks),
            "owned_by_others": owned_by_others(*owned),
            "elsewhere": elsewhere,
            "free_bytes": free_bytes(self.root),
        }

    def fingerprint(self) -> str:
        """Names, sizes and times of all files in one hash: it changes when any of them does."""
        known = hashlib.sha256()
        for name, file in sorted(self.files.items()):
            known.update(f"{name}\0{stamp(file.status) if file.status else None}\n".encode(errors="surrogateescape"))
        return known.hexdigest()

    @property
    def _folder_name(self) -> str:
        """A hub model's folder in the hub cache."""
        return f"models--{(self._model or '').replace('/', '--')}"

    # --- which folder, which files ------------------------------------------------------------------------------

    def _choose_folder(self) -> None:
        """The folder that is served: the plain directory itself, or one of the snapshots."""
        if self._model is None:
            self.folder = self.root if os.path.isdir(self.root) else None
            return
        ref = _read_ref(f"{self.root}/refs/main")
        snapshots = self._view.follow(f"{self._inside}/snapshots")
        revisions = sorted(name for name in os.listdir(snapshots) if not name.startswith("."))
        # What a faulty refs/main means to say is looked at too: it can be mended, and then counts.
        revision = self._pinned or (ref or "").strip() or None
        self._told.update(ref=ref, revisions=revisions, revision=revision)
        if revision in revisions:
            self._inside = f"{self._inside}/snapshots/{revision}"
            self.folder = self._view.follow(self._inside)

    def _list(self, folder: str, below: str) -> None:
        """Every file in the folder, as the container reaches it."""
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith("."):  # .cache of `hf download --local-dir`, .git
                    self._list(entry.path, f"{below}{entry.name}/")
            elif not os.path.isdir(entry.path):  # entry.is_dir() raises for a link to itself
                self._file(f"{below}{entry.name}")

    def _file(self, name: str, *, required: bool = False) -> File:
        """The file of that name, looked up once."""
        if name not in self.files:
            self.files[name] = self._look_up(name)
        self.files[name].required |= required
        return self.files[name]

    def _look_up(self, name: str) -> File:
        here = f"{self.folder}/{name}"
        file = File(name, here)
        try:
            file.path = self._view.follow(f"{self._inside}/{name}")
            file.status = os.stat(file.path)
            if not stat.S_ISREG(file.status.st_mode):
                file.blame("damaged", "is no file")
            elif not os.access(file.path, os.R_OK):
                file.blame("unreadable", f"belongs to {user_name(file.status.st_uid)}")
        except Leaves as error:
            file.path = os.path.realpath(here)
            there = os.path.exists(here)
            file.blame("leaves-mount" if there else "dangling", f"{error.link} -> {error.target}")
        except PermissionError as error:
            file.blame("unreadable", f"{error.filename or here}: {error.strerror}")
        except OSError:
            file.blame("dangling" if os.path.lexists(here) else "missing")
        return file

    # --- what is in them ----------------------------------------------------------------------------------------

    def _judge(self) -> None:
        self._config = self._object(CONFIG)
        for name in TOKENIZER:
            self._object(name)
        if self._ships_encoder or ENCODER in self.files:
            self._judge_encoder(self._file(ENCODER, required=True))
        for shard, tensors in self._weights().items():
            self._judge_shard(self._file(shard, required=True), tensors)

    def _judge_encoder(self, file: File) -> None:
        def look() -> None:
            file.doubt = judge_encoder(file.read_small())

        file.judge(look)

    def _judge_shard(self, file: File, tensors: list[str]) -> None:
        def look() -> None:
            file.doubt = judge_shard(file.path, tensors)

        file.judge(look)

    def _object(self, name: str) -> dict[str, Any]:
        """The JSON object in a file that has to be there; empty where it is not, which is then said of the file."""
        file, found = self._file(name, required=True), {}
        file.judge(lambda: found.update(parse_object(file.read_small())))
        return found

    def _weights(self) -> dict[str, list[str]]:
        """Shard -> the tensors that the index puts into it."""
        if INDEX not in self.files and SINGLE in self.files:
            self._shards = [SINGLE]
            return {SINGLE: []}
        index = self._object(INDEX)
        weight_map, metadata = index.get("weight_map"), index.get("metadata")
        if not isinstance(weight_map, dict) or not weight_map or not all(map(_names_a_file, weight_map.values())):
            self.files[INDEX].blame("damaged", "names no shard")
            return {}
        total = metadata.get("total_size") if isinstance(metadata, dict) else None
        self._total_bytes = total if isinstance(total, int) else None
        shards: dict[str, list[str]] = {}
        for tensor, shard in weight_map.items():
            shards.setdefault(shard, []).append(tensor)
        self._shards = list(shards)
        return shards

    def _see_whether_anything_moved(self) -> None:
        """Sizes and times once more: what changed meanwhile is still being written."""
        for file in self.files.values():
            if file.status is None:
                continue
            try:
                moved = stamp(os.stat(file.path)) != stamp(file.status)
            except OSError:
                moved = True
            if moved:
                file.problem, file.detail = "changed", "changed while the snapshot was read"


def _read_ref(path: str) -> str | None:
    """What a ref says, byte for byte; None where there is none."""
    try:
        with open(path, "rb") as file:
            return file.read(LONGEST_REF).decode(errors="backslashreplace")
    except OSError:
        return None


def _names_a_file(shard: object) -> bool:
    """Whether a value of weight_map is a name within the snapshot."""
    return isinstance(shard, str) and shard != "" and not shard.startswith("/") and ".." not in shard.split("/")
