"""What counts tokens, and that it says which."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from dspark_deploy.bundled import SearchPath, data_folder
from dspark_deploy.errors import ConfigError
from dspark_deploy.flow.tokens import Counter, open_counter
from dspark_deploy.model import Model, load_model

SEARCH = SearchPath((data_folder("profiles"),))
PINNED = load_model("deepseek-v4-flash-0731", SEARCH)
UNPINNED = load_model("deepseek-v4-flash-dspark", SEARCH)
DIRECTORY = load_model("deepseek-v4-flash-dspark-directory", SEARCH)
TEXT = b"one two three, four"  # 5 words to the tokenizer below, 4.75 tokens to the estimate


def tokenizer_json() -> str:
    """A tokenizer for which every word and every mark is one token."""
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    return tokenizer.to_str()


def opened(
    home: Path, named: str | None = None, model: Model = PINNED, chars: float = 4.0, **environment: str
) -> Counter:
    with open_counter(model, named=named, chars_per_token=chars, environment=environment, home=home) as counter:
        return counter


def put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(tokenizer_json())
    return path


def test_without_a_tokenizer_at_hand_it_is_an_estimate_and_says_so(tmp_path: Path) -> None:
    counter = opened(tmp_path)
    assert (counter.count(TEXT), counter.plain, counter.warnings) == (4.75, True, ())
    assert counter.said == "an estimate: a CJK character one token, else 4 characters one"


def test_the_estimate_may_be_asked_for_with_other_characters_a_token(tmp_path: Path) -> None:
    put(tmp_path / ".cache/huggingface" / snapshot(PINNED))
    counter = opened(tmp_path, "estimate", chars=2.0)
    assert counter.count(TEXT) == 9.5
    assert counter.said.endswith("else 2 characters one")


def snapshot(model: Model, revision: str | None = None) -> str:
    folder = str(model.id).replace("/", "--")
    return f"hub/models--{folder}/snapshots/{revision or model.revision}/tokenizer.json"


def test_the_models_own_is_taken_from_this_machines_cache(tmp_path: Path) -> None:
    path = put(tmp_path / ".cache/huggingface" / snapshot(PINNED))
    counter = opened(tmp_path)
    assert (counter.count(TEXT), counter.plain, counter.said) == (5, False, f"the model's own tokenizer, {path}")


def test_a_cache_elsewhere_is_found_by_its_variables(tmp_path: Path) -> None:
    put(tmp_path / "home" / snapshot(PINNED))
    assert opened(tmp_path, HF_HOME=str(tmp_path / "home")).count(TEXT) == 5
    assert opened(tmp_path, HF_HUB_CACHE=str(tmp_path / "home" / "hub")).count(TEXT) == 5
    assert opened(tmp_path, HF_HUB_CACHE=str(tmp_path / "other")).plain


def test_a_model_without_revision_is_the_one_that_main_names(tmp_path: Path) -> None:
    hub = tmp_path / ".cache/huggingface"
    put(hub / snapshot(UNPINNED, "abc"))
    assert opened(tmp_path, model=UNPINNED).plain  # no refs/main: which one is meant is not known
    main = hub / "hub/models--deepseek-ai--DeepSeek-V4-Flash-DSpark/refs/main"
    main.parent.mkdir()
    main.write_text("abc\n")
    assert opened(tmp_path, model=UNPINNED).count(TEXT) == 5


def test_a_model_in_a_directory_is_found_there(tmp_path: Path) -> None:
    put(tmp_path / ".cache/huggingface" / str(DIRECTORY.directory) / "tokenizer.json")
    assert opened(tmp_path, model=DIRECTORY).count(TEXT) == 5
    assert opened(tmp_path / "nobody", model=DIRECTORY).plain


def test_a_file_or_its_folder_may_be_named(tmp_path: Path) -> None:
    path = put(tmp_path / "mine" / "tokenizer.json")
    assert opened(tmp_path, str(path)).said == f"the tokenizer in {path}"
    assert opened(tmp_path, str(path.parent)).count(TEXT) == 5


def test_a_long_text_is_counted_in_parts(tmp_path: Path) -> None:
    path = put(tmp_path / "tokenizer.json")
    assert opened(tmp_path, str(path)).count(b"word " * 40_000) == 40_000
    assert opened(tmp_path, str(path)).count(b"x" * 200_000) == 4  # no gap to cut at: a part is a word


def test_a_file_that_is_not_there_or_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        opened(tmp_path, str(tmp_path / "none.json"))
    (tmp_path / "other.json").write_text(json.dumps({"a": 1}))
    with pytest.raises(ConfigError, match="not a tokenizer"):
        opened(tmp_path, str(tmp_path / "other.json"))


def test_without_its_library_a_tokenizer_at_hand_is_a_warning_and_a_named_one_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / ".cache/huggingface" / snapshot(PINNED))
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.setattr("dspark_deploy.flow.tokens.find_spec", lambda _: None)
    monkeypatch.delitem(sys.modules, "dspark_deploy.flow.tokenizer", raising=False)
    counter = opened(tmp_path)
    assert counter.plain
    assert counter.warnings == (
        f"{path} is the model's own tokenizer; counting with it needs: pip install 'dspark-deploy[tokenizers]'",
    )
    with pytest.raises(ConfigError, match="needs the package tokenizers"):
        opened(tmp_path, str(path))
    monkeypatch.undo()
    importlib.import_module("dspark_deploy.flow.tokenizer")
