"""What a profile's numbers make of each other: CUDA graph sizes and the scheduler's token budget.

Source: Anemll/dspark-vllm-gx10, overlay/vllm/config/vllm.py at 47503f8.
"""

from __future__ import annotations

from dspark_deploy.profile import Profile

_SMALL = (1, 2, 4)
_COARSE_FROM = 256  # multiples of 8 below it, of 16 from it on


def round_up(rows: int) -> int:
    """The smallest size on the runtime's grid that holds so many rows."""
    for size in _SMALL:
        if rows <= size:
            return size
    step = 8 if rows <= _COARSE_FROM else 16
    return -(-rows // step) * step


def round_down(size: int) -> int:
    """What the runtime makes of a size that is off its grid: it cuts, with a warning in the log."""
    smaller = [each for each in _SMALL if each <= size]
    step = 8 if size < _COARSE_FROM else 16
    return max(size // step * step, *smaller)


def capture_size(profile: Profile) -> int | None:
    """The value of --max-cudagraph-capture-size; None: the flag is not given, and the runtime decides.

    `auto` holds the widest decode step: upstream passes that number itself, and off the grid the runtime cuts it
    below what a full batch needs (36 to 32), so that the last sequence decodes outside of a graph (F101).
    """
    match profile.capture_size:
        case "none":
            return None
        case "auto":
            return round_up(profile.verify_rows)
        case size:
            return size


def scheduled_token_budget(profile: Profile) -> int:
    """Tokens that a step may schedule once every sequence's draft slots are set aside; at 0 the start fails."""
    slots = max(profile.draft_tokens - 1, 0)
    return profile.max_num_batched_tokens - profile.max_num_seqs * slots
