"""What a release serves and how its start is recognised. Stands in the manifest, so that a node can be asked later."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dspark_deploy.plan.deployment import Deployment, Endpoint


@dataclass(frozen=True, slots=True)
class Served:
    """Everything that starting, watching and proving a release needs, its files aside."""

    pair: str
    profile: str
    family: str
    image: str
    model: str  # as it stands on the command line
    served_name: str
    max_model_len: int  # tokens
    bind: str
    port: int
    master_address: str
    master_port: int
    rendezvous_marker: str
    keyed: bool = False  # the API asks for a key

    @property
    def endpoint(self) -> Endpoint:
        """Where the head listens."""
        return Endpoint(self.bind, self.port)

    def document(self) -> dict[str, Any]:
        """As plain data, for the manifest. Of a release without a key it is what it was before there were any."""
        document = asdict(self)
        if not self.keyed:
            del document["keyed"]
        return document

    def base_url(self, management_address: str) -> str:
        """What an OpenAI client is given: the bind address, or the head's own where that is a wildcard."""
        wildcard = self.endpoint.probe_address != self.bind
        host = management_address if wildcard else self.bind
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/v1"


def served_by(deployment: Deployment) -> Served:
    """What `deployment` will serve."""
    return Served(
        pair=deployment.pair,
        profile=deployment.profile.name,
        family=deployment.family.name,
        image=deployment.image,
        model=deployment.model.id or str(deployment.model.directory),
        served_name=deployment.served_name,
        max_model_len=deployment.profile.max_model_len,
        bind=deployment.api.bind,
        port=deployment.api.port,
        master_address=str(deployment.head.address),
        master_port=deployment.master_port,
        rendezvous_marker=deployment.family.rendezvous_marker,
        keyed=deployment.keyed,
    )
