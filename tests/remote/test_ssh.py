from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import paramiko
import pytest

from dspark_deploy.errors import NodeUnreachable, StepFailed
from dspark_deploy.inventory.host import HostSpec
from dspark_deploy.remote import link, ssh
from dspark_deploy.remote.connect import open_host
from dspark_deploy.remote.knownhosts import known_keys
from tests.remote.sshd import Sshd, fingerprint_of, make_key


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def refusal(sshd: Sshd, *, accept_new_host_keys: bool = False) -> NodeUnreachable:
    with pytest.raises(NodeUnreachable) as failed:
        sshd.open(accept_new_host_keys=accept_new_host_keys)
    assert failed.value.node == "worker"
    return failed.value


@contextmanager
def agent(folder: Path, *keys: Path) -> Iterator[Path]:
    """An ssh-agent that holds `keys`."""
    path = folder / "agent.sock"
    with subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        for key in keys:
            give = {**os.environ, "SSH_AUTH_SOCK": str(path), "SSH_ASKPASS": "/bin/false", "DISPLAY": ""}
            subprocess.run(["ssh-add", "-q", key], env=give, check=True, stdin=subprocess.DEVNULL)
        try:
            yield path
        finally:
            process.terminate()


# --- commands -------------------------------------------------------------------------------------------------------


def test_a_command_runs_on_the_node(sshd: Sshd, home: Path) -> None:
    with closing(sshd.open()) as host:
        result = host.run(["sh", "-c", "pwd; echo err >&2; exit 3"], timeout_s=10)
        assert (result.returncode, result.stdout, result.stderr) == (3, f"{home}\n", "err\n")
        assert (host.name, host.address) == ("worker", "127.0.0.1")
        assert host.where.startswith("worker (")


