from __future__ import annotations

import pytest

from dspark_deploy.errors import ConfigError
from dspark_deploy.render.quoting import env_string, refuse_uncarriable, yaml_string


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ('{"k":5}', r'"{\"k\":5}"'),
        ("$HOME", '"$$HOME"'),
        ("a\\", r'"a\\"'),
        ("é😀", '"é😀"'),
        ("a\nb", r'"a\x0ab"'),
        ("\u2028\ufeff", r'"\u2028\ufeff"'),  # YAML takes the first for a line end, and drops the second
        ("\U000e0001", r'"\U000e0001"'),
        ("no", '"no"'),
        ("", '""'),
    ],
)
def test_a_yaml_string_escapes_what_yaml_or_compose_would_change(value: str, written: str) -> None:
    assert yaml_string(value) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a b#c", '"a b#c"'),
        ('say "x"', r'"say \"x\""'),
        ("$HOME", r'"\$HOME"'),
        ("a\\", r'"a\\"'),
        ("a\r\nb", r'"a\r\nb"'),
    ],
)
def test_an_env_value_is_one_line_in_double_quotes(value: str, written: str) -> None:
    assert env_string(value) == written


@pytest.mark.parametrize("value", ["a\0", "\ud83d"])
def test_what_no_process_can_hold_is_refused_with_its_name(value: str) -> None:
    with pytest.raises(ConfigError, match="the key: holds U"):
        refuse_uncarriable(value, what="the key")
