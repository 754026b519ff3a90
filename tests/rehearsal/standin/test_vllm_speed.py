"""The published times that a stand-in follows, and how it finds its own among them."""

from __future__ import annotations

import pytest

from dspark_deploy.rehearsal.spec import TIME_SCALE
from dspark_deploy.rehearsal.standin.vllm_speed import BOOT_S, boot_s, nearest


@pytest.mark.parametrize(
    ("prompt", "concurrency", "ttft_s", "decode_tps"),
    [
        (1, 1, 0.63, 75.4),
        (280, 2, 0.81, 58.3),
        (2072, 6, 6.06, 34.7),
        (5000, 4, 14.50, 37.4),
        (900_000, 1, 78.75, 65.2),
        (900_000, 6, 111.17, 30.9),
    ],
)
def test_a_request_is_as_fast_as_the_nearest_published_one(
    prompt: int, concurrency: int, ttft_s: float, decode_tps: float
) -> None:
    row = nearest("anemll", prompt, concurrency)
    assert (row.ttft_s, row.decode_tps) == (ttft_s, decode_tps)


def test_stage_c_decodes_at_its_own_rates() -> None:
    assert [nearest("stage-c", 256, streams).decode_tps for streams in (1, 3, 7, 16)] == [57.6, 35.2, 31.6, 19.7]


def test_a_boot_takes_about_five_seconds_at_the_default_scale() -> None:
    assert 4.5 < sum(boot_s(phase, 0) for phase in BOOT_S) / TIME_SCALE < 5.5
    assert sum(boot_s(phase, 1) for phase in BOOT_S) < sum(boot_s(phase, 0) for phase in BOOT_S)