def test_a_noisy_login_never_changes_a_result(sshd: Sshd, home: Path) -> None:
    noise = 'echo "Welcome to spark-a!"; echo "{}" ; echo oops >&2; printf "no line end"'
    for profile in (".bashrc", ".profile", ".zshenv"):
        (home / profile).write_text(f"{noise}\n")
    sshd.options["ForceCommand"] = f'{noise}; exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"'
    with closing(sshd.open()) as host:
        result = host.run(["echo", "28.2.2"], timeout_s=10)
        assert (result.stdout, result.stderr) == ("28.2.2\n", "")


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "zsh", "fish", "tcsh"])
def test_any_login_shell_will_do(sshd: Sshd, shell: str) -> None:
    found = subprocess.run(["sh", "-c", f"command -v {shell}"], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        pytest.skip(f"{shell} is not installed here")
    sshd.options["ForceCommand"] = f'exec {found.stdout.strip()} -c "$SSH_ORIGINAL_COMMAND"'
    with closing(sshd.open()) as host:
        assert host.run(["printf", "%s", "it's $HOME!"], timeout_s=10).stdout == "it's $HOME!"


@pytest.mark.timing
def test_sessions_stay_below_what_sshd_allows(sshd: Sshd) -> None:
    with closing(sshd.open()) as host, ThreadPoolExecutor(24) as pool:
        results = pool.map(lambda number: host.run(["echo", str(number)], timeout_s=30).stdout, range(24))
        assert list(results) == [f"{number}\n" for number in range(24)]


def test_more_than_eight_sessions_wait_for_a_free_one(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh, "SLOT_S", 0.1)
    with closing(sshd.open()) as host:
        held = [host.start("lock", {"pair": f"p{number}", "owner": {}}, timeout_s=10) for number in range(8)]
        with pytest.raises(StepFailed, match="8 commands at a time still run"):
            host.run(["true"], timeout_s=10)
        held[0].close()
        assert host.run(["true"], timeout_s=10).returncode == 0


def test_forwarded_connections_do_not_count(sshd: Sshd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, closing(sshd.open()) as host:
        port = listener.getsockname()[1]
        streams = [host.dial("127.0.0.1", port, timeout_s=10) for _ in range(12)]
        assert host.run(["true"], timeout_s=10).returncode == 0
        for stream in streams:
            stream.close()


def test_all_of_it_is_one_connection(sshd: Sshd) -> None:
    with closing(sshd.open()) as host:
        host.run(["true"], timeout_s=10)
        host.call("lock", {"pair": "p", "owner": {}}, timeout_s=10)
    assert len(sshd.processes) == 1


def test_what_runs_ends_with_its_session(sshd: Sshd, tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    script = f"exec 3>{alive}; echo >&3; sleep 60 & sleep 60"
    with closing(sshd.open()) as host:
        session = host.start("run", {"argv": ["sh", "-c", script], "cwd": None, "timeout_s": 60}, timeout_s=10)
        with alive.open("rb") as held_open:
            assert held_open.readline() == b"\n"
            session.close()
            assert held_open.read() == b""


def test_the_lock_is_free_once_the_connection_is_gone(sshd: Sshd) -> None:
    request = {"pair": "p", "owner": {"who": "me"}}
    with closing(sshd.open()) as other:
        with closing(sshd.open()) as holder:
            holder.start("lock", request, timeout_s=10).receive(timeout_s=10)
            assert other.call("lock", request, timeout_s=10)["locked"] is False
        waiting = other.start(
            "run", {"argv": ["flock", ".local/share/dspark/p/lock", "true"], "cwd": None, "timeout_s": 9}, timeout_s=10
        )
        assert waiting.receive(timeout_s=10)["returncode"] == 0
        assert other.call("lock", request, timeout_s=10)["locked"] is True


# --- the connection while it is used ----------------------------------------------------------------------------------


def test_a_connection_that_breaks_during_a_command_is_told(sshd: Sshd) -> None:
    host = sshd.open()
    session = host.start("run", {"argv": ["sleep", "60"], "cwd": None, "timeout_s": 60}, timeout_s=10)
    threading.Timer(0.1, sshd.signal, [signal.SIGKILL]).start()
    with pytest.raises(NodeUnreachable, match="the SSH connection is gone"):
        session.receive(timeout_s=10)
    with pytest.raises(NodeUnreachable):
        host.run(["true"], timeout_s=10)
    host.close()


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (None, "the other side ended it"),
        (EOFError(), "the other side ended it"),
        (paramiko.ChannelException(1, "Administratively prohibited"), "the other side ended it"),  # of long before
        (ConnectionResetError(104, "Connection reset by peer"), "Connection reset by peer"),
        (paramiko.SSHException("Invalid packet blocking"), "Invalid packet blocking"),
    ],
    ids=str,
)
def test_why_a_connection_broke_is_told(sshd: Sshd, kept: Exception | None, said: str) -> None:
    with closing(sshd.open()) as host:
        assert isinstance(host, ssh.SshHost)
        host._transport.close()
        host._transport.join(5)
        host._transport.saved_exception = kept
        lost = host.lost()
    assert lost is not None
    assert said in lost.why


def test_a_link_that_goes_silent_is_noticed(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh, "ALIVE_EVERY_S", 0.05)
    monkeypatch.setattr(ssh, "ALIVE_WITHIN_S", 0.3)
    host = sshd.open()
    session = host.start("run", {"argv": ["sleep", "60"], "cwd": None, "timeout_s": 60}, timeout_s=10)
    sshd.signal(signal.SIGSTOP)
    with pytest.raises(NodeUnreachable, match="the SSH connection is gone") as failed:
        session.receive(timeout_s=10)
    assert "no answer to a keepalive within 0.3 s" in failed.value.why
    host.close()


def test_a_dead_link_is_noticed_within_15_seconds() -> None:
    assert ssh.ALIVE_EVERY_S + ssh.ALIVE_WITHIN_S <= 15


def test_the_node_dials_for_us(sshd: Sshd) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        closing(sshd.open()) as host,
        closing(host.dial("127.0.0.1", listener.getsockname()[1], timeout_s=5)) as stream,
        listener.accept()[0] as accepted,
    ):
        stream.send(b"ping")
        assert accepted.recv(10) == b"ping"
        accepted.send(b"pong")
        assert stream.recv(10) == b"pong"


