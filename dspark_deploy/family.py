"""Image families: a runtime image's layout, the switches it knows and what it refuses. Data, one file a family."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from dspark_deploy.bundled import SearchPath
from dspark_deploy.patch import Patch, written_out
from dspark_deploy.strict import Flag, FlagValue, Name, Strict, Text, Variable, validate

AbsolutePath = Annotated[str, Field(pattern="^/", description="an absolute path")]


class ForbiddenValue(Strict):
    """An environment value that this runtime can't boot with."""

    name: Variable
    value: str | None = None  # None: forbidden whatever its value; "": forbidden empty
    reason: Text


class Family(Strict):
    """One runtime image's layout. Everything a container needs to know that is neither model nor workload."""

    name: Name
    title: Text
    image: Text  # a plain reference, name:tag; what compose gets
    digest: str | None = None  # sha256:…, compared where a node knows one
    repositories: tuple[str, ...]  # image names that belong to this family, without tag
    executable: AbsolutePath  # absolute path of vllm in the image
    python: AbsolutePath  # absolute path of its interpreter in the image
    packages: AbsolutePath  # the folder in the image that holds the vllm package
    path_prefix: tuple[AbsolutePath, ...] = ()  # put before the image's PATH
    library_path_prefix: tuple[AbsolutePath, ...] = ()  # put before the image's LD_LIBRARY_PATH
    exports: dict[Variable, Text] = Field(
        default_factory=dict
    )  # family paths that serve.sh exports, CUDA_HOME for example

    gpu: bool = True
    rdma: bool = True  # pass /dev/infiniband and pin the HCA
    ipc: Literal["host", "private"] = "host"
    shm_size: str = "64gb"
    cap_add: tuple[str, ...] = ()
    security_opt: tuple[str, ...] = ()
    stop_grace_s: PositiveInt = 10

    interface_variables: tuple[Variable, ...]  # each is set to the rank's fabric interface
    environment: dict[Variable, Text]  # this family's switches, equal on both ranks
    registered: tuple[Variable, ...]  # switches that this runtime reads: VLLM_* names, and its overlay's own
    baked_in: tuple[
        Variable, ...
    ] = ()  # unregistered VLLM_* names that the image itself sets: warnings without meaning

    omit_flags: dict[Flag, Text] = Field(default_factory=dict)  # flag -> why this runtime does not get it
    add_flags: dict[Flag, FlagValue] = Field(default_factory=dict)  # flag -> value; true is a bare flag
    forbidden_flags: dict[Flag, Text] = Field(default_factory=dict)  # flag -> what happens
    forbidden_values: tuple[ForbiddenValue, ...] = ()
    max_verify_rows: PositiveInt | None = None  # max_num_seqs x (draft tokens + 1) that it survives

    rendezvous_marker: Text  # a rank that printed this has reached the rendezvous wait
    prepare: tuple[Literal["encoder", "effort", "kv_dispatch"], ...] = ()
    patches: tuple[Patch, ...] = ()  # of the user's own
    hf_home_in_container: AbsolutePath = "/cache/huggingface"


def load_family(name: str, search: SearchPath) -> Family:
    """The family of that name, or in the file at that path. Raises ConfigError with file, line and key."""
    document = search.read("family", name)
    return validate(Family, written_out(document.data, document.path.parent), document.where)
