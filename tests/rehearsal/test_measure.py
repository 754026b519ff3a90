"""Measuring commands end to end, on the rehearsed pair and through its SSH connection."""

from __future__ import annotations

import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..remote.test_streams import self_signed
from .pair import RehearsedPair


def result(pair: RehearsedPair, *words: str, code: int = 0) -> Any:
    """The `result` of a command, and its exit code as it should be."""
    ran = pair.dspark("--output", "json", "-q", *words)
    assert ran.returncode == code, ran
    return ran.json()["result"]


def url(pair: RehearsedPair) -> str:
    """The rehearsed pair's own API, for any client."""
    return f"http://127.0.0.1:{pair.ports['api']}/v1"


def test_smoke_gate_churn_and_deep_pass_and_are_kept(serving: RehearsedPair) -> None:
    found = result(serving, "smoke", "--gate", "--churn", "--deep", "3000", "--most", "2")
    assert found["passed"] is True
    assert {finding["status"] for finding in found["smoke"]["findings"]} == {"ok"}
    assert found["gate"]["levels"] == [1, 2]
    assert found["deep"]["prompt_tokens"] == 3000
    assert len(found["records"]) == 4
    kept = json.loads(Path(found["records"][0]).read_text())
    origin = kept["origin"]
    assert (origin["profile"], origin["family"]) == ("agent-1m", "anemll")
    assert origin["image_ids"]["head"].startswith("sha256:")
    assert "--max-num-seqs" in origin["argv"]["head"]
    assert origin["kv_pool_tokens"] > 0
    assert origin["facts"]["worker"]["hostname"]
    assert origin["server_version"]


def test_a_bad_answer_is_exit_7_with_the_evidence(serving: RehearsedPair) -> None:
    serving.switch("head", {"api": "markup"})
    ran = serving.dspark("smoke", "--gate", "--most", "1")
    assert ran.returncode == 7, ran
    assert "markup" in ran.stdout
    assert "the pair's own fault" in ran.stdout
    record = next(line for line in ran.stdout.splitlines() if "-gate-" in line).removeprefix("kept: ")
    bad = json.loads(Path(record).read_text())["result"]["bad"]
    assert "</think>" in bad[0]["answer"]


def test_bench_decode_sets_the_result_beside_the_published_lane(serving: RehearsedPair) -> None:
    found = result(serving, "bench", "decode", "-c", "1,2", "--trials", "3", "--tokens", "32", "--expect", "agent-1m")
    decode = found["measurement"]["result"]
    assert [lane["concurrency"] for lane in decode["lanes"]] == [1, 2]
    assert all(trial["tokens"] == 31 * lane["concurrency"] for lane in decode["lanes"] for trial in lane["trials"])
    assert decode["expected"] == "agent-1m-0731"
    assert decode["drift"][0]["within"] is False  # a rehearsal is much faster
    assert decode["lanes"][0]["trials"][0]["acceptance"]["drafted_tokens"] > 0


def test_the_verdict_names_lane_source_and_band(serving: RehearsedPair) -> None:
    ran = serving.dspark(
        "bench", "decode", "-c", "1", "--trials", "1", "--tokens", "32", "--expect", "agent-1m", "--band", "20%"
    )
    assert ran.returncode == 0, ran
    (line,) = [line for line in ran.stdout.splitlines() if line.startswith("drift: ")]
    assert "agent-1m-0731" in line
    assert "within 20% is no drift" in line


