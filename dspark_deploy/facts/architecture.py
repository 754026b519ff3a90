"""What a machine's architecture is called."""

_OF_IMAGES = {"aarch64": "arm64", "x86_64": "amd64"}


def of_images(machine: str) -> str:
    """`uname -m` -> what an image made for such a machine says in its own architecture field."""
    return _OF_IMAGES.get(machine, machine)
