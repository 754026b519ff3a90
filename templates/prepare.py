"""Make an image's vllm package fit the model it is about to serve.

serve.sh runs this in the container before vllm, on the image's own Python (3.10 and newer) with the standard
library alone. A container that starts again finds its own work, which counts as done. What has to be corrected
is found by syntax tree and judged by what the code does, not by its text. Where it can't be found the start
ends: a server that runs unprepared answers wrongly and says nothing about it. docs/preparation.md tells more.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

# What the container exits with before vllm runs. serve.sh says 40 to 43 itself.
CALLED_WRONGLY = 40
PYTHON_MISSING = 41
PACKAGES_MISSING = 42
EXECUTABLE_MISSING = 43
CACHE_FOLDER = 44  # a cache folder can't be made
SNAPSHOT_ENCODER = 45  # the snapshot's encoder is missing, unreadable or no encoder
ENCODER_UNKNOWN = 46  # where the encoder reads tool-call arguments was not found
EFFORT_UNKNOWN = 47  # the reasoning-effort mapping was not found
KV_DISPATCH_UNKNOWN = 48  # the choice of the attention kernel was not found
FILE_UNUSABLE = 49  # a file of the package can't be read, or can't be replaced

ENCODER = "vllm/tokenizers/deepseek_v4_encoding.py"
WRAPPER = "vllm/tokenizers/deepseek_v4.py"
SPARSE_ATTENTION = "vllm/v1/attention/backends/mla/flashmla_sparse.py"
CACHE_FOLDERS = ("VLLM_CACHE_ROOT", "FLASHINFER_WORKSPACE_BASE", "TILELANG_CACHE_DIR", "TRITON_CACHE_DIR")


class CannotPrepare(Exception):
    """The container must not start. The text names the file and what is wrong with it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Unreadable(Exception):
    """The syntax tree does not tell what this code does."""


def main(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Take the steps that the command line asks for and say a line about each. Returns the exit code."""
    asked = _parser().parse_args(argv)
    packages = Path(asked.packages)
    try:
        make_cache_folders(environment)
        if asked.encoder:
            own = snapshot_encoder(asked.encoder, asked.revision, environment)
            say("encoder", install_encoder(own, packages / ENCODER))
        if asked.effort:
            say("effort", correct(packages / WRAPPER, effort_edits, EFFORT_UNKNOWN))
        if asked.kv_dispatch:
            say("kv_dispatch", correct(packages / SPARSE_ATTENTION, kv_dispatch_edits, KV_DISPATCH_UNKNOWN))
    except CannotPrepare as failure:
        say("FATAL", str(failure))
        say("FATAL", f"image {asked.image}, image family {asked.family}: vllm is not started")
        say("FATAL", f"exit code {failure.code}: see docs/preparation.md")
        return failure.code
    return 0


def say(step: str, what: str) -> None:
    """One line for the container's log."""
    print(f"dspark prepare: {step}: {what}", flush=True)  # noqa: T201  a container's output is its log


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        say("FATAL", message)
        sys.exit(CALLED_WRONGLY)  # not argparse's 2, which is vllm's word for a flag that it does not know


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(allow_abbrev=False)
    parser.add_argument("--family", required=True, help="image family that the release was rendered for")
    parser.add_argument("--image", required=True, help="its reference, for messages")
    parser.add_argument("--packages", required=True, help="the folder that holds the vllm package")
    parser.add_argument("--encoder", metavar="MODEL", help="install the encoder of org/name, or of a folder")
    parser.add_argument("--revision", help="the model's snapshot; without it refs/main decides")
    parser.add_argument("--effort", action="store_true", help="keep low, high and max apart")
    parser.add_argument("--kv-dispatch", action="store_true", help="give nvfp4_ds_mla the kernel of fp8_ds_mla")
    return parser


def make_cache_folders(environment: Mapping[str, str]) -> None:
    """Make the folders that compilers cache into: one clear line now, not one traceback a compiler later."""
    for name in CACHE_FOLDERS:
        try:
            if folder := environment.get(name):
                Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotPrepare(CACHE_FOLDER, f"{name}: {error}") from error


# The encoder: a 0731 checkpoint ships its own, which knows more than the image's copy.


def snapshot_encoder(model: str, revision: str | None, environment: Mapping[str, str]) -> Path:
    """Where the model's own encoder lies: in its plain folder, or in its snapshot in the hub cache."""
    if model.startswith("/"):
        return Path(model, "encoding", "encoding_dsv4.py")
    hub = environment.get("HF_HUB_CACHE") or environment.get("HF_HOME", "") + "/hub"
    folder = Path(hub, "models--" + model.replace("/", "--"))
    main_ref = folder / "refs" / "main"
    try:
        revision = revision or main_ref.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise CannotPrepare(SNAPSHOT_ENCODER, f"{main_ref}: {error}") from error
    if not re.fullmatch("[0-9a-f]{40}", revision):
        raise CannotPrepare(SNAPSHOT_ENCODER, f"{main_ref}: {revision!r} is no revision of 40 digits")
    return folder / "snapshots" / revision / "encoding" / "encoding_dsv4.py"


def install_encoder(own: Path, installed: Path) -> str:
    """Put the snapshot's encoder, corrected, in place of the image's. Returns what to say."""
    try:
        content = own.read_bytes()
        source = Source(content)
    except OSError as error:
        reason = "a link whose blob is missing" if own.is_symlink() and not own.exists() else error.strerror
        raise CannotPrepare(SNAPSHOT_ENCODER, f"{own}: {reason}") from error
    except (SyntaxError, ValueError) as error:
        raise CannotPrepare(SNAPSHOT_ENCODER, f"{own}: not Python: {error}") from error
    if not any(function.name == "encode_messages" for function in source.functions()):
        # an empty file is Python too
        raise CannotPrepare(SNAPSHOT_ENCODER, f"{own}: has no encode_messages, so it is no encoder")
    wanted = corrected(own, content, argument_edits, ENCODER_UNKNOWN)
    if read(installed) == wanted:
        return f"already right: {installed} is {own}"
    replace(installed, wanted)
    return f"installed {own} as {installed}"


def argument_edits(source: Source) -> list[Edit]:
    """Keep tool-call arguments that are a dict already: json.loads fails on one, and it got wrapped whole.

    Only the call changes: `json.loads(x)` becomes `(x if isinstance(x, dict) else json.loads(x))`.
    """
    function = next((f for f in source.functions() if f.name == "encode_arguments_to_dsml"), None)
    if function is None:
        raise Unreadable("has no encode_arguments_to_dsml")
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and node.args]
    loads = [call for call in calls if ast.unparse(call.func) == "json.loads"]
    asked_for_type = {ast.unparse(call.args[0]) for call in calls if ast.unparse(call.func) == "isinstance"}
    if not loads:
        raise Unreadable("encode_arguments_to_dsml does not call json.loads")
    edits = []
    for call in loads:
        if ast.unparse(call.args[0]) not in asked_for_type:
            argument, whole = source.text(call.args[0]), source.text(call)
            kept = b"(%b if isinstance(%b, dict) else %b)" % (argument, argument, whole)
            edits.append((*source.span(call), kept))
    return edits


