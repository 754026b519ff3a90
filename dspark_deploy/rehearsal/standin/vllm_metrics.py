"""Counters of the served API, as `/metrics` shows them and as the log sums them up every ten seconds."""

from __future__ import annotations

import threading
import time
from collections import Counter

TTFT_BUCKETS = (0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 600.0)


class Metrics:
    """What was counted since the start. `lock` guards every change. `drafts` are tokens a step, 0 where none are."""

    def __init__(self, model: str, pool_tokens: int, drafts: int) -> None:
        self.model = model
        self.pool_tokens = pool_tokens
        self.drafts = drafts
        self.running = self.waiting = self.used_tokens = 0
        self.prompt_tokens = self.generation_tokens = 0
        self.steps = self.accepted = 0
        self.finished: Counter[str] = Counter()
        self.ttft_s: list[float] = []
        self.started = time.time()
        self.lock = threading.Lock()

    @property
    def usage(self) -> float:
        """Share of the KV pool that running requests hold."""
        return min(1.0, self.used_tokens / max(1, self.pool_tokens))

    def text(self) -> str:
        """The page, in Prometheus' format."""
        label = f'engine="0",model_name="{self.model}"'
        with self.lock:
            gauges = {
                "num_requests_running": self.running,
                "num_requests_waiting": self.waiting,
                "kv_cache_usage_perc": self.usage,
                "gpu_cache_usage_perc": self.usage,
            }
            counters = {
                "prompt_tokens": self.prompt_tokens,
                "generation_tokens": self.generation_tokens,
                "num_preemptions": 0,
                "prefix_cache_queries": self.prompt_tokens,
                "prefix_cache_hits": 0,
                "spec_decode_num_drafts": self.steps,
                "spec_decode_num_draft_tokens": self.steps * self.drafts,
                "spec_decode_num_accepted_tokens": self.accepted,
            }
            lines = [_sample("gauge", f"vllm:{name}", label, value) for name, value in gauges.items()]
            lines += [_sample("counter", f"vllm:{name}_total", label, float(value)) for name, value in counters.items()]
            lines.append("# TYPE vllm:request_success_total counter")
            for reason in ("stop", "length", "abort"):
                own = f'{label},finished_reason="{reason}"'
                lines.append(f"vllm:request_success_total{{{own}}} {float(self.finished[reason])}")
            lines += self._ttft(label)
        lines.append(f"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds {self.started}")
        return "\n".join(lines) + "\n"

    def _ttft(self, label: str) -> list[str]:
        name = "vllm:time_to_first_token_seconds"
        lines = [f"# TYPE {name} histogram"]
        for bound in (*TTFT_BUCKETS, float("inf")):
            shown = "+Inf" if bound == float("inf") else bound
            count = sum(seconds <= bound for seconds in self.ttft_s)
            lines.append(f'{name}_bucket{{{label},le="{shown}"}} {float(count)}')
        lines.append(f"{name}_count{{{label}}} {float(len(self.ttft_s))}")
        lines.append(f"{name}_sum{{{label}}} {sum(self.ttft_s)}")
        return lines


def _sample(kind: str, name: str, label: str, value: float) -> str:
    return f"# TYPE {name} {kind}\n{name}{{{label}}} {value}"
