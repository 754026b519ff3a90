#!/usr/bin/env python3
"""A stand-in for the `vllm` command: everything that is seen from outside, without a model or a GPU.

`vllm serve MODEL ...` refuses what the real one refuses, meets its peer over TCP, prints a boot log, and serves the
OpenAI API from rank 0. `vllm --version` prints the version of the family it stands for.

What the host must offer is read from the environment as the real engine does. Four names are the stand-in's own:

    DSPARK_STANDIN_FAMILY       anemll or stage-c; without it the file `family` beside this one is read
    DSPARK_STANDIN_ROOT         a folder that stands for / (HF_HOME, model directories, /dev/infiniband)
    DSPARK_STANDIN_ADDRESS_MAP  JSON: {"local": {"enp1s0f0np0": "192.168.177.11"},
                                       "endpoints": {"192.168.177.11:25000": "127.0.0.1:40001"}}
                                the interfaces this host is to have, and what is bound or dialled instead of an address
    DSPARK_STANDIN_PARENT_FD    a descriptor; the engine ends when it reads end of file there

Switches stand in `.stub.json` in HF_HOME, which every deployment mounts. Those marked * are read again at each use. A
section named "0" or "1" holds for that rank only, one named "anemll" or "stage-c" for that image only.

    time_scale *       follow a real pair's times, divided by this: boot, requests, load_s (as fast as it goes)
    load_s             seconds that loading takes on this rank (0, or as on a real pair)
    die_at, hang_at *  a phase: start arguments environment model scheduler engine rendezvous nccl load shards draft
                       loaded profile kv warmup capture ready server serving
    die_after_s        seconds from the start of that phase to the death (0)
    say_at, say        a phase, and a line that is printed as it begins
    exit_code          of a death by switch (1)
    die_message        what it prints last
    gid_index          the RoCE v2 index of this host; another NCCL_IB_GID_INDEX is refused
    pool_tokens        size of the KV pool, instead of one that follows from the arguments
    never_rendezvous * rank 1 hangs before it tries to meet its peer
    head_never_answers rank 0 boots and never opens its API
    api *              ok, no_generate (requests hang), garbage, empty, error (500), or answers with one fault of the
                       quality gate's: drift, loop, markup, leak, truncated, mixed
    wedge_after *      how many requests are answered before all that follow hang
    first_token_s *    seconds from a request's begin to its first token (as fast as it goes)
    decode_tps *       tokens a second and request (as fast as it goes)
    prefill_tps *      prompt tokens a second (as fast as it goes)
    wrong_model_name * what /v1/models says instead of the served name
    wrong_max_model_len * what it says instead of the length
    broadcast_s        seconds until a hanging step is complained about (60)
    link_s             seconds without a sign of the peer until a step hangs (2)
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if not __package__:
    # Run as a program, from a folder of any name: make that folder the package its siblings are imported from.
    _here = Path(__file__).resolve().parent
    sys.path.insert(0, str(_here.parent))
    __package__ = _here.name

from .vllm_engine import main

if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # its threads are waiting on sockets: taking the interpreter down around them can crash