# The reasoning effort: vLLM 0.25 knows two levels and makes `low` high; the 0731 encoder knows a third.

JUDGED = {"max": "max", "high": "high", "low": "low", "minimal": "low", "medium": "low"}
# xhigh is not judged: mainline 0.32 makes it high and still keeps the three levels apart.


def effort_edits(source: Source) -> list[Edit]:
    """Before the chain's `else` put a branch that keeps high, and let the `else` say low."""
    chain = effort_chain(source)
    if all(outcome(source, chain, level) == wanted for level, wanted in JUDGED.items()):
        return []
    last = list(branches(chain))[-1]
    match last.orelse:
        case [ast.Assign(value=ast.Constant() as value)] if outcome(source, chain, "xhigh") == "max":
            gap = source.span(last.body[-1])[1], source.span(last.orelse[0])[0]
        case _:
            raise Unreadable("maps reasoning_effort in a way that can't be corrected here")
    keyword = re.compile(rb"^([ \t]*)else[ \t]*:", re.MULTILINE).search(source.content, *gap)
    if keyword is None:
        raise Unreadable("maps reasoning_effort in a way that can't be corrected here")
    keep_high = b'%belif reasoning_effort == "high":\n%b    reasoning_effort = "high"\n' % (
        keyword[1],
        keyword[1],
    )
    return [(keyword.start(), keyword.start(), keep_high), (*source.span(value), b'"low"')]


def effort_chain(source: Source) -> ast.If:
    """The one if/elif chain of apply_chat_template that turns a reasoning effort into another one."""
    wrappers = [function for function in source.functions() if function.name == "apply_chat_template"]
    conditions = [node for wrapper in wrappers for node in ast.walk(wrapper) if isinstance(node, ast.If)]
    elifs = [branch for condition in conditions for branch in list(branches(condition))[1:]]
    chains = [node for node in conditions if node not in elifs and assigned(node, "reasoning_effort")]
    if len(chains) != 1:
        raise Unreadable(f"{len(chains)} mappings of reasoning_effort in apply_chat_template, not one")
    return chains[0]


def branches(chain: ast.If) -> Iterator[ast.If]:
    """The chain's `if` and each `elif` of it."""
    yield chain
    while len(chain.orelse) == 1 and isinstance(chain.orelse[0], ast.If):
        chain = chain.orelse[0]
        yield chain


def outcome(source: Source, chain: ast.If, level: str) -> object:
    """What the chain makes of the effort `level`."""
    taken: Sequence[ast.stmt] = []
    for branch in branches(chain):
        if holds(source, branch.test, level):
            taken = branch.body
            break
        taken = branch.orelse
    values = [value for statement in taken for value in assigned(statement, "reasoning_effort")]
    if not values:
        return level
    if not isinstance(values[-1], ast.Constant):
        raise Unreadable(f"line {values[-1].lineno}: `{ast.unparse(values[-1])}` is no plain value")
    return values[-1].value


