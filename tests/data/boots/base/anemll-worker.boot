# The worker of the same boot: its parent process prints without a prefix.
== start
== environment
0 P WARNING envs.py:2055 Unknown vLLM environment variable detected: VLLM_BUILD_URL
0 P WARNING envs.py:2055 Unknown vLLM environment variable detected: VLLM_IMAGE_TAG
0 P WARNING envs.py:2055 Unknown vLLM environment variable detected: VLLM_BUILD_PIPELINE
0 P WARNING envs.py:2055 Unknown vLLM environment variable detected: VLLM_BUILD_COMMIT
0 P INFO config.py:742 Detected quantization_config.scale_fmt=ue8m0; enabling UE8M0 for DeepGEMM.
== model
1 P INFO model.py:619 Resolved architecture: DeepseekV4ForCausalLM
0 P INFO model.py:1776 Using max model len {length}
0 P INFO cache.py:287 Using nvfp4_ds_mla data type to store kv cache. It reduces the GPU memory footprint and boosts the performance. Meanwhile, it may cause accuracy drop without a proper scaling factor
0 P INFO arg_utils.py:2026 Inferred data_parallel_rank 0 from node_rank 1
0 P INFO model.py:619 Resolved architecture: DeepSeekV4MTPModel
0 P INFO speculative.py:1040 Overriding draft model max model len from 1048576 to {length}
== scheduler
0 P INFO scheduler.py:252 Chunked prefill is enabled with max_num_batched_tokens=8192.
0 P INFO vllm.py:1042 Asynchronous scheduling is enabled.
0 P WARNING vllm.py:1648 max_num_scheduled_tokens is set to 8168 based on the speculative decoding settings. This may lead to suboptimal performance. Consider increasing max_num_batched_tokens to accommodate the additional draft token slots, or decrease num_speculative_tokens or max_num_seqs.
== engine
1 P INFO serve.py:212 Launching vLLM (v0.25.2.dev0+g752a3a504.d20260714) headless multiproc executor, with head node address {master}:25000 for torch.distributed process group.
== rendezvous
4 W INFO parallel_state.py:1607 world_size=2 rank=1 local_rank=0 distributed_init_method=tcp://{master}:25000 backend=nccl
== nccl
5 @nccl {nccl}
1 W WARNING symm_mem.py:66 SymmMemCommunicator: Device capability 12.1 not supported, communicator is not available.
1 W INFO parallel_state.py:1942 rank 1 in world size 2 is assigned as DP rank 0, PP rank 0, PCP rank 0, TP rank 1, EP rank 1, EPLB rank N/A
0 W INFO gpu_worker.py:360 Using V2 Model Runner
== load
1 T INFO model_runner.py:281 Loading model from scratch...
0 T INFO quant_config.py:75 DeepSeek V4 expert_dtype resolved to 'fp4'
0 T INFO attention.py:87 Using DeepSeek V4 padded nvfp4_ds_mla KV cache format.
0 T INFO mxfp4.py:426 Using 'B12X_MXFP4' Mxfp4 MoE backend.
0 T INFO attention.py:712 Using FP8 indexer cache for Lightning Indexer.
3 T INFO weight_utils.py:849 Filesystem type for checkpoints: EXT4. Checkpoint size: 155.43 GiB. Available RAM: 33.97 GiB.
== shards
97 T INFO default_loader.py:430 Loading weights took 97.02 seconds
== prewarm
10 T INFO b12x_mxfp4_moe.py:465 Prewarmed B12X route-pack capacities (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192) on cuda:0 (experts=256, topk=6)
== draft
12 T INFO eagle3_utils.py:28 Using Eagle3 auxiliary layers from config: (41, 42, 43)
26 T INFO dspark.py:457 DSpark draft model loaded: 96 params
0 T INFO default_loader.py:430 Loading weights took 26.59 seconds
== loaded
3 T INFO model_runner.py:302 Model loading took 79.17 GiB and 152.578286 seconds
== profile
53 @tilelang 4
== kv
4 T INFO gpu_worker.py:538 Available KV cache memory: {worker_gib} GiB
0 T INFO indexer.py:297 DSA indexer decode path: use_flattening=True (next_n=6, use_fp4_indexer_cache=False)
== warmup
7 T INFO flashinfer_sparse_mla_warmup.py:233 Warming up DeepSeek V4 sparse MLA attention for mixed tokens=16.
0 @tilelang 4
20 T INFO flashinfer_sparse_mla_warmup.py:181 FlashInfer SM120 sparse MLA DSv4 decode autotune cache loaded on rank 1 from /cache/huggingface/vllm-cache/flashinfer_autotune_cache/0.6.15/121a
0 F autotuner.py:757 flashinfer.jit: [Autotuner]: Autotuning process starts ...
9 F autotuner.py:780 flashinfer.jit: [Autotuner]: Autotuning process ends
== capture
12 T INFO speculator.py:101 Capturing model for DSpark speculator...
0 T INFO model_runner.py:722 Graph capturing finished in 13 secs, took 1.17 GiB
== ready
8 T INFO jit_monitor.py:73 Kernel JIT monitor activated; monitored JIT compilations during inference will use mode=warn.
== server
== serving
60 @tilelang 2