def test_a_port_where_nothing_listens_is_a_refused_connection(sshd: Sshd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with closing(sshd.open()) as host, pytest.raises(ConnectionRefusedError, match=f"port {port} on the worker"):
        host.dial("127.0.0.1", port, timeout_s=5)


def test_forbidden_forwarding_is_told_apart(sshd: Sshd) -> None:
    sshd.options["AllowTcpForwarding"] = "no"
    with closing(sshd.open()) as host, pytest.raises(StepFailed, match="sshd forbids forwarding") as failed:
        host.dial("127.0.0.1", 1, timeout_s=5)
    assert "AllowTcpForwarding" in failed.value.remedy


# --- host keys --------------------------------------------------------------------------------------------------------


def test_an_unknown_host_key_is_refused_with_its_fingerprint(sshd: Sshd) -> None:
    sshd.known_hosts.unlink()
    error = refusal(sshd)
    assert f"its host key is not known: ssh-ed25519 {fingerprint_of(sshd.host_key)}" in error.message
    assert f"`ssh -F {sshd.config} node`" in error.remedy
    assert "--accept-new-host-keys" in error.remedy
    assert not sshd.known_hosts.exists()


def test_an_unknown_host_key_is_kept_where_that_is_asked_for(sshd: Sshd) -> None:
    sshd.known_hosts.unlink()
    sshd.open(accept_new_host_keys=True).close()
    (added,) = known_keys([sshd.known_hosts], f"[127.0.0.1]:{sshd.port}")
    assert added.fingerprint == fingerprint_of(sshd.host_key)
    sshd.open().close()


def test_a_host_key_that_can_not_be_kept_is_an_error_that_names_the_file(sshd: Sshd) -> None:
    sshd.known_hosts.unlink()
    sshd.known_hosts.mkdir()  # a mode alone would not keep root from writing
    error = refusal(sshd, accept_new_host_keys=True)
    assert f"its new host key can't be kept in {sshd.known_hosts}" in error.message
    assert error.why == "Is a directory"
    assert "UserKnownHostsFile of node" in error.remedy


@pytest.mark.parametrize("accept", [False, True])
def test_a_changed_host_key_is_always_refused(sshd: Sshd, tmp_path: Path, accept: bool) -> None:
    old = make_key(tmp_path / "old")
    sshd.trust(old)
    before = sshd.known_hosts.read_text()
    error = refusal(sshd, accept_new_host_keys=accept)
    assert "HOST KEY HAS CHANGED" in error.message
    assert fingerprint_of(sshd.host_key) in error.message
    assert f"{fingerprint_of(old)} ({sshd.known_hosts} line 1)" in error.why
    assert f"ssh-keygen -f {sshd.known_hosts} -R '[127.0.0.1]:{sshd.port}'" in error.remedy
    assert sshd.known_hosts.read_text() == before


def test_a_key_alias_decides_the_name(sshd: Sshd) -> None:
    sshd.write_config(HostKeyAlias="sparky")
    sshd.trust(name="sparky")
    sshd.open().close()


def test_a_host_key_of_a_known_type_is_asked_for(sshd: Sshd) -> None:
    rsa = sshd.folder / "rsa_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", rsa], check=True)
    sshd.options["HostKey"] = f"{sshd.host_key}\nHostKey {rsa}"
    sshd.trust(rsa)
    sshd.open().close()


# --- logging in -------------------------------------------------------------------------------------------------------


def test_a_refused_key_names_what_was_tried(sshd: Sshd, tmp_path: Path) -> None:
    other = make_key(tmp_path / "other")
    sshd.write_config(IdentityFile=str(other))
    error = refusal(sshd)
    assert "was refused" in error.message
    assert f"{other}: refused" in error.why
    assert "no agent: neither SSH_AUTH_SOCK nor IdentityAgent" in error.why


def test_an_encrypted_key_without_an_agent_says_ssh_add(sshd: Sshd, tmp_path: Path) -> None:
    key = make_key(tmp_path / "locked", "passphrase")
    sshd.write_config(IdentityFile=str(key), IdentityAgent=str(tmp_path / "absent.sock"))
    error = refusal(sshd)
    assert f"{key}: encrypted, and no agent holds it" in error.why
    assert f"no agent: {tmp_path / 'absent.sock'} is not there" in error.why
    assert error.remedy.startswith(f"ssh-add {key}")


