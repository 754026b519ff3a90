"""The numbers that a profile's shape makes: graph sizes on the runtime's grid, verify rows, the token budget."""

from __future__ import annotations

import pytest

from dspark_deploy.plan.capture import capture_size, round_down, round_up, scheduled_token_budget
from dspark_deploy.profile import Profile

# sequences, draft tokens; the flag as upstream computes it, what the runtime keeps of it, the grid value that holds it;
# the budget that 8192 batched tokens leave.
SHAPES = [
    (6, 3, 24, 24, 24, 8180),
    (6, 5, 36, 32, 40, 8168),
    (6, 6, 42, 40, 48, 8162),
    (6, 7, 48, 48, 48, 8156),
    (4, 3, 16, 16, 16, 8184),
    (4, 5, 24, 24, 24, 8176),
    (4, 6, 28, 24, 32, 8172),
    (2, 5, 12, 8, 16, 8184),
    (1, 5, 6, 4, 8, 8188),
    (8, 5, 48, 48, 48, 8160),
    (10, 5, 60, 56, 64, 8152),
    (12, 5, 72, 72, 72, 8144),
    (16, 5, 96, 96, 96, 8128),
    (16, 3, 64, 64, 64, 8160),
]


def profile(seqs: int = 6, drafts: int = 5, batched: int = 8192, **changes: object) -> Profile:
    return Profile.model_validate(
        {
            "name": "p",
            "title": "P",
            "family": "anemll",
            "model": "m",
            "max_model_len": 1000,
            "max_num_seqs": seqs,
            "max_num_batched_tokens": batched,
            "gpu_memory_utilization": 0.5,
            "draft_tokens": drafts,
            **changes,
        }
    )


@pytest.mark.parametrize(("seqs", "drafts", "rows", "kept", "holds", "budget"), SHAPES)
def test_a_shape_has_its_numbers(seqs: int, drafts: int, rows: int, kept: int, holds: int, budget: int) -> None:
    shape = profile(seqs, drafts)
    assert shape.verify_rows == rows
    assert round_down(rows) == kept
    assert capture_size(shape) == holds
    assert scheduled_token_budget(shape) == budget


def test_larger_steps_leave_a_larger_budget() -> None:
    assert scheduled_token_budget(profile(4, 5, 16384)) == 16368


def test_without_drafts_the_whole_step_is_there() -> None:
    assert scheduled_token_budget(profile(6, 0)) == scheduled_token_budget(profile(6, 1)) == 8192


@pytest.mark.parametrize(
    ("rows", "size"),
    [
        (1, 1),
        (2, 2),
        (3, 4),
        (4, 4),
        (5, 8),
        (8, 8),
        (9, 16),
        (248, 248),
        (249, 256),
        (256, 256),
        (257, 272),
        (500, 512),
    ],
)
def test_rows_are_held_by_the_next_size_of_the_grid(rows: int, size: int) -> None:
    assert round_up(rows) == size


def test_a_size_off_the_grid_is_between_its_neighbours() -> None:
    for size in range(1, 600):
        below, above = round_down(size), round_up(size)
        assert below <= size <= above
        assert round_up(below) == below
        assert round_down(above) == above


def test_the_flag_is_left_out_or_taken_as_it_is_on_request() -> None:
    assert capture_size(profile(capture_size="none")) is None
    assert capture_size(profile(capture_size=36)) == 36