def holds(source: Source, test: ast.expr, level: str) -> bool:
    """Whether a branch is taken when reasoning_effort is the string `level`."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return not holds(source, inner, level)
        case ast.Call() if ast.unparse(test) == "isinstance(reasoning_effort, str)":
            return True
        case ast.Compare(ast.Name("reasoning_effort"), [ast.Eq() | ast.Is() | ast.In()], [other]):
            return level in source.constants(other)
    raise Unreadable(f"line {test.lineno}: can't tell when `{ast.unparse(test)}` holds")


# The attention kernel: vLLM 0.25 looks for fp8_ds_mla only, and nvfp4_ds_mla, of the same layout, got a slow one.


def kv_dispatch_edits(source: Source) -> list[Edit]:
    """Let `use_fp8_cache` hold for nvfp4_ds_mla too, wherever a forward method sets it."""
    forwards = [function for function in source.functions() if function.name.startswith("forward")]
    values = [value for function in forwards for value in assigned(function, "use_fp8_cache")]
    if not values:
        raise Unreadable("no forward method sets use_fp8_cache")
    edits = []
    for value in values:
        match value:
            case ast.Compare(ast.Attribute(attr="kv_cache_dtype") as dtype, [ast.Eq() | ast.In()], [other]):
                named = source.constants(other)
            case _:
                named = set()
        if "fp8_ds_mla" not in named:
            raise Unreadable(f"line {value.lineno}: can't tell when `{ast.unparse(value)}` holds")
        if "nvfp4_ds_mla" not in named:
            edits.append((source.span(dtype)[1], source.span(value)[1], b' in ("fp8_ds_mla", "nvfp4_ds_mla")'))
    return edits


# A file of the image: read, corrected and put back.

Edit = tuple[int, int, bytes]  # first byte, the byte after the last, what stands there instead


class Source:
    """Python code: its bytes, its syntax tree, and where a node of the tree lies in the bytes."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.tree = ast.parse(content)
        self._lines = [0, *(end.end() for end in re.finditer(b"\n", content))]

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """The node's first byte, and the byte after its last one."""
        if node.end_lineno is None or node.end_col_offset is None:
            raise Unreadable("a syntax tree without positions")
        start = self._lines[node.lineno - 1] + node.col_offset
        return start, self._lines[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.expr) -> bytes:
        """The node as it is written."""
        return self.content[slice(*self.span(node))]

    def functions(self) -> Iterator[ast.FunctionDef]:
        """Every function, those in classes and in other functions too."""
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef))

    def constants(self, node: ast.expr) -> set[object]:
        """The plain values in an expression, or in the module's own constant that it names."""
        values = [value for statement in self.tree.body for value in assigned(statement, ast.unparse(node))]
        return {leaf.value for leaf in ast.walk(values[-1] if values else node) if isinstance(leaf, ast.Constant)}


def assigned(code: ast.AST, name: str) -> list[ast.expr]:
    """The values that a piece of code gives to a variable, in the order of the syntax tree."""
    values = []
    for node in ast.walk(code):
        match node:
            case ast.Assign([ast.Name(id)], value) | ast.AnnAssign(ast.Name(id), value=ast.expr() as value):
                values += [value] if id == name else []
    return values


def correct(path: Path, find: Callable[[Source], list[Edit]], code: int) -> str:
    """Correct a file in place, unless it is right already. Returns what to say."""
    content = read(path)
    wanted = corrected(path, content, find, code)
    if wanted == content:
        return f"already right: {path}"
    replace(path, wanted)
    return f"corrected {path}"


def corrected(path: Path, content: bytes, find: Callable[[Source], list[Edit]], code: int) -> bytes:
    """`content` as it has to be, every other byte as it was. Raises CannotPrepare(code), naming `path`."""
    try:
        result = content
        for start, end, text in sorted(find(Source(content)), reverse=True):
            result = result[:start] + text + result[end:]
        left = find(Source(result))
    except (Unreadable, SyntaxError, ValueError) as error:
        raise CannotPrepare(code, f"{path}: {error}") from error
    if left:
        raise CannotPrepare(code, f"{path}: the correction did not make it right")
    return result


def read(path: Path) -> bytes:
    """A file of the package."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CannotPrepare(FILE_UNUSABLE, f"{path}: {error.strerror}") from error


def replace(path: Path, content: bytes) -> None:
    """Put `content` in the file's place in one move: a container that is killed here leaves no half of it."""
    part = path.with_name(path.name + ".dspark")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.chmod(path.stat().st_mode & 0o777)
        part.replace(path)
    except OSError as error:
        raise CannotPrepare(FILE_UNUSABLE, f"{path}: can't be replaced: {error.strerror}") from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
