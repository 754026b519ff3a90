"""What prepare.py does to an image's packages before vllm starts."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from .conftest import ENCODER, MODEL, PROGRAM, REVISION, SPARSE_ATTENTION, WRAPPER, Container

ENCODER_STEP = ("--encoder", MODEL, "--revision", REVISION)
ALL_STEPS = (*ENCODER_STEP, "--effort", "--kv-dispatch")


def load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def efforts(wrapper: Path, *levels: object) -> list[object]:
    """What the wrapper's chat template makes of each effort: its own chain, executed."""
    tree = ast.parse(wrapper.read_bytes())
    template = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "apply_chat_template")
    chain = next(n for n in ast.walk(template) if isinstance(n, ast.If) and "reasoning_effort, str" in ast.unparse(n))
    code = compile(ast.Module([chain], []), "chain", "exec")
    made = []
    for level in levels:
        names = {"reasoning_effort": level, "thinking_enabled": False}
        exec(code, names)  # noqa: S102  the only way to know what a chain does without what it is built from
        made.append(names["reasoning_effort"])
    return made


def uses_fp8_cache(sparse_attention: Path, dtype: str) -> bool:
    module = load(sparse_attention, "sparse_attention")
    module.Implementation.kv_cache_dtype = dtype
    module.Implementation.slow = lambda *_: False
    module.Implementation.fast = lambda *_: True
    return bool(module.Implementation().forward_mqa(None, None, None))


def test_every_step_says_what_it_did_and_a_second_run_finds_it_done(container: Container) -> None:
    first = container.prepare(*ALL_STEPS)
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.splitlines() == [
        f"dspark prepare: encoder: installed {container.snapshot_encoder} as {container.encoder}",
        f"dspark prepare: effort: corrected {container.wrapper}",
        f"dspark prepare: kv_dispatch: corrected {container.sparse_attention}",
    ]
    files = [container.encoder, container.wrapper, container.sparse_attention]
    written = [(path.read_bytes(), path.stat().st_mtime_ns) for path in files]

    second = container.prepare(*ALL_STEPS)
    assert second.returncode == 0
    assert [line.split(": ")[2] for line in second.stdout.splitlines()] == ["already right"] * 3
    assert [(path.read_bytes(), path.stat().st_mtime_ns) for path in files] == written


def test_no_step_is_taken_that_was_not_asked_for(container: Container) -> None:
    done = container.prepare()
    assert (done.returncode, done.stdout) == (0, "")
    assert container.wrapper.read_text() == WRAPPER
    assert container.sparse_attention.read_text() == SPARSE_ATTENTION
    assert container.encoder.read_text() == "def encode_messages(messages): ...\n"


def test_what_is_corrected_is_replaced_in_one_move_and_keeps_its_mode(container: Container) -> None:
    container.wrapper.chmod(0o640)
    before = container.wrapper.stat().st_ino
    container.prepare("--effort")
    after = container.wrapper.stat()
    assert after.st_ino != before
    assert after.st_mode & 0o777 == 0o640
    assert [path.name for path in container.wrapper.parent.iterdir() if path.suffix != ".py"] == []


