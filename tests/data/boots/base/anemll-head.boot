# The head of a pair that serves preview or 0731 on the anemll family. One line: SECONDS PROCESS LEVEL SOURCE MESSAGE.
== start
0 A INFO api_utils.py:339
0 A INFO api_utils.py:339        █     █     █▄   ▄█
0 A INFO api_utils.py:339  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.25.2.dev0+g752a3a504.d20260714
0 A INFO api_utils.py:339   █▄█▀ █     █     █     █  model   {model}
0 A INFO api_utils.py:339    ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀
0 A INFO api_utils.py:273 non-default args: {{'model_tag': '{model}', 'default_chat_template_kwargs': {{'thinking': True, 'reasoning_effort': 'max'}}, 'enable_auto_tool_choice': True, 'tool_call_parser': 'deepseek_v4', 'host': '0.0.0.0', 'port': 8888, 'model': '{model}', 'tokenizer_mode': 'deepseek_v4', 'trust_remote_code': True, {revision}'max_model_len': {length}, 'served_model_name': ['deepseek-v4-flash-dspark'], 'reasoning_parser': 'deepseek_v4', 'master_addr': '{master}', 'master_port': 25000, 'nnodes': 2, 'tensor_parallel_size': 2, 'block_size': 256, 'gpu_memory_utilization': {util}, 'kv_cache_dtype': 'nvfp4_ds_mla', 'enable_prefix_caching': True, 'max_num_batched_tokens': 8192, 'max_num_seqs': {seqs}, 'async_scheduling': True, 'moe_backend': 'flashinfer_b12x', 'enable_flashinfer_autotune': True, 'speculative_config': {{'method': 'dspark', 'num_speculative_tokens': {drafts}, 'draft_sample_method': 'probabilistic'}}}}
== environment
0 A WARNING envs.py:2055 Unknown vLLM environment variable detected: VLLM_BUILD_URL
0 A WARNING envs.py:2055 Unknown vLLM environment variable detected: VLLM_IMAGE_TAG
0 A WARNING envs.py:2055 Unknown vLLM environment variable detected: VLLM_BUILD_PIPELINE
0 A WARNING envs.py:2055 Unknown vLLM environment variable detected: VLLM_BUILD_COMMIT
0 A INFO config.py:742 Detected quantization_config.scale_fmt=ue8m0; enabling UE8M0 for DeepGEMM.
== model
1 A INFO model.py:619 Resolved architecture: DeepseekV4ForCausalLM
0 A INFO model.py:1776 Using max model len {length}
0 A INFO cache.py:287 Using nvfp4_ds_mla data type to store kv cache. It reduces the GPU memory footprint and boosts the performance. Meanwhile, it may cause accuracy drop without a proper scaling factor
0 A INFO arg_utils.py:2026 Inferred data_parallel_rank 0 from node_rank 0
0 A INFO model.py:619 Resolved architecture: DeepSeekV4MTPModel
0 A INFO speculative.py:1040 Overriding draft model max model len from 1048576 to {length}
== scheduler
0 A INFO scheduler.py:252 Chunked prefill is enabled with max_num_batched_tokens=8192.
0 A INFO vllm.py:1042 Asynchronous scheduling is enabled.
0 A WARNING vllm.py:1648 max_num_scheduled_tokens is set to 8168 based on the speculative decoding settings. This may lead to suboptimal performance. Consider increasing max_num_batched_tokens to accommodate the additional draft token slots, or decrease num_speculative_tokens or max_num_seqs.
0 A WARNING vllm.py:2149 Model Runner V2 does not yet support the thinking_token_budget request parameter. Set VLLM_USE_V2_MODEL_RUNNER=0 if this is required.
== engine
4 E INFO core.py:114 Initializing a V1 LLM engine (v0.25.2.dev0+g752a3a504.d20260714) with config: model='{model}', speculative_config=SpeculativeConfig(method='dspark', model='{model}', num_spec_tokens={drafts}), tokenizer='{model}', skip_tokenizer_init=False, tokenizer_mode=deepseek_v4, trust_remote_code=True, dtype=torch.bfloat16, max_seq_len={length}, load_format=auto, tensor_parallel_size=2, quantization=deepseek_v4_fp8, enforce_eager=False, kv_cache_dtype=nvfp4_ds_mla, device_config=cuda
0 E WARNING multiproc_executor.py:1067 Reducing Torch parallelism from 20 threads to 1 to avoid unnecessary CPU contention. Set OMP_NUM_THREADS in the external environment to tune this value as needed.
0 E INFO multiproc_executor.py:140 DP group leader: node_rank=0, node_rank_within_dp=0, master_addr={master}, mq_connect_ip={master} (local), world_size=2, local_world_size=1
== rendezvous
3 W INFO parallel_state.py:1607 world_size=2 rank=0 local_rank=0 distributed_init_method=tcp://{master}:25000 backend=nccl
== nccl
1 W INFO pynccl.py:113 vLLM is using nccl==2.30.7
0 @nccl {nccl}
3 W WARNING symm_mem.py:66 SymmMemCommunicator: Device capability 12.1 not supported, communicator is not available.
0 W INFO cuda_communicator.py:264 Using ['PYNCCL'] all-reduce backends (in dispatch order) for group 'tp:0' out of potential backends: ['NCCL_SYMM_MEM', 'QUICK_REDUCE', 'FLASHINFER', 'AITER_CUSTOM', 'CUSTOM', 'SYMM_MEM', 'PYNCCL'].
1 W INFO parallel_state.py:1942 rank 0 in world size 2 is assigned as DP rank 0, PP rank 0, PCP rank 0, TP rank 0, EP rank 0, EPLB rank N/A
0 W INFO gpu_worker.py:360 Using V2 Model Runner
== load
1 T INFO model_runner.py:281 Loading model from scratch...
0 T INFO quant_config.py:75 DeepSeek V4 expert_dtype resolved to 'fp4'
0 T INFO deep_gemm.py:202 DeepGEMM PDL enabled on vllm.third_party.deep_gemm.
0 T INFO attention.py:87 Using DeepSeek V4 padded nvfp4_ds_mla KV cache format.
0 T INFO mxfp4.py:426 Using 'B12X_MXFP4' Mxfp4 MoE backend.
0 T INFO attention.py:712 Using FP8 indexer cache for Lightning Indexer.
3 T INFO weight_utils.py:849 Filesystem type for checkpoints: EXT4. Checkpoint size: 155.43 GiB. Available RAM: 34.17 GiB.
0 T INFO weight_utils.py:879 Auto-prefetch is disabled because the filesystem (EXT4) is not a recognized network FS (NFS/Lustre) and the checkpoint size (155.43 GiB) exceeds 90% of available RAM (34.17 GiB).
== shards
0 @shards 48 {weights}
0 T INFO default_loader.py:430 Loading weights took {weights} seconds
== prewarm
10 T INFO b12x_mxfp4_moe.py:465 Prewarmed B12X route-pack capacities (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192) on cuda:0 (experts=256, topk=6)
== draft
12 T INFO eagle3_utils.py:28 Using Eagle3 auxiliary layers from config: (41, 42, 43)
1 T INFO weight_utils.py:849 Filesystem type for checkpoints: EXT4. Checkpoint size: 155.43 GiB. Available RAM: 31.02 GiB.
0 @shards 48 30.44
0 T INFO dspark.py:457 DSpark draft model loaded: 96 params
0 T INFO default_loader.py:430 Loading weights took 30.44 seconds
== loaded
3 T INFO model_runner.py:302 Model loading took 79.17 GiB and 201.652877 seconds
0 T INFO topk_topp_sampler.py:55 Using FlashInfer for top-p & top-k sampling.
== profile
3 @tilelang 4
== kv
4 T INFO gpu_worker.py:538 Available KV cache memory: {head_gib} GiB
0 E INFO kv_cache_utils.py:2146 GPU KV cache size: {pool} tokens
0 E INFO kv_cache_utils.py:2147 Maximum concurrency for {length:,} tokens per request: {ratio}x
0 T INFO indexer.py:297 DSA indexer decode path: use_flattening=True (next_n=6, use_fp4_indexer_cache=False)
== warmup
7 T INFO flashinfer_sparse_mla_warmup.py:233 Warming up DeepSeek V4 sparse MLA attention for mixed tokens=16.
0 T INFO flashinfer_sparse_mla_warmup.py:124 Autotuning FlashInfer SM120 sparse MLA DSv4 decode with cache: /cache/huggingface/vllm-cache/flashinfer_autotune_cache/0.6.15/121a/autotune_configs.json
13 F autotuner.py:2177 flashinfer.jit: [Autotuner]: Loaded 24 configs from /cache/huggingface/vllm-cache/flashinfer_autotune_cache/0.6.15/121a/autotune_configs.json
0 F autotuner.py:757 flashinfer.jit: [Autotuner]: Autotuning process starts ...
0 @tilelang 4
7 F autotuner.py:780 flashinfer.jit: [Autotuner]: Autotuning process ends
0 @bar DeepGEMM warmup|1762
9 T INFO cutedsl_warmup.py:97 Skipping CuTeDSL warmup because no compile units were requested.
== capture
0 @bar Capturing CUDA graphs (PIECEWISE)|12
4 @bar Capturing CUDA graphs (FULL)|10
8 T INFO speculator.py:101 Capturing model for DSpark speculator...
0 T INFO model_runner.py:722 Graph capturing finished in 13 secs, took 1.95 GiB
0 @bar Capturing dspark CUDA graphs (FULL)|8
== ready
7 T INFO jit_monitor.py:73 Kernel JIT monitor activated; monitored JIT compilations during inference will use mode=warn.
1 E INFO core.py:344 init engine (profile, create kv cache, warmup model) took 87.49 s
== server
2 A INFO api_server.py:612 Supported tasks: ['generate']
1 A INFO parser_manager.py:37 "auto" tool choice has been enabled.
0 A INFO api_server.py:616 Starting vLLM server on http://0.0.0.0:8888
0 @routes
0 U Started server process [1]
0 U Waiting for application startup.
0 U Application startup complete.
== serving
5 U 10.77.0.254:50570 - "GET /v1/models HTTP/1.1" 200 OK
5 U 10.77.0.254:50571 - "POST /v1/chat/completions HTTP/1.1" 200 OK
0 @serve {serve}
