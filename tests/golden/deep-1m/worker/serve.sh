#!/bin/bash
# The container's first process: sets the image's paths, prepares its vllm package, then becomes vllm.
# Rendered by dspark 0.1.0 for the image family anemll. Don't edit it: the next release replaces it.
# Its arguments are vllm's, from compose.yaml. Its own exit codes, 40 to 49, stand in docs/preparation.md.
set -euo pipefail

readonly family=anemll
readonly image=ghcr.io/anemll/dspark-vllm-gx10:0.1.1
readonly executable=/usr/local/bin/vllm
readonly python=/usr/bin/python3
readonly packages=/usr/local/lib/python3.12/dist-packages

refuse() {  # refuse CODE LINE...
  printf 'dspark serve: FATAL: %s\n' "${@:2}" "exit code $1: see docs/preparation.md" >&2
  exit "$1"
}

foreign() {  # foreign CODE PATH: what the family's images have is not here, so this is none of them
  refuse "$1" "$2 is not in the image $image" \
    "rendered for the image family $family: use --family, or put an image of that family under the tag" \
    "what the image says of itself: VLLM_IMAGE_TAG=${VLLM_IMAGE_TAG-}, vllm on PATH: $(type -P vllm || echo none)"
}

(($# > 0)) || refuse 40 'called without the arguments of vllm'
[[ -x $executable ]] || foreign 43 "$executable"
[[ -d $packages/vllm ]] || foreign 42 "$packages/vllm"
[[ -x $python ]] || foreign 41 "$python"

export PATH=/usr/local/cuda/bin:/usr/local/bin"${PATH:+:$PATH}"
export LD_LIBRARY_PATH=/usr/local/cuda/lib64"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export CUDA_HOME=/usr/local/cuda
export CUDA_PATH=/usr/local/cuda
export CUDAToolkit_ROOT=/usr/local/cuda

steps=(
  # the checkpoint ships its own encoder
  --encoder deepseek-ai/DeepSeek-V4-Flash-0731
  --revision 9e165c30e2704aec5d9d593cce3eebd58bbef1cb
  # which knows low, high and max; the image's wrapper makes low high
  --effort
  # nvfp4_ds_mla gets the kernel of fp8_ds_mla: without it, 1 token/s beyond 600K (F95)
  --kv-dispatch
)
# A step that fails ends the container here, with that step's exit code. What the image's .pth files start is not needed.
"$python" -I -S "${BASH_SOURCE[0]%/*}/prepare.py" --family "$family" --image "$image" --packages "$packages" "${steps[@]}"

exec "$executable" "$@"