class TestEncoder:
    def test_arguments_that_are_a_dict_are_encoded_like_the_same_arguments_as_text(self, container: Container) -> None:
        container.prepare(*ENCODER_STEP)
        encode = load(container.encoder, "encoder").encode_arguments_to_dsml
        assert encode({"arguments": {"city": "Ulm"}}) == encode({"arguments": '{"city": "Ulm"}'}) == "city=Ulm"
        assert encode({"arguments": "not json"}) == "arguments=not json"

    def test_the_rest_of_the_encoder_is_the_snapshots_byte_for_byte(self, container: Container) -> None:
        container.prepare(*ENCODER_STEP)
        changed = 'json.loads(tool_call["arguments"])'
        own, installed = ENCODER.split(changed), container.encoder.read_text()
        assert installed.startswith(own[0])
        assert installed.endswith(own[1])

    def test_an_encoder_that_keeps_dicts_already_is_installed_as_it_is(self, container: Container) -> None:
        kept = ENCODER.replace(
            "    try:\n        arguments = json.loads",
            '    arguments = tool_call["arguments"]\n    if isinstance(tool_call["arguments"], str):\n'
            "        arguments = json.loads",
        ).replace('    except Exception as err:\n        arguments = {"arguments": tool_call["arguments"]}\n', "")
        container.snapshot_encoder.write_text(kept)
        assert container.prepare(*ENCODER_STEP).returncode == 0
        assert container.encoder.read_text() == kept

    def test_without_a_revision_refs_main_names_the_snapshot(self, container: Container) -> None:
        (container.model / "refs/main").write_text(REVISION + "\n")  # some tools end it in a newline
        done = container.prepare("--encoder", MODEL)
        assert str(container.snapshot_encoder) in done.stdout

    def test_a_hub_cache_elsewhere_is_looked_at_instead(self, container: Container, tmp_path: Path) -> None:
        (container.cache / "hub").rename(tmp_path / "elsewhere")
        container.environment["HF_HUB_CACHE"] = str(tmp_path / "elsewhere")
        assert container.prepare(*ENCODER_STEP).returncode == 0

    def test_a_plain_folder_ships_its_encoder_too(self, container: Container, tmp_path: Path) -> None:
        folder = tmp_path / "plain"
        (folder / "encoding").mkdir(parents=True)
        (folder / "encoding" / "encoding_dsv4.py").write_text(ENCODER)
        done = container.prepare("--encoder", str(folder))
        assert f"installed {folder}/encoding/encoding_dsv4.py" in done.stdout

    @pytest.mark.parametrize(
        ("content", "wrong"),
        [
            ("", "has no encode_messages, so it is no encoder"),
            ("<html>404</html>", "not Python"),
            ("def encode_messages(", "not Python"),
            ("\0", "not Python"),
        ],
    )
    def test_a_file_that_is_no_encoder_ends_the_start(self, container: Container, content: str, wrong: str) -> None:
        container.snapshot_encoder.write_text(content)
        refused(container, ENCODER_STEP, 45, str(container.snapshot_encoder), wrong)

    def test_a_link_to_nothing_ends_the_start(self, container: Container) -> None:
        (container.model / "blobs/5f2c").unlink()
        refused(container, ENCODER_STEP, 45, str(container.snapshot_encoder), "a link whose blob is missing")

    def test_a_snapshot_without_encoder_ends_the_start(self, container: Container) -> None:
        container.snapshot_encoder.unlink()
        refused(container, ENCODER_STEP, 45, str(container.snapshot_encoder), "No such file")

    @pytest.mark.parametrize("content", ["main", "", REVISION[:12]])
    def test_a_refs_main_that_names_no_commit_ends_the_start(self, container: Container, content: str) -> None:
        (container.model / "refs/main").write_text(content)
        refused(container, ("--encoder", MODEL), 45, str(container.model / "refs/main"), "no revision of 40 digits")

    def test_a_missing_refs_main_ends_the_start(self, container: Container) -> None:
        (container.model / "refs/main").unlink()
        refused(container, ("--encoder", MODEL), 45, str(container.model / "refs/main"), "No such file")

    @pytest.mark.parametrize(
        "content", ["def encode_messages(): ...", "def encode_messages(): ...\ndef encode_arguments_to_dsml(call): ..."]
    )
    def test_an_encoder_that_reads_arguments_elsewhere_ends_the_start(self, container: Container, content: str) -> None:
        container.snapshot_encoder.write_text(content)
        refused(container, ENCODER_STEP, 46, str(container.snapshot_encoder), "encode_arguments_to_dsml")

    def test_an_image_without_a_file_to_replace_ends_the_start(self, container: Container) -> None:
        container.encoder.unlink()
        refused(container, ENCODER_STEP, 49, str(container.encoder), "No such file")


