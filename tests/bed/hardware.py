"""What the bed adds to a machine that looks like a DGX Spark, whose files are those of the rehearsal.

The folder with RDMA ports and the file with the memory lie outside of the node, so a test changes them while it runs.
"""

from __future__ import annotations

from pathlib import Path

from dspark_deploy.rehearsal import machine
from dspark_deploy.rehearsal.machine import meminfo, set_port_state, write_infiniband

__all__ = [
    "IBDEV2NETDEV",
    "NVIDIA_HOOK",
    "NVIDIA_SMI",
    "RUNC",
    "SOURCES",
    "meminfo",
    "set_port_state",
    "write_infiniband",
]

_PROGRAMS = Path(machine.__file__).with_name("bin")
IBDEV2NETDEV = (_PROGRAMS / "ibdev2netdev").read_text()
NVIDIA_SMI = (_PROGRAMS / "nvidia-smi").read_text()

# dockerd offers its nvidia driver when it finds this program; an exit code of 0 is a GPU that could be attached.
NVIDIA_HOOK = """#!/bin/sh
if [ -f /run/bed-gpu-error ]; then
    cat /run/bed-gpu-error >&2
    exit 1
fi
"""

# A machine without CAP_SYS_RESOURCE can't grant `memlock: -1`: lower the wish to what there is, before runc sees it.
RUNC = """#!/bin/sh
most=$(ulimit -H -l)
if [ "$most" != unlimited ]; then
    most=$((most * 1024)) verb= bundle= process= last=
    for word in "$@"; do
        case $word in create|run|exec) verb=${verb:-$word} ;; esac
        case $last in --bundle|-b) bundle=$word ;; --process|-p) process=$word ;; esac
        case $word in --bundle=*) bundle=${word#*=} ;; --process=*) process=${word#*=} ;; esac
        last=$word
    done
    file=$process
    [ "$verb" = exec ] || file=$bundle/config.json
    if [ -n "$verb" ] && [ -f "$file" ]; then
        wish='"RLIMIT_MEMLOCK","hard":[0-9]*,"soft":[0-9]*'
        sed -i "s/$wish/\\"RLIMIT_MEMLOCK\\",\\"hard\\":$most,\\"soft\\":$most/" "$file"
    fi
fi
exec @RUNC@ "$@"
"""

_FILES = (Path(__file__), Path(machine.__file__), *sorted(_PROGRAMS.iterdir()))
SOURCES = b"".join(path.read_bytes() for path in _FILES)
"""All that this says, as bytes: what is made from it is made anew when any of it changes."""
