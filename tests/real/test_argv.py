"""Every command line that the tool renders, read by this build's own parser, in the image itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from dspark_deploy.bundled import SearchPath, data_folder
from tests.bed.host import Host

from . import image
from .pair import PROFILES, Pair

# In one process, since the import alone takes ten seconds and more.
PARSE = """
import contextlib, io, json, sys
from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.utils.argparse_utils import FlexibleArgumentParser

parser = make_arg_parser(FlexibleArgumentParser(prog="vllm serve"))
answers = {}
for name, words in json.load(sys.stdin).items():
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            parsed = parser.parse_args(words)
            validate_parsed_serve_args(parsed)
        answers[name] = ["accepted", parsed.model_tag, parsed.max_model_len, parsed.node_rank, parsed.headless]
    except (SystemExit, ValueError, TypeError) as error:
        answers[name] = ["refused", said.getvalue()[-2000:] or str(error)]
print("answers:", json.dumps(answers))
"""
BUNDLED = SearchPath((data_folder("profiles"),))
OF_BOTH: dict[str, Any] = {"head__hf_home": "/srv/hf", "worker__hf_home": "/srv/hf"}  # complete: no node is asked
MISTAKES = {"--no-such-flag": "unrecognized arguments", "--max-model-len=much": "invalid"}


@pytest.fixture(name="rendered", scope="module")
def _rendered(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Sequence[str]]:
    """Profile, family and node -> the words after `vllm serve`, as rendered."""
    found = {}
    named = {name: str(path) for name, path in BUNDLED.files("profile").items()}
    for profile, path in {**named, "tiny": str(PROFILES / "tiny.yaml")}.items():
        folder = tmp_path_factory.mktemp(profile)
        pair.dspark("render", "--dir", str(folder), profile=path, **OF_BOTH).check()
        for node in ("head", "worker"):
            found[f"{profile} {node}"] = _command(folder / node / "compose.yaml")
    return found


def _command(compose: Path) -> list[str]:
    """The rendered argv, without `serve`."""
    document = YAML(typ="safe").load(compose.read_text())
    serve, *words = (word.replace("$$", "$") for word in document["services"]["vllm"]["command"])
    assert serve == "serve"
    return words


@pytest.fixture(name="answers", scope="module")
def _answers(pair: Pair, rendered: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[object]]:
    asked = dict(rendered)
    for mistake in MISTAKES:
        asked[mistake] = [*rendered["agent-1m head"], mistake]
    return parse(pair.bed.head, asked)


def parse(host: Host, asked: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[object]]:
    """What the real parser says of each command line."""
    words = ["run", "--rm", "-i", "--network", "none", "--entrypoint", "/usr/bin/python3", image.TAG, "-c", PARSE]
    ran = host.exec(["docker", *words], stdin=json.dumps(asked), timeout=240).check()
    answers: Mapping[str, Sequence[object]] = json.loads(ran.stdout.rpartition("answers:")[2])
    return answers


def test_every_profile_and_rank_is_accepted(
    rendered: Mapping[str, Sequence[str]], answers: Mapping[str, Sequence[object]]
) -> None:
    assert len(rendered) == 2 * (len(BUNDLED.files("profile")) + 1)
    refused = {name: answers[name] for name in rendered if answers[name][0] != "accepted"}
    assert refused == {}


def test_each_rank_is_read_as_itself(
    rendered: Mapping[str, Sequence[str]], answers: Mapping[str, Sequence[object]]
) -> None:
    for name, words in rendered.items():
        _, model, max_model_len, rank, headless = answers[name]
        is_worker = name.endswith(" worker")
        assert (model, rank, headless) == (words[0], int(is_worker), is_worker)
        assert max_model_len == int(words[words.index("--max-model-len") + 1])


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_parser_refuses_what_is_wrong(mistake: str, answers: Mapping[str, Sequence[object]]) -> None:
    verdict, said = answers[mistake]
    assert verdict == "refused"
    assert MISTAKES[mistake] in str(said)