def test_a_sweep_is_kept_resumed_and_reported(
    serving: RehearsedPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving.switch("head", {"decode_tps": 500})  # as fast as it goes, the trials would differ too much to compare
    words = (
        "bench",
        "sweep",
        "--prompts",
        "64,256",
        "-c",
        "1,2",
        "--trials",
        "2",
        "--tokens",
        "16",
        "--cool-down",
        "1ms",
    )
    found = result(serving, *words)
    path = Path(found["record"])
    measurement = json.loads(path.read_text())
    assert len(measurement["result"]["cells"]) == 4
    assert measurement["result"]["cells"][0]["trials"][0]["prompt_tokens"] == [64]
    assert len(found["trends"]) == 6
    measurement["result"]["cells"] = measurement["result"]["cells"][:1]
    path.write_text(json.dumps(measurement))
    again = result(serving, "bench", "sweep", "--resume")
    assert again["measurement"]["id"] == measurement["id"]
    assert len(again["measurement"]["result"]["cells"]) == 4
    assert serving.dspark("bench", "sweep", "--resume").returncode == 2  # nothing is left
    _reported(serving, path, tmp_path)
    for name in ("DRAW", "DRAW_BUDGET"):  # once is enough: the pictures take longer than the measurements
        monkeypatch.setattr(f"dspark_deploy.flow.write_report.{name}", None)
    _compared(serving, path, tmp_path)


def _reported(serving: RehearsedPair, path: Path, tmp_path: Path) -> None:
    written = result(serving, "report", "--run", path.parent.name, "--dir", str(tmp_path / "report"))
    names = {Path(name).name for name in written["files"]}
    assert {"report.html", "report.csv", "report.json", "sweep-ttft.png"} <= names
    assert "<img" in (tmp_path / "report" / "report.html").read_text()


def _compared(serving: RehearsedPair, path: Path, tmp_path: Path) -> None:
    faster = json.loads(path.read_text())
    faster["id"] = "20200101T000000-sweep-000000"
    for cell in faster["result"]["cells"]:
        for trial in cell["trials"]:
            trial["decode_tps"] = [rate * 1000 for rate in trial["decode_tps"]]
    before = tmp_path / "before.json"
    before.write_text(json.dumps(faster))
    ran = serving.dspark(
        "report", "--run", path.parent.name, "--against", str(before), "--dir", str(tmp_path / "report")
    )
    assert ran.returncode == 7, ran
    assert "decode, 64 tokens x 1" in ran.stdout
    assert "figures regressed against 20200101T000000-sweep-000000" in ran.stdout
    assert serving.dspark("report", "--run", "2019", "--dir", str(tmp_path / "none")).returncode == 2


def test_the_pair_compared_with_itself_is_not_odd(serving: RehearsedPair) -> None:
    ran = serving.dspark("compare", url(serving))
    assert ran.returncode == 0, ran
    assert "neither side is odd; 9 of 9 answers are the same to the byte" in ran.stdout


@pytest.fixture
def refusing(tmp_path: Path) -> Iterator[Any]:
    """A server for each way in which a side can't be compared; returns its URL."""
    servers = []

    def start(status: int, body: bytes, tls: bool = False) -> str:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # http.server calls it by this name
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """A test's output is its own."""

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that hangs up is expected
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self_signed(tmp_path))
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
        return f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}/v1"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "tls", "why"),
    [
        (401, b'{"error": "Unauthorized"}', False, "the key is missing or refused"),
        (200, b"<html>hello</html>", False, "no OpenAI API"),
        (404, b"not here", False, "no OpenAI API"),
        (200, b"{}", True, "TLS"),
    ],
)
def test_a_side_that_can_not_be_compared_is_exit_7_and_named(
    serving: RehearsedPair, refusing: Any, status: int, body: bytes, tls: bool, why: str
) -> None:
    other = refusing(status, body, tls)
    ran = serving.dspark("compare", other)
    assert ran.returncode == 7, ran
    (first, *_) = [line for line in ran.stderr.splitlines() if line.startswith("error:")]
    assert other.removesuffix("/v1") in first
    assert why in first


def test_the_other_sides_key_comes_from_a_file_or_a_variable(serving: RehearsedPair, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("sk-secret\n")
    assert serving.dspark("compare", url(serving), "--key-file", str(key)).returncode == 0
    assert serving.dspark("compare", url(serving), "--key-file", str(tmp_path / "absent")).returncode == 2
    assert serving.dspark("compare", url(serving), "--key-env", "NO_SUCH_VARIABLE").returncode == 2
    assert serving.dspark("compare", "ftp://example.org").returncode == 2
    kept = (serving.state / "dspark" / "rehearsal" / "measurements").rglob("measurement.json")
    assert not [path for path in kept if "sk-secret" in path.read_text()]


@pytest.mark.parametrize(
    "words", [("smoke",), ("bench", "decode"), ("bench", "sweep"), ("compare", "http://127.0.0.1:1/v1")]
)
def test_nothing_that_serves_is_exit_8(rehearsed: RehearsedPair, words: tuple[str, ...]) -> None:
    ran = rehearsed.dspark(*words)
    assert ran.returncode == 8, ran
    assert "nothing serves" in ran.stderr


def test_an_unknown_lane_is_exit_2(rehearsed: RehearsedPair) -> None:
    ran = rehearsed.dspark("bench", "decode", "--expect", "agent-2m")
    assert ran.returncode == 2
    assert "agent-1m" in ran.stderr