def test_an_encrypted_key_is_asked_for_once_on_a_terminal(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = make_key(tmp_path / "locked", "passphrase")
    sshd.client_key = key
    sshd.write_config(IdentityFile=str(key))
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return "passphrase"

    monkeypatch.setattr("sys.stdin", FakeTerminal())
    monkeypatch.setattr("getpass.getpass", answer)
    with ThreadPoolExecutor(2) as pool:
        for host in pool.map(lambda _: sshd.open(), range(2)):
            host.close()
    assert asked == [f"Passphrase of {key}: "]


def test_a_key_that_others_can_read_is_not_used(sshd: Sshd) -> None:
    sshd.client_key.chmod(0o644)
    assert "its mode 0644 opens it to others" in refusal(sshd).why


def test_a_key_of_the_agent_s_opens_the_node(sshd: Sshd, tmp_path: Path) -> None:
    with agent(tmp_path, sshd.client_key) as path:
        sshd.write_config(IdentityFile="none", IdentitiesOnly="no", IdentityAgent=str(path))
        sshd.open().close()


def test_of_an_agent_with_many_keys_the_configured_one_goes_first(sshd: Sshd, tmp_path: Path) -> None:
    others = [make_key(tmp_path / f"other{number}") for number in range(6)]  # sshd gives up after six
    with agent(tmp_path, *others, sshd.client_key) as path:
        public = sshd.client_key.with_suffix(".pub")
        for identities_only in ("yes", "no"):
            sshd.write_config(IdentityFile=str(public), IdentitiesOnly=identities_only, IdentityAgent=str(path))
            sshd.open().close()


def test_too_many_keys_are_told_as_such(sshd: Sshd, tmp_path: Path) -> None:
    others = [make_key(tmp_path / f"other{number}") for number in range(8)]
    with agent(tmp_path, *others) as path:
        sshd.write_config(IdentitiesOnly="no", IdentityAgent=str(path))
        error = refusal(sshd)
    assert "not tried: the server had hung up" in error.why
    assert "IdentitiesOnly yes" in error.remedy


# --- no connection ----------------------------------------------------------------------------------------------------


def test_nothing_that_listens_is_told(sshd: Sshd) -> None:
    sshd.stop()
    error = refusal(sshd)
    assert f"connection refused on port {sshd.port}" in error.message
    assert f"ssh -F {sshd.config} node" in error.remedy


def test_a_server_that_says_nothing_is_a_banner_timeout(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "BANNER_S", 0.2)
    sshd.silent = True
    assert "ssh banner timeout" in refusal(sshd).message


def test_a_name_without_an_address_is_told(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_such_name(*_: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr("socket.getaddrinfo", no_such_name)
    error = refusal(sshd)
    assert "the name 127.0.0.1 can't be resolved" in error.message
    assert error.why == "Name or service not known"


def test_a_resolver_that_hangs_has_a_limit(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = threading.Event()

    def hangs(*_: object) -> None:
        seen.wait(5)
        raise socket.gaierror(socket.EAI_AGAIN, "too late")

    monkeypatch.setattr(link, "CONNECT_S", 0.1)
    monkeypatch.setattr("socket.getaddrinfo", hangs)
    assert "no answer of the resolver within 0.1 s" in refusal(sshd).why
    seen.set()


def test_algorithms_that_the_config_forbids_are_named(sshd: Sshd) -> None:
    sshd.write_config(KexAlgorithms="sntrup761x25519-sha512@openssh.com")
    assert "kexalgorithms of the ssh config leaves no algorithm" in refusal(sshd).message


# --- jump hosts -------------------------------------------------------------------------------------------------------


@pytest.fixture
def behind(tmp_path: Path, home: Path, sshd: Sshd) -> Iterator[Sshd]:
    """A second server, reached through the first."""
    with Sshd(tmp_path / "behind", home) as server:
        config = sshd.config.read_text().replace("Host node", "Host bastion") + server.config.read_text()
        server.config.write_text(f"{config}  ProxyJump bastion\n")
        yield server


def test_a_jump_host_carries_the_connection(sshd: Sshd, behind: Sshd) -> None:
    with closing(behind.open()) as host:
        assert host.run(["echo", "through"], timeout_s=10).stdout == "through\n"
    assert (len(sshd.processes), len(behind.processes)) == (1, 1)


def test_a_jump_host_that_refuses_is_named(sshd: Sshd, behind: Sshd) -> None:
    sshd.known_hosts.unlink()
    error = refusal(behind)
    assert error.message.startswith("worker: jump host ")
    assert f":{sshd.port}: its host key is not known" in error.message


def test_a_node_that_the_jump_host_does_not_reach_is_told(sshd: Sshd, behind: Sshd) -> None:
    behind.stop()
    error = refusal(behind)
    assert error.message.startswith("worker: jump host ")
    assert f"can't reach 127.0.0.1 port {behind.port}: connect failed" in error.message
    assert len(sshd.processes) == 1


def test_local_needs_no_ssh() -> None:
    host = open_host("head", HostSpec("", local=True))
    assert (host.where, host.address) == ("head (this machine)", "127.0.0.1")
    with pytest.raises(ConnectionError):
        host.dial("127.0.0.1", 1, timeout_s=1)
