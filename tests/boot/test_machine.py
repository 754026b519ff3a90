"""Whose line it is, which boot it belongs to, and what makes a sighting harmless."""

from __future__ import annotations

from dspark_deploy.boot.events import BootBegan, Figure, Found, PhaseEntered, Ready, Resolved
from dspark_deploy.boot.phases import Phase
from dspark_deploy.boot.reader import BootReader
from dspark_deploy.boot.rules import Rules
from tests.boot.conftest import Read

INFO = "INFO 07-18 13:29:28 [module.py:1]"
BLOCKED = f"(EngineCore pid=1) {INFO} No available shared memory broadcast block found in 60 seconds."
UP = "(APIServer pid=1) INFO:     Application startup complete."
RATE = f"(APIServer pid=1) {INFO} Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: "
NVRM = "NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051)"


def test_phases_come_as_events_and_never_go_back(read: Read) -> None:
    events, [boot] = read(
        f"(Worker_TP0 pid=1) {INFO} Loading weights took 141.71 seconds",
        f"(Worker_TP0 pid=1) {INFO} Using Eagle3 auxiliary layers from config: (41, 42, 43)",
        f"(Worker_TP0 pid=1) {INFO} Asynchronous scheduling is enabled.",
        f"(Worker_TP0 pid=1) {INFO} Loading weights took 30.44 seconds",
    )
    assert [event.phase for event in events if isinstance(event, PhaseEntered)] == [Phase.WEIGHTS, Phase.DRAFT]
    assert [(event.name, event.value) for event in events if isinstance(event, Figure)] == [
        ("weights_s", 141.71),
        ("draft_weights_s", 30.44),
    ]
    assert boot.phase is Phase.DRAFT


def test_a_stamp_is_seconds_of_its_year(read: Read) -> None:
    line = "(Worker_TP0 pid=1) INFO {} [module.py:1] Available KV cache memory: 1.0 GiB"
    stamps = []
    for stamp in ("01-01 00:00:10", "03-01 00:00:10", "12-31 23:59:59", "13-01 00:00:10", "00-01 00:00:10"):
        [entered, *_], _ = read(line.format(stamp))
        assert isinstance(entered, PhaseEntered)
        stamps.append(entered.stamp_s)
    assert stamps == [10, 60 * 86_400 + 10, 366 * 86_400 - 1, None, None]


def test_two_ranks_in_one_log_are_kept_apart_by_their_prefixes(read: Read) -> None:
    _, boots = read(
        f"(EngineCore pid=1) {INFO} GPU KV cache size: 853,524 tokens",
        f"(Worker_TP1 pid=1) {INFO} Available KV cache memory: 10.61 GiB",
        f"(Worker_TP0 pid=1) {INFO} Available KV cache memory: 11.47 GiB",
        f"(Worker_TP1 pid=1) {INFO} Graph capturing finished in 13 secs, took 1.17 GiB",
    )
    assert {boot.node: (boot.figures["kv_gib"], boot.phase) for boot in boots} == {
        "head": (11.47, Phase.KV),
        "worker": (10.61, Phase.CAPTURE),
    }


def test_a_message_glued_to_another_process_line_is_that_process_message(read: Read) -> None:
    _, [boot] = read(
        f"gx10:476:593 [0] NCCL INFO NCCL_IB_ADDR_(Worker_TP1 pid=1) {INFO} Available KV cache memory: 2.5 GiB"
    )
    assert (boot.node, boot.figures["kv_gib"]) == ("worker", 2.5)


def test_lines_before_the_rank_is_known_belong_to_it(read: Read) -> None:
    _, [boot] = read(
        f"{INFO} Resolved architecture: DeepseekV4ForCausalLM",
        f"{INFO} Using max model len 350000",
        f"(Worker_TP1 pid=1) {INFO} Available KV cache memory: 10.61 GiB",
    )
    assert (boot.node, boot.figures["max_model_len"]) == ("worker", 350_000)


def test_the_draft_states_its_own_length_after_the_models(read: Read) -> None:
    _, [boot] = read(
        f"(APIServer pid=1) {INFO} Using max model len 350000",
        f"(APIServer pid=1) {INFO} Using max model len 1048576",
    )
    assert boot.figures["max_model_len"] == 350_000


