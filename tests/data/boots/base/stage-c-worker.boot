# The worker on the stage-c family.
== start
== environment
0 P WARNING envs.py:1801 Unknown vLLM environment variable detected: VLLM_TRITON_MLA_SPARSE
0 P WARNING envs.py:1801 Unknown vLLM environment variable detected: VLLM_SKIP_INIT_MEMORY_CHECK
== model
8 P INFO model.py:540 Resolved architecture: DeepseekV4ForCausalLM
0 P INFO model.py:1661 Using max model len {length}
0 P INFO model.py:540 Resolved architecture: DeepSeekV4MTPModel
== scheduler
0 P INFO scheduler.py:231 Chunked prefill is enabled with max_num_batched_tokens=8192.
== engine
2 P INFO serve.py:165 Launching vLLM (v0.19.2rc1.dev134+gfe9c3d6c5.dspark) headless multiproc executor, with head node address {master}:25000 for torch.distributed process group.
== rendezvous
5 W INFO parallel_state.py:1234 world_size=2 rank=1 local_rank=0 distributed_init_method=tcp://{master}:25000 backend=nccl
== nccl
12 @nccl {nccl}
1 W INFO parallel_state.py:1464 rank 1 in world size 2 is assigned as DP rank 0, PP rank 0, PCP rank 0, TP rank 1, EP rank 1, EPLB rank N/A
== load
1 T INFO gpu_model_runner.py:4722 Starting to load model {model}...
0 T INFO attention.py:104 Using probe DeepSeek V4 nvfp4_ds_mla KV cache format
== shards
120 T INFO default_loader.py:384 Loading weights took 118.20 seconds
== prewarm
== draft
30 T INFO dspark.py:221 DSpark draft model loaded: 96 params
0 T INFO default_loader.py:384 Loading weights took 29.87 seconds
== loaded
3 T INFO gpu_model_runner.py:4879 Model loading took 79.6 GiB memory and 161.220113 seconds
== profile
30 @tilelang 6
== kv
20 T INFO gpu_worker.py:456 Available KV cache memory: {worker_gib} GiB
== warmup
== capture
16 T INFO gpu_model_runner.py:5821 Graph capturing finished in 16 secs, took 1.31 GiB
== ready
5 T INFO jit_monitor.py:58 Kernel JIT monitor activated; monitored JIT compilations during inference will use mode=warn.
== server
== serving
60 @tilelang 2
