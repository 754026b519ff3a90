"""What a node remembers."""

from __future__ import annotations

from dspark_deploy.facts.recall import GpuInside, parse_recalled

HUB = "/home/nvidia/.cache/huggingface/hub/models--deepseek-ai--DeepSeek-V4-Flash-0731/snapshots/abc"
DOCUMENT = {
    "noted": {"at": "2026-09-01T10:00:00+00:00", "values": {"kernel": "6.14"}},
    "hashed": [
        {"at": "2026-08-01T00:00:00Z", "folder": HUB, "verdict": "complete"},
        {"at": "2026-08-02T00:00:00Z", "folder": HUB.replace("abc", "def"), "verdict": "corrupt"},
        {"at": "2026-08-03T00:00:00Z", "folder": "/data/plain-preview", "verdict": "partial"},
    ],
    "gpu": {"usable": True, "detail": "GPU 0: NVIDIA GB10"},
}


def test_the_last_verdict_of_the_model_that_is_served_counts() -> None:
    recalled = parse_recalled(DOCUMENT)
    hub, plain = recalled.hashed_of("deepseek-ai/DeepSeek-V4-Flash-0731"), recalled.hashed_of("/models/plain-preview")
    assert hub is not None
    assert plain is not None
    assert (hub.verdict, plain.verdict) == ("corrupt", "partial")
    assert recalled.hashed_of("deepseek-ai/another") is None
    assert recalled.gpu == GpuInside(usable=True, detail="GPU 0: NVIDIA GB10")


def test_a_node_that_remembers_nothing_tells_nothing() -> None:
    recalled = parse_recalled({"noted": None, "hashed": [], "gpu": None})
    assert (recalled.noted, recalled.hashed, recalled.gpu) == (None, (), None)
