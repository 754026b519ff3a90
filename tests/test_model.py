"""The models' files, and what a model can't be."""

from __future__ import annotations

from pathlib import Path

import pytest

from dspark_deploy.bundled import SearchPath, data_folder
from dspark_deploy.errors import ConfigError
from dspark_deploy.model import Model, load_model

BUNDLED = SearchPath((data_folder("profiles"),))


def test_the_0731_checkpoint_is_pinned() -> None:
    assert load_model("deepseek-v4-flash-0731", BUNDLED) == Model(
        name="deepseek-v4-flash-0731",
        id="deepseek-ai/DeepSeek-V4-Flash-0731",
        revision="9e165c30e2704aec5d9d593cce3eebd58bbef1cb",
        served_name="deepseek-v4-flash-0731",
        draft_block_size=5,
        families=("anemll",),
        ships_encoder=True,
    )


def test_the_preview_comes_from_the_hub_or_a_directory() -> None:
    hub, plain = (load_model(f"deepseek-v4-flash-dspark{tail}", BUNDLED) for tail in ("", "-directory"))
    assert (hub.id, hub.revision, hub.directory) == ("deepseek-ai/DeepSeek-V4-Flash-DSpark", None, None)
    assert (plain.id, plain.directory) == (None, "fraserprice/DeepSeek-V4-Flash-DSpark")
    assert hub.served_name == plain.served_name == "deepseek-v4-flash-dspark"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("", "either on the hub or in a directory"),
        ("id: a/b\ndirectory: c\n", "either on the hub or in a directory"),
        ("directory: c\nrevision: 9e165c30e2704aec5d9d593cce3eebd58bbef1cb\n", "a plain directory has no revision"),
        ("id: a/b\nrevision: main\n", 'line 5: `revision` is "main"'),
        ("id: ab\n", 'line 4: `id` is "ab"'),
        ("directory: /a\n", 'line 4: `directory` is "/a"'),
        ("directory: a/../b\n", 'line 4: `directory` is "a/../b"'),
    ],
)
def test_a_model_that_lies_nowhere_is_refused(tmp_path: Path, lines: str, message: str) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "m.yaml").write_text(f"name: m\nserved_name: m\nfamilies: []\n{lines}")
    with pytest.raises(ConfigError) as caught:
        load_model("m", SearchPath((tmp_path,)))
    assert message in caught.value.message
