# The head on the stage-c family: an older source tree, other wording in places, its own switches are known to it.
== start
0 A INFO utils.py:299
0 A INFO utils.py:299        █     █     █▄   ▄█
0 A INFO utils.py:299  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.19.2rc1.dev134+gfe9c3d6c5.dspark
0 A INFO utils.py:299   █▄█▀ █     █     █     █  model   {model}
0 A INFO utils.py:233 non-default args: {{'model_tag': '{model}', 'enable_auto_tool_choice': True, 'tool_call_parser': 'deepseek_v4', 'host': '0.0.0.0', 'port': 8888, 'model': '{model}', 'tokenizer_mode': 'deepseek_v4', 'trust_remote_code': True, {revision}'max_model_len': {length}, 'served_model_name': ['deepseek-v4-flash-dspark'], 'reasoning_parser': 'deepseek_v4', 'master_addr': '{master}', 'master_port': 25000, 'nnodes': 2, 'tensor_parallel_size': 2, 'block_size': 256, 'gpu_memory_utilization': {util}, 'kv_cache_dtype': 'nvfp4_ds_mla', 'max_num_batched_tokens': 8192, 'max_num_seqs': {seqs}, 'speculative_config': {{'method': 'dspark', 'num_speculative_tokens': {drafts}}}}}
== environment
0 A WARNING envs.py:1801 Unknown vLLM environment variable detected: VLLM_TRITON_MLA_SPARSE
0 A WARNING envs.py:1801 Unknown vLLM environment variable detected: VLLM_SKIP_INIT_MEMORY_CHECK
== model
9 A INFO model.py:540 Resolved architecture: DeepseekV4ForCausalLM
0 A INFO model.py:1661 Using max model len {length}
0 A INFO cache.py:216 Using nvfp4_ds_mla data type to store kv cache. It reduces the GPU memory footprint and boosts the performance.
0 A INFO model.py:540 Resolved architecture: DeepSeekV4MTPModel
== scheduler
0 A INFO scheduler.py:231 Chunked prefill is enabled with max_num_batched_tokens=8192.
0 A INFO vllm.py:689 Asynchronous scheduling is enabled.
== engine
11 E INFO core.py:107 Initializing a V1 LLM engine (v0.19.2rc1.dev134+gfe9c3d6c5.dspark) with config: model='{model}', tokenizer='{model}', tokenizer_mode=deepseek_v4, max_seq_len={length}, tensor_parallel_size=2, kv_cache_dtype=nvfp4_ds_mla
0 E INFO multiproc_executor.py:134 DP group leader: node_rank=0, node_rank_within_dp=0, master_addr={master}, mq_connect_ip={master} (local), world_size=2, local_world_size=1
== rendezvous
4 W INFO parallel_state.py:1234 world_size=2 rank=0 local_rank=0 distributed_init_method=tcp://{master}:25000 backend=nccl
== nccl
2 W INFO pynccl.py:111 vLLM is using nccl==2.28.9
0 @nccl {nccl}
4 W INFO parallel_state.py:1464 rank 0 in world size 2 is assigned as DP rank 0, PP rank 0, PCP rank 0, TP rank 0, EP rank 0, EPLB rank N/A
== load
1 T INFO gpu_model_runner.py:4722 Starting to load model {model}...
0 T INFO attention.py:104 Using probe DeepSeek V4 nvfp4_ds_mla KV cache format
3 T INFO weight_utils.py:618 Filesystem type for checkpoints: EXT4. Checkpoint size: 155.43 GiB. Available RAM: 33.10 GiB.
== shards
0 @shards 46 {weights}
0 T INFO default_loader.py:384 Loading weights took {weights} seconds
== prewarm
== draft
0 T INFO dspark.py:221 DSpark draft model loaded: 96 params
0 T INFO default_loader.py:384 Loading weights took 33.02 seconds
== loaded
3 T INFO gpu_model_runner.py:4879 Model loading took 79.6 GiB memory and 188.412331 seconds
== profile
8 @tilelang 6
== kv
21 T INFO gpu_worker.py:456 Available KV cache memory: {head_gib} GiB
0 E INFO kv_cache_utils.py:1307 GPU KV cache size: {pool} tokens
0 E INFO kv_cache_utils.py:1312 Maximum concurrency for {length:,} tokens per request: {ratio}x
== warmup
0 @bar DeepGEMM warmup|1762
== capture
9 @bar Capturing CUDA graphs (mixed prefill-decode, PIECEWISE)|12
4 @bar Capturing CUDA graphs (decode, FULL)|10
3 T INFO gpu_model_runner.py:5821 Graph capturing finished in 16 secs, took 2.10 GiB
== ready
5 E INFO core.py:301 init engine (profile, create kv cache, warmup model) took 93.71 seconds
== server
1 A INFO api_server.py:580 Supported tasks: ['generate']
0 A INFO api_server.py:1346 Starting vLLM API server 0 on http://0.0.0.0:8888
0 @routes
0 U Started server process [1]
0 U Waiting for application startup.
0 U Application startup complete.
== serving
3 U 10.77.0.254:41212 - "GET /v1/models HTTP/1.1" 200 OK
0 @serve {serve}