class TestEffort:
    def test_low_high_and_max_are_told_apart(self, container: Container) -> None:
        assert efforts(container.wrapper, "low", "high", "max") == ["high", "high", "max"]
        container.prepare("--effort")
        levels = ("max", "xhigh", "high", "low", "minimal", "medium", "none", None)
        assert efforts(container.wrapper, *levels) == ["max", "max", "high", "low", "low", "low", None, None]

    def test_every_other_line_stays_as_it_was(self, container: Container) -> None:
        container.prepare("--effort")
        lines = container.wrapper.read_text().splitlines()
        added = ['            elif reasoning_effort == "high":', '                reasoning_effort = "high"']
        at = lines.index(added[0])
        assert lines[at : at + 2] == added
        assert lines[:at] + lines[at + 2 :] == WRAPPER.replace('effort = "high"', 'effort = "low"').splitlines()

    def test_a_mapping_of_another_form_is_right_when_it_keeps_the_levels_apart(self, container: Container) -> None:
        low = 'elif reasoning_effort in ("low", "minimal", "medium"):\n                reasoning_effort = "low"\n'
        mainline = WRAPPER.replace("else:\n", f"{low}            else:\n")  # the form of vLLM 0.32
        container.wrapper.write_text(mainline)
        assert "effort: already right" in container.prepare("--effort").stdout
        assert container.wrapper.read_text() == mainline

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("apply_chat_template", "encode"),  # no such function
            ("reasoning_effort", "effort"),  # no such chain
            ('("max", "xhigh")', "MAXIMAL"),  # a name that is not the module's own
            ('reasoning_effort in ("max", "xhigh")', "is_maximal(reasoning_effort)"),
            ('reasoning_effort in ("max", "xhigh")', 'reasoning_effort != "high"'),
            ('("max", "xhigh")', '("max",)'),  # the correction would make xhigh low
            ('reasoning_effort = "high"', "reasoning_effort = DEFAULT"),
            ('            else:\n                reasoning_effort = "high"\n', ""),
            ('"none"', '"none'),  # not Python
        ],
    )
    def test_a_mapping_that_is_not_understood_ends_the_start_and_changes_nothing(
        self, container: Container, old: str, new: str
    ) -> None:
        other = WRAPPER.replace(old, new)
        assert other != WRAPPER
        container.wrapper.write_text(other)
        refused(container, ("--effort",), 47, str(container.wrapper))
        assert container.wrapper.read_text() == other

    def test_two_mappings_end_the_start(self, container: Container) -> None:
        container.wrapper.write_text(WRAPPER + WRAPPER.replace("def wrap", "def wrap_again"))
        refused(container, ("--effort",), 47, str(container.wrapper), "2 mappings")


class TestKvDispatch:
    def test_both_names_of_the_layout_take_the_same_kernel(self, container: Container) -> None:
        assert not uses_fp8_cache(container.sparse_attention, "nvfp4_ds_mla")
        container.prepare("--kv-dispatch")
        dtypes = ("fp8_ds_mla", "nvfp4_ds_mla", "bfloat16")
        assert [uses_fp8_cache(container.sparse_attention, dtype) for dtype in dtypes] == [True, True, False]

    @pytest.mark.parametrize(
        "right",
        [
            'self.kv_cache_dtype in ("nvfp4_ds_mla", "fp8_ds_mla")',
            "self.kv_cache_dtype in FORMATS",  # vLLM 0.32: a constant of the module
        ],
    )
    def test_a_choice_that_holds_for_both_is_right(self, container: Container, right: str) -> None:
        formats = 'FORMATS: frozenset[str] = frozenset({"fp8_ds_mla", "nvfp4_ds_mla"})\n\n'
        other = formats + SPARSE_ATTENTION.replace('self.kv_cache_dtype == "fp8_ds_mla"', right)
        container.sparse_attention.write_text(other)
        assert "kv_dispatch: already right" in container.prepare("--kv-dispatch").stdout
        assert container.sparse_attention.read_text() == other

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("forward_mqa", "run"),
            ("use_fp8_cache", "fast"),
            ('self.kv_cache_dtype == "fp8_ds_mla"', "is_quantized(self.kv_cache_dtype)"),
            ('self.kv_cache_dtype == "fp8_ds_mla"', "self.kv_cache_dtype in FORMATS"),
            ("==", "!="),
        ],
    )
    def test_a_choice_that_is_not_understood_ends_the_start(self, container: Container, old: str, new: str) -> None:
        container.sparse_attention.write_text(SPARSE_ATTENTION.replace(old, new))
        refused(container, ("--kv-dispatch",), 48, str(container.sparse_attention))


