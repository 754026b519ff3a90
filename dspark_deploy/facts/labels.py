"""The labels that a rank's container carries. What serves is told by them, never guessed from names."""

from __future__ import annotations

from typing import Final

PAIR: Final = "dspark.pair"  # the inventory's name
RANK: Final = "dspark.rank"  # 0 or 1
NODE: Final = "dspark.node"  # head or worker
RELEASE: Final = "dspark.release"  # twelve hex digits
PROFILE: Final = "dspark.profile"
FAMILY: Final = "dspark.family"
TOOL: Final = "dspark.tool"  # the version of dspark that rendered the files
