"""A budget as a picture: TTFT and throughput against prompt length, with the point asked about, and the pool as bars.

Needs the extra `plot`; importing this without it says so.
"""

from __future__ import annotations

from io import BytesIO

from dspark_deploy.capacity.budget import Lane
from dspark_deploy.capacity.measurements import Row, Sweep
from dspark_deploy.capacity.sweep import Estimate, interpolate
from dspark_deploy.capacity.work import Work
from dspark_deploy.errors import ConfigError

try:
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter
except ImportError as missing:
    raise ConfigError("drawing needs the package matplotlib", remedy="pip install 'dspark-deploy[plot]'") from missing

FORMATS = ("png", "svg", "pdf")
_RATES = (("prefill_tps", "prefill", "s"), ("decode_tps", "decode, a stream", "^"), ("aggregate_tps", "aggregate", "D"))


def draw(work: Work, lane: Lane, format_: str) -> bytes:
    """The picture as a file of that format, one of FORMATS. The same input gives the same bytes of SVG."""
    figure = Figure(figsize=(11, 7.5), layout="constrained")
    times, rates, pool = figure.subplot_mosaic([["times", "rates"], ["pool", "pool"]], height_ratios=(3, 1)).values()
    sessions = min(work.sessions, lane.profile.max_num_seqs)
    figure.suptitle(f"{lane.profile.name}: {sessions} at a time")
    _draw_times(times, lane.sweep, work, sessions)
    _draw_rates(rates, lane.sweep, work, sessions)
    _draw_pool(pool, work, lane)
    file = BytesIO()
    described = {"Date": None} if format_ == "svg" else {"CreationDate": None} if format_ == "pdf" else None
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dspark"}):  # words stay words
        figure.savefig(file, format=format_, dpi=120, metadata=described)
    return file.getvalue()


def _draw_times(axes: Axes, sweep: Sweep | None, work: Work, sessions: int) -> None:
    _logarithmic(axes, "Time to first token", "seconds")
    _curve(axes, sweep, sessions, "ttft_s", "TTFT", "o")
    _point(axes, sweep, work, sessions, ("ttft_s",))


def _draw_rates(axes: Axes, sweep: Sweep | None, work: Work, sessions: int) -> None:
    _logarithmic(axes, "Throughput", "tokens a second")
    for metric, label, marker in _RATES:
        _curve(axes, sweep, sessions, metric, label, marker)
    _point(axes, sweep, work, sessions, tuple(metric for metric, _, _ in _RATES))


def _draw_pool(axes: Axes, work: Work, lane: Lane) -> None:
    axes.set(title="KV pool", xlabel="live tokens", yticks=[])
    left = 0
    for group in work.groups:
        label = f"{group.sessions} x {group.session_tokens}"
        axes.barh(0, group.live_tokens, left=left, label=label, edgecolor="white")
        left += group.live_tokens
    if lane.pool is not None:
        label = f"pool: {lane.pool.tokens} ({lane.pool.kind})"
        axes.axvline(lane.pool.tokens, color="black", linestyle="--", label=label)
        left = max(left, lane.pool.tokens)
    axes.set_xlim(0, left * 1.05)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.legend()


def _logarithmic(axes: Axes, title: str, unit: str) -> None:
    axes.set(title=title, xlabel="prompt (tokens)", ylabel=unit, xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if axis is axes.yaxis else (1,)))
        axis.set_major_formatter(EngFormatter(sep=""))
        axis.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.3)


def _curve(axes: Axes, sweep: Sweep | None, sessions: int, metric: str, label: str, marker: str) -> None:
    """Measured rows as marks, what lies between as a line."""
    rows = [] if sweep is None else _column(sweep, sessions, metric)
    if sweep is None or not rows:
        return
    # A straight line on these axes is what is interpolated, too.
    axes.plot([row.prompt for row in rows], [getattr(row, metric) for row in rows], marker=marker, label=label)


def _point(axes: Axes, sweep: Sweep | None, work: Work, sessions: int, metrics: tuple[str, ...]) -> None:
    """What was asked about: a star where there is a number, else the length alone."""
    prompt = work.longest.prompt_tokens
    axes.axvline(prompt, color="grey", linestyle=":", label=f"asked: {prompt}")
    found = interpolate(sweep, prompt, sessions) if sweep and len(work.groups) == 1 else None
    if isinstance(found, Estimate):
        figures = [figure for figure in (getattr(found, metric) for metric in metrics) if figure is not None]
        axes.plot([prompt] * len(figures), figures, "*", color="crimson", markersize=14, linestyle="none")
    axes.legend()


def _column(sweep: Sweep, sessions: int, metric: str) -> list[Row]:
    rows = [row for row in (*sweep.rows, *sweep.points) if row.concurrency == sessions]
    return sorted((row for row in rows if getattr(row, metric) is not None), key=lambda row: row.prompt)
