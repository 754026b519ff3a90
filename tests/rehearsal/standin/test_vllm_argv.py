"""What the stand-in's command line takes and refuses, against what vLLM 0.32.0's own parser was seen to say."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from dspark_deploy.rehearsal.standin.vllm_argv import non_default, parse
from dspark_deploy.rehearsal.standin.vllm_family import ANEMLL, STAGE_C, Family
from dspark_deploy.rehearsal.standin.vllm_log import Death

VERDICTS = Path(__file__).parents[2] / "data" / "vllm-parser-verdicts-0.32.0.tsv"
ROWS = [line.split("\t") for line in VERDICTS.read_text().splitlines()[1:]]


def split(argv: str) -> list[str]:
    """The recorded lines are joined by spaces, their JSON unquoted."""
    return [
        word.replace("\0", " ") for word in argv.removeprefix("FULL: ").replace("{not json", "{not\0json").split(" ")
    ]


@pytest.mark.parametrize(("argv", "verdict"), [row[:2] for row in ROWS if not row[0].startswith("FULL with")])
def test_every_recorded_verdict_is_given_again(argv: str, verdict: str) -> None:
    words = ["--nnodes", "2", "--tensor-parallel-size", "2", *split(argv)]
    if verdict == "ACCEPTED":
        parse(words, ANEMLL)
    else:
        with pytest.raises(Death):
            parse(words, ANEMLL)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("--no-such-flag", 2, "vllm serve: error: unrecognized arguments: --no-such-flag"),
        ("--speculative-config '{not json'", 2, "argument --speculative-config/-sc: Value {not json cannot be"),
        ("""--reasoning-config '{"x": 1}'""", 2, "Unexpected keyword argument"),
        ("--kv-cache-dtype nvfp3", 2, "invalid choice: 'nvfp3'"),
        ("--port x", 2, "argument --port"),
        ("--enable-auto-tool-choice", 1, "--enable-auto-tool-choice requires --tool-call-parser"),
        ("--nnodes 3 --tensor-parallel-size 2", 1, "--nnodes"),
        ("--nnodes 2 --tensor-parallel-size 2 --node-rank 2", 1, "--node-rank"),
        ("--max-num-partial-prefills 2", 1, "Concurrent Partial Prefill is not supported"),
    ],
)
def test_what_is_refused_names_its_reason(words: str, code: int, message: str) -> None:
    with pytest.raises(Death) as death:
        parse(["m", *shlex.split(words)], ANEMLL)
    assert death.value.code == code
    assert message in "\n".join(death.value.lines)


@pytest.mark.parametrize(
    "words", ["--moe-backend flashinfer_b12x", "--long-prefill-token-threshold 1024", "--enable-prompt-tokens-details"]
)
@pytest.mark.parametrize("family", [ANEMLL, STAGE_C])
def test_flags_that_are_newer_than_stage_c(family: Family, words: str) -> None:
    if family is ANEMLL:
        parse(["m", *words.split()], family)
        return
    with pytest.raises(Death) as death:
        parse(["m", *words.split()], family)
    assert f"unrecognized arguments: {words}" in death.value.lines[-1]


def test_the_last_of_several_api_keys_wins() -> None:
    assert parse(["m", "--api-key", "one", "two", "--api-key", "three"], ANEMLL).api_key == ["three"]


def test_underscores_and_human_numbers_are_taken() -> None:
    assert parse(["m", "--max_model_len", "1M"], ANEMLL).max_model_len == 1024**2
    assert parse(["m", "--max-model-len=200k"], ANEMLL).max_model_len == 200_000


def test_the_log_shows_what_differs_and_hides_keys() -> None:
    arguments = parse(["m", "--api-key", "secret", "--max-num-seqs", "6", "--port", "8000"], ANEMLL)
    shown = non_default(arguments, ANEMLL)
    assert shown == {"model_tag": "m", "api_key": "***", "max_num_seqs": 6, "model": "m"}
    assert "secret" not in json.dumps(shown)
