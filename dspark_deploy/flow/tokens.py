"""What counts tokens: the model's own tokenizer where its file is at hand, else an estimate. It says which."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Final

from dspark_deploy.capacity.textsize import estimate_tokens
from dspark_deploy.model import Model
from dspark_deploy.strict import from_home, read_text

ESTIMATE: Final = "estimate"
FILE: Final = "tokenizer.json"


@dataclass(frozen=True, slots=True)
class Counter:
    """Counts the tokens of a text, or of a piece of one."""

    count: Callable[[bytes], float]
    said: str  # what it is, for the report
    plain: bool = False  # a plain function, which other processes can be given
    warnings: tuple[str, ...] = ()


OpenCounter = Callable[[Model], AbstractContextManager[Counter]]
"""What counts may depend on the model that is served."""


@contextmanager
def open_counter(
    model: Model, *, named: str | None, chars_per_token: float, environment: Mapping[str, str], home: Path
) -> Iterator[Counter]:
    """The counter that is named: `estimate`, or the path of a tokenizer.json or of a folder that holds one.

    None: the model's tokenizer where it lies in this machine's own cache and its library is installed, else the
    estimate. Raises ConfigError.
    """
    if named == ESTIMATE:
        yield _estimate(chars_per_token)
    elif named is None:
        yield _at_hand(_cached(model, environment, home), chars_per_token)
    else:
        path = from_home(Path(named))
        path = path / FILE if path.is_dir() else path
        text = read_text(path, absent=f"name the model's {FILE}, or `{ESTIMATE}`, `served`, `head` or `worker`")
        yield counter_from(text, f"the tokenizer in {path}")


def counter_from(text: str, said: str) -> Counter:
    """A counter from the text of a tokenizer.json. Raises ConfigError, also where its library is missing."""
    from dspark_deploy.flow.tokenizer import read_tokenizer  # noqa: PLC0415  its library is an optional extra

    return Counter(read_tokenizer(text, said), said)


def repository_folder(model: Model) -> str:
    """As the hub cache names a model's folder."""
    return f"models--{str(model.id).replace('/', '--')}"


def in_snapshot(repository: PurePath, revision: str) -> PurePath:
    """Where the tokenizer of a revision lies."""
    return repository / "snapshots" / revision / FILE


def _estimate(chars_per_token: float, *warnings: str) -> Counter:
    said = f"an estimate: a CJK character one token, else {chars_per_token:g} characters one"
    return Counter(partial(estimate_tokens, chars_per_token=chars_per_token), said, plain=True, warnings=warnings)


def _at_hand(path: Path | None, chars_per_token: float) -> Counter:
    if path is None:
        return _estimate(chars_per_token)
    if find_spec("tokenizers") is None:
        needs = "counting with it needs: pip install 'dspark-deploy[tokenizers]'"
        return _estimate(chars_per_token, f"{path} is the model's own tokenizer; {needs}")
    return counter_from(read_text(path, absent="it was there a moment ago"), f"the model's own tokenizer, {path}")


def _cached(model: Model, environment: Mapping[str, str], home: Path) -> Path | None:
    """The tokenizer in this machine's own cache; None where it isn't there."""
    hf_home = Path(environment.get("HF_HOME") or home / ".cache" / "huggingface")
    if model.directory is not None:
        path = hf_home / model.directory / FILE
        return path if path.is_file() else None
    repository = Path(environment.get("HF_HUB_CACHE") or hf_home / "hub") / repository_folder(model)
    main = repository / "refs" / "main"
    revision = model.revision or (main.read_text(encoding="ascii").strip() if main.is_file() else "")
    path = Path(in_snapshot(repository, revision))
    return path if revision and path.is_file() else None
