"""Plain data against a model: nothing is bent to fit, and every mistake is told in the file's terms."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, PositiveInt, model_validator

from dspark_deploy.errors import ConfigError, ExitCode
from dspark_deploy.strict import KeyPath, Mistake, Name, Strict, Variable, dotted, validate


class Inner(Strict):
    port: Annotated[int, Field(ge=1, le=65535)] = 8888


class Outer(Strict):
    name: Name = "x"
    seqs: PositiveInt = 1
    share: Annotated[float, Field(gt=0, le=1)] = 0.5
    on: bool = True
    address: IPv4Address | Literal["auto"] = "auto"
    size: PositiveInt | Literal["auto", "none"] = "auto"
    path: Path | None = None
    words: tuple[str, ...] = ()
    inner: Inner = Inner()
    variables: dict[Variable, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _not_ten(self) -> Outer:
        if self.seqs == 10:
            raise Mistake("ten is too round", remedy="take nine")
        return self


def where(key: KeyPath) -> str:
    return f"file line {len(key)}"


def mistake(**data: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        validate(Outer, data, where)
    assert caught.value.code is ExitCode.USAGE
    return caught.value


def test_what_json_can_say_becomes_the_type() -> None:
    data = {"address": "10.0.0.1", "path": "/a", "words": ["a", "b"], "share": 1, "variables": {"A": "1"}}
    assert validate(Outer, data, where) == Outer(
        address=IPv4Address("10.0.0.1"), path=Path("/a"), words=("a", "b"), share=1.0, variables={"A": "1"}
    )


@pytest.mark.parametrize(
    ("data", "message", "remedy"),
    [
        ({"seqs": "6"}, '`seqs` is "6"', "give a whole number above 0"),
        ({"seqs": True}, "`seqs` is true", "give a whole number above 0"),
        ({"seqs": 1.5}, "`seqs` is 1.5", "give a whole number above 0"),
        ({"seqs": 0}, "`seqs` is 0", "give a whole number above 0"),
        ({"share": "0,80"}, '`share` is "0,80"', "give a number above 0, up to 1"),
        ({"share": 1.01}, "`share` is 1.01", "give a number above 0, up to 1"),
        ({"on": 1}, "`on` is 1", "give true or false"),
        ({"on": "no"}, '`on` is "no"', "give true or false"),
        ({"address": "fd00::1"}, '`address` is "fd00::1"', "give an IPv4 address or `auto`"),
        ({"size": "big"}, '`size` is "big"', "give a whole number above 0 or `auto` or `none`"),
        ({"path": 3}, "`path` is 3", "give a path or null"),
        ({"words": "a"}, '`words` is "a"', "give a list, each text (in quotes where it looks like a number)"),
        ({"inner": []}, "`inner` is []", "give a mapping (`key: value` lines)"),
        ({"variables": {"A": 1}}, "`variables.A` is 1", "give text (in quotes where it looks like a number)"),
        ({"variables": {"A-B": "1"}}, "`variables.A-B` is no name that can stand here", "give a variable's name"),
    ],
)
def test_a_wrong_value_names_the_accepted_form(data: dict[str, Any], message: str, remedy: str) -> None:
    error = mistake(**data)
    assert (error.message.split(": ", 1)[1], error.remedy) == (message, remedy)


def test_a_value_in_a_mapping_is_placed_where_it_stands() -> None:
    error = mistake(inner={"port": 0})
    assert error.message == "file line 2: `inner.port` is 0"
    assert error.remedy == "give a whole number from 1 to 65535"


def test_an_unknown_key_names_the_nearest_known_one() -> None:
    error = mistake(inner={"prot": 1})
    assert (error.message, error.remedy) == ("file line 2: `inner.prot` is not a known key", "did you mean `port`?")


def test_an_unknown_key_that_is_like_none_lists_what_is_known() -> None:
    assert mistake(inner={"zzz": 1}).remedy == "known here: port"


def test_a_missing_key_says_what_it_would_hold() -> None:
    class Needy(Strict):
        host: str

    with pytest.raises(ConfigError) as caught:
        validate(Needy, {}, where)
    assert caught.value.message == "file line 1: `host` is missing"
    assert caught.value.remedy.startswith("add `host`: text")


def test_a_validators_reason_and_remedy_reach_the_reader() -> None:
    error = mistake(seqs=10)
    assert (error.message, error.remedy) == ("file line 0: ten is too round", "take nine")


def test_all_mistakes_are_told_at_once_and_slips_of_the_pen_first() -> None:
    error = mistake(seqs="6", nmae="x", share=2)
    assert error.message == "file line 1: `nmae` is not a known key"
    assert error.why.splitlines() == [
        'file line 1: `seqs` is "6" -> give a whole number above 0',
        "file line 1: `share` is 2 -> give a number above 0, up to 1",
    ]


def test_a_long_value_is_cut_in_the_message() -> None:
    assert len(mistake(name="X" * 500).message) < 100


def test_dotted_keys_are_used_throughout() -> None:
    assert dotted(("inner", "port")) in mistake(inner={"port": 0}).message


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ({"path": "/a\udcff"}, "path"),
        ({"words": ["a", "\udcff"]}, "words[1]"),
        ({"variables": {"A": "\udcff"}}, "variables.A"),
        ({"variables": {"\udcff": "a"}}, "variables.\udcff"),
    ],
)
def test_bytes_that_are_no_text_are_named_by_their_key(data: dict[str, Any], key: str) -> None:
    error = mistake(**data)
    assert f"`{key}` is not UTF-8" in error.message
    assert error.remedy == "give it as UTF-8"