def test_cache_folders_are_made_before_a_compiler_asks_for_them(container: Container) -> None:
    container.environment["VLLM_CACHE_ROOT"] = str(container.cache / "a/vllm-cache")
    assert container.prepare().returncode == 0
    assert (container.cache / "a/vllm-cache").is_dir()


def test_a_cache_folder_that_cannot_be_made_ends_the_start(container: Container) -> None:
    container.environment["VLLM_CACHE_ROOT"] = f"{container.snapshot_encoder}/x"
    refused(container, (), 44, "VLLM_CACHE_ROOT", "Not a directory")


def test_a_file_that_cannot_be_replaced_ends_the_start_and_stays_whole(container: Container) -> None:
    (container.wrapper.parent / "deepseek_v4.py.dspark").mkdir()  # root may write anywhere, but not over a folder
    refused(container, ("--effort",), 49, str(container.wrapper), "can't be replaced")
    assert container.wrapper.read_text() == WRAPPER


def test_a_wrong_call_is_not_taken_for_a_wrong_flag_of_vllm(container: Container) -> None:
    done = container.prepare("--unheard-of")
    assert done.returncode == 40
    assert "FATAL: unrecognized arguments: --unheard-of" in done.stdout


def refused(container: Container, steps: tuple[str, ...], code: int, *words: str) -> None:
    """It ended with `code`, and the log says why and for which image."""
    done = container.prepare(*steps)
    assert (done.returncode, done.stderr) == (code, "")
    why, where, how = done.stdout.splitlines()[-3:]
    assert all(line.startswith("dspark prepare: FATAL: ") for line in (why, where, how))
    assert all(word in why for word in words), why
    assert "ghcr.io/x:1" in where
    assert f"exit code {code}" in how


def test_it_is_python_of_3_10() -> None:
    ast.parse(PROGRAM.read_text(), feature_version=(3, 10))
    imported = set(re.findall(r"^(?:import|from) (\w+)", PROGRAM.read_text(), re.MULTILINE))
    assert imported <= sys.stdlib_module_names


@pytest.fixture
def real_vllm(tmp_path: Path) -> Container:
    """A copy of a real vllm package's files."""
    given = os.environ.get("DSPARK_REAL_VLLM")
    if not given:
        pytest.skip("DSPARK_REAL_VLLM names no folder with a real vllm package (site-packages, or an unpacked wheel)")
    packages = tmp_path / "real"
    for name in ("tokenizers/deepseek_v4.py", "v1/attention/backends/mla/flashmla_sparse.py"):
        (packages / "vllm" / name).parent.mkdir(parents=True)
        shutil.copy(Path(given, "vllm", name), packages / "vllm" / name)
    return Container(packages, tmp_path)


def test_the_effort_mapping_of_a_real_vllm_keeps_the_levels_apart(real_vllm: Container) -> None:
    first, second = real_vllm.prepare("--effort"), real_vllm.prepare("--effort")
    assert (first.returncode, second.returncode) == (0, 0)
    assert "already right" in second.stdout
    levels = ("max", "high", "low", "minimal", "medium")
    assert efforts(real_vllm.wrapper, *levels) == ["max", "high", "low", "low", "low"]


def test_the_kernel_choice_of_a_real_vllm_holds_for_nvfp4(real_vllm: Container) -> None:
    first, second = real_vllm.prepare("--kv-dispatch"), real_vllm.prepare("--kv-dispatch")
    assert (first.returncode, second.returncode) == (0, 0)
    assert "already right" in second.stdout
    ast.parse(real_vllm.sparse_attention.read_bytes())
