"""An embedded pair: two nodes with SSH and a Docker engine in one background process, on any machine with Python.

`pair.py` finds, starts and ends that process; `background.py` is it. A node (`node.py`) is a sandbox folder with an
SSH server (`sshd.py`), a machine to look at (`machine.py`), an engine (`engine.py`, `engine_http.py`) that runs
containers as plain processes (`containers.py`), and the command `docker` (`docker.py`, `compose.py`). What can be
broken stands in `scenarios.yaml`. The tool's own side knows nothing of all this: it is given an inventory and an ssh
config like any other.
"""