def test_a_container_that_is_started_again_begins_another_boot(read: Read) -> None:
    boot = [
        f"(APIServer pid=1) {INFO} non-default args: {{'model': 'a/b'}}",
        f"(APIServer pid=1) {INFO} Resolved architecture: DeepseekV4ForCausalLM",
        f"(Worker pid=2) {INFO} world_size=2 rank=0 distributed_init_method=tcp://10.0.0.1:25000 backend=nccl",
    ]
    events, boots = read(*boot, *boot)
    assert [event for event in events if isinstance(event, BootBegan)] == [BootBegan("head", 4)]
    assert [(each.node, each.line, each.phase) for each in boots] == [
        ("head", 1, Phase.RENDEZVOUS),
        ("head", 4, Phase.RENDEZVOUS),
    ]


def test_a_sidecar_in_the_same_project_is_no_rank(read: Read) -> None:
    _, [boot] = read(f"qwen-vl-1  | (EngineCore pid=1) {INFO} GPU KV cache size: 10,000 tokens")
    assert (boot.phase, boot.figures) == (None, {})


def test_each_rank_is_ready_by_its_own_last_line(read: Read) -> None:
    monitor = "Kernel JIT monitor activated; monitored JIT compilations during inference will use mode=warn."
    events, _ = read(f"(Worker_TP0 pid=1) {INFO} {monitor}", f"(Worker_TP1 pid=1) {INFO} {monitor}", UP)
    assert [event for event in events if isinstance(event, Ready)] == [Ready("worker", 2), Ready("head", 3)]


def test_a_signature_is_told_once_and_then_counted(read: Read) -> None:
    line = f"(Worker_TP0 pid=1) {INFO} torch.distributed.DistStoreError: 1/2 clients joined."
    events, [boot] = read(line, line, line)
    assert [event.line for event in events if isinstance(event, Found)] == [1]
    sighting = boot.sightings["peer-missing"]
    assert (sighting.count, sighting.line, sighting.last_line, sighting.values) == (3, 1, 3, {"came": "1"})


def test_a_hang_is_resolved_by_tokens_and_told_again_when_it_comes_back(read: Read) -> None:
    events, [boot] = read(UP, BLOCKED, BLOCKED, f"{RATE}0.0 tokens/s", f"{RATE}12.5 tokens/s", BLOCKED)
    told = [(type(event), event.line) for event in events if isinstance(event, Found | Resolved)]
    assert told == [(Found, 2), (Resolved, 5), (Found, 6)]
    assert not boot.sightings["engine-hangs"].resolved
    assert boot.sightings["engine-hangs"].count == 3


def test_what_a_boot_survives_is_resolved_when_it_is_ready(read: Read) -> None:
    events, [boot] = read(f"(APIServer pid=1) {INFO} Using max model len 1", NVRM, UP)
    assert [event for event in events if isinstance(event, Resolved)] == [Resolved("head", "driver-out-of-memory", 3)]
    assert boot.sightings["driver-out-of-memory"].resolved


def test_a_key_in_the_arguments_is_a_warning_and_is_not_shown(read: Read) -> None:
    events, _ = read(f"(APIServer pid=1) {INFO} non-default args: {{'model': 'a/b', 'api_key': ['topsecret1']}}")
    [found] = [event for event in events if isinstance(event, Found)]
    assert (found.failure, found.severity) == ("F73", "costly")
    assert "topsecret1" not in found.text
    masked, _ = read(f"(APIServer pid=1) {INFO} non-default args: {{'model': 'a/b', 'api_key': '***'}}")
    assert [event for event in masked if isinstance(event, Found)] == []


def test_without_progress_bars_are_no_events(rules: Rules) -> None:
    bar = b"(Worker_TP0 pid=1) \rLoading safetensors checkpoint shards:  50% Completed | 24/48 [\n"
    assert len(BootReader(rules, "head").feed(bar)) == 2
    assert len(BootReader(rules, "head", progress=False).feed(bar)) == 1


def test_what_a_patch_of_the_users_own_prints_is_no_sign_of_failure_but_its_end_of_the_start_is(read: Read) -> None:
    said = "dspark patch: 1-recipe/hotfix-x.sh: "
    events, _ = read(f"{said}| FATAL: anchor not found", f"{said}failed (exit 1, optional)")
    assert events == []
    events, _ = read(
        "dspark patch: FATAL: 1-recipe/hotfix-x.sh is required, and failed with exit code 7: vllm is not started"
    )
    assert [event.signature for event in events if isinstance(event, Found)] == ["patch-refused"]
