"""A node's Docker engine: the docker SDK over `docker system dial-stdio` on the node's own connection.

So the engine is reached as the docker command of the SSH user reaches it, whatever its context and socket are, and no
port is opened anywhere. The SDK borrows the connection and never closes it.
"""

from __future__ import annotations

import email.utils
import json
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http import HTTPStatus

import docker
import docker.errors
import requests.exceptions
from urllib3 import HTTPResponse

from dspark_deploy.errors import StepFailed
from dspark_deploy.facts import labels
from dspark_deploy.facts.containers import parse_container
from dspark_deploy.facts.node import Container
from dspark_deploy.facts.stamps import SECOND, nanoseconds
from dspark_deploy.remote.dialed import ANSWER_S, DialedAdapter, DialedConnection
from dspark_deploy.remote.enginestreams import EngineEvents, EngineLogs
from dspark_deploy.remote.host import Logs
from dspark_deploy.remote.program import PipedHost

OLDEST_API = "1.40"  # docker 19.03; spoken until the engine has told its own
STOP_GRACE_S = 10  # the engine's own, where a container has none
GONE_S, GONE_TURN_S = 15.0, 0.2  # a removal that somebody else began


class DockerEngine:
    """See host.Engine. Opens its connection at the first question; any thread may ask."""

    def __init__(self, host: PipedHost) -> None:
        self._host = host
        self._opened: docker.APIClient | None = None
        self._lock = threading.Lock()

    def containers(self, pair: str) -> tuple[Container, ...]:
        """See Engine."""
        with self._asking("list containers") as client:
            found = client.containers(all=True, filters={"label": f"{labels.PAIR}={pair}"})
        inspected = (self.inspect(each["Id"]) for each in found)
        return tuple(container for container in inspected if container is not None)

    def inspect(self, container_id: str) -> Container | None:
        """See Engine."""
        with self._asking("inspect a container") as client:
            try:
                return parse_container(client.inspect_container(container_id))
            except docker.errors.NotFound:
                return None

    def stop(self, container: Container) -> None:
        """See Engine. Raises StepFailed where it is still there afterwards."""
        grace_s = STOP_GRACE_S if container.stop_timeout_s is None else container.stop_timeout_s
        with self._asking(f"stop {container.name}") as client:
            try:
                client.stop(container.id, timeout=grace_s)
                client.remove_container(container.id, v=True, force=True)
            except docker.errors.NotFound:
                return
            except docker.errors.APIError as error:
                if error.status_code != HTTPStatus.CONFLICT:  # somebody else removes it
                    raise
        self._await_gone(container)

    def logs(
        self, container_id: str, *, follow: bool = False, since_s: float | None = None, tail: int | None = None
    ) -> Logs:
        """See Engine."""
        with self._asking("read a log") as client:
            query: dict[str, int | str] = {"stdout": 1, "stderr": 1, "timestamps": 1, "follow": int(follow)}
            query["tail"] = "all" if tail is None else tail
            if since_s is not None:
                query["since"] = f"{self._node_time(client) - since_s:.3f}"
            connection, response = self._stream("read a log", client, f"containers/{container_id}/logs", query)
        if follow:  # quiet for long is no fault then; a dead link ends it, see ssh.py
            connection.be_patient()
        return EngineLogs(connection, response, self._host.api_key)

    def events(self, pair: str) -> EngineEvents:
        """See Engine."""
        with self._asking("tell what happens") as client:
            wanted = {"type": ["container"], "label": [f"{labels.PAIR}={pair}"]}
            connection, response = self._stream("tell what happens", client, "events", {"filters": json.dumps(wanted)})
        connection.be_patient()
        return EngineEvents(connection, response)

    def image_id(self, reference: str) -> str | None:
        """See Engine."""
        with self._asking(f"look up {reference}") as client:
            try:
                found = client.inspect_image(reference)  # type: ignore[no-untyped-call]  # the stubs miss it
                return str(found["Id"])
            except docker.errors.NotFound:
                return None

    def time_s(self) -> float:
        """See Engine. Of the engine's own account of its machine, which is exact to the nanosecond."""
        with self._asking("tell the time") as client:
            return nanoseconds(str(client.info()["SystemTime"])) / SECOND

    def close(self) -> None:
        """Drop what is open. The node's connection stays."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def _stream(
        self, what: str, client: docker.APIClient, path: str, query: Mapping[str, int | str]
    ) -> tuple[DialedConnection, HTTPResponse]:
        """An answer that is read as it comes, on a connection of its own, so that any thread may end it."""
        connection = DialedConnection(self._host)
        with ExitStack() as failing:
            failing.callback(connection.hang_up)
            response = connection.ask(f"/v{client.api_version}/{path}?{urllib.parse.urlencode(query)}")
            if response.status != HTTPStatus.OK:
                raise self._failed(what, response.data.decode(errors="replace"))
            failing.pop_all()
        return connection, response

    def _await_gone(self, container: Container) -> None:
        deadline = time.monotonic() + GONE_S
        while (left := self.inspect(container.id)) is not None:
            if time.monotonic() > deadline:
                raise self._failed(f"remove {container.name}", f"it is still there after {GONE_S:g} s, {left.state}")
            time.sleep(GONE_TURN_S)

    def _node_time(self, client: docker.APIClient) -> float:
        """The node's clock, to the second, as every answer of the engine carries it."""
        response = client.get(f"{client.base_url}/_ping", timeout=ANSWER_S)
        return email.utils.parsedate_to_datetime(response.headers["Date"]).timestamp()

    @contextmanager
    def _asking(self, what: str) -> Iterator[docker.APIClient]:
        """The client, for one question; what goes wrong becomes an error that names node and question."""
        try:
            yield self._client()
        except (requests.exceptions.Timeout, TimeoutError) as error:
            raise self._failed(what, f"the docker daemon gave no answer within {ANSWER_S:g} s") from error
        except docker.errors.APIError as error:
            raise self._failed(what, error.explanation or str(error)) from error
        except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
            raise (self._host.lost() or self._failed(what, str(error))) from error

    def _client(self) -> docker.APIClient:
        with self._lock:
            if self._opened is None:
                adapter = DialedAdapter(self._host)
                version = _client(adapter, OLDEST_API).version(api_version=False)["ApiVersion"]
                self._opened = _client(adapter, version)
            return self._opened

    def _failed(self, what: str, why: str) -> StepFailed:
        return StepFailed(
            f"{self._host.where}: docker could not {what}",
            why=why.strip(),
            remedy=f"look at `docker ps -a` and `journalctl -u docker` on the {self._host.name}",
            node=self._host.name,
        )


def _client(adapter: DialedAdapter, version: str) -> docker.APIClient:
    # With use_ssh_client the SDK opens nothing by itself; its adapter is then replaced by ours.
    client = docker.APIClient(base_url="ssh://node", version=version, timeout=int(ANSWER_S), use_ssh_client=True)
    client.trust_env = False  # the controller's proxies and .netrc have no say
    client.mount(client.base_url, adapter)
    return client
