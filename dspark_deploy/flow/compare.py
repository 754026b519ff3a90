"""`compare`: the pair beside any other OpenAI-compatible endpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from dspark_deploy.errors import ConfigError, Disagreement
from dspark_deploy.flow.measured import Bench
from dspark_deploy.flow.observer import Observer
from dspark_deploy.flow.serving import open_serving
from dspark_deploy.flow.wish import Wish
from dspark_deploy.measure.client import Client
from dspark_deploy.measure.compare import Comparison, Unusable, find_model, run_compare
from dspark_deploy.measure.side import Side
from dspark_deploy.remote.clock import Clock
from dspark_deploy.remote.streams import endpoint_streams

DEFAULT_KEY = "DSPARK_COMPARE_KEY"


@dataclass(frozen=True, slots=True)
class Other:
    """What the pair is compared with. The key comes from a file or a variable, never from the command line."""

    url: str
    model: str | None = None  # None: the first that it lists
    key_file: Path | None = None
    key_variable: str | None = None


@dataclass(frozen=True, slots=True)
class CompareReport:
    """Both sides' answers, and where they are kept."""

    comparison: Comparison
    record: str | None
    warnings: tuple[str, ...]


def compare_with(wish: Wish, other: Other, observer: Observer, clock: Clock) -> CompareReport:
    """Raises NotAsWanted where nothing serves, Disagreement where a side can't be compared, naming it."""
    url, key = _base(other.url), _key(other, wish)
    with open_serving(wish, clock) as serving:
        bench = Bench(serving, wish, observer, clock)

        async def work(pair: Side) -> Comparison:
            async with endpoint_streams(url, key=key) as streams:
                side = Side(url, Client(streams), other.model or "", vllm=False)
                model, length = await _listed(url, side, other.model)
                # A vLLM names a length: then both sides are told alike to leave thinking out.
                side = Side(url, side.client, other.model or model, length, vllm=length is not None)
                return await run_compare(pair, side, observer.note)

        try:
            kept = bench.measure("compare", work)
        except Unusable as error:
            raise _unusable(error, url) from error
    record = str(kept.path) if kept.path else None
    return CompareReport(kept.measurement.result, record, kept.measurement.warnings)


async def _listed(url: str, side: Side, named: str | None) -> tuple[str, int | None]:
    """The model to ask. Some APIs list none: then a named one has to do, and the first answer tells what is wrong."""
    try:
        return await find_model(url, side)
    except Unusable:
        if named is None:
            raise
        return named, None


def _base(url: str) -> str:
    """What comes before `/v1`."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigError(f"{url} is no URL of an API", remedy="write https://host[:port]/v1")
    return url.rstrip("/").removesuffix("/v1")


def _key(other: Other, wish: Wish) -> str | None:
    if other.key_file is not None:
        try:
            key = other.key_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"--key-file {other.key_file}: {error}", remedy="name a file that holds the key"
            ) from error
        if not key or len(key.split()) != 1:
            raise ConfigError(f"--key-file {other.key_file} holds no key", remedy="put one key into it, on one line")
        return key
    if other.key_variable is not None:
        if not wish.environment.get(other.key_variable):
            raise ConfigError(f"--key-env: {other.key_variable} is not set", remedy=f"export {other.key_variable}")
        return wish.environment[other.key_variable]
    return wish.environment.get(DEFAULT_KEY) or None


def _unusable(error: Unusable, url: str) -> Disagreement:
    return Disagreement(
        str(error),
        why=f"compared were the pair and {url}",
        remedy="see that the URL is an OpenAI API's; --key-file or --key-env give its key, --model its model",
    )
