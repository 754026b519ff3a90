#!/bin/bash
# The container's first process: sets the image's paths, prepares its vllm package, then becomes vllm.
# Rendered by dspark 0.1.0 for the image family stage-c. Don't edit it: the next release replaces it.
# Its arguments are vllm's, from compose.yaml. Its own exit codes, 40 to 49, stand in docs/preparation.md.
set -euo pipefail

readonly family=stage-c
readonly image=vllm-dspark-runtime:mia-raf-pr1-nvfp4-keys-c
readonly executable=/opt/env/bin/vllm
readonly python=/opt/env/bin/python
readonly packages=/opt/env/lib/python3.12/site-packages

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

export PATH=/opt/env/bin:/opt/env/nvvm/bin:/opt/env/targets/sbsa-linux/nvvm/bin"${PATH:+:$PATH}"
export LD_LIBRARY_PATH=/opt/env/lib:/opt/env/targets/sbsa-linux/lib"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export CUDA_HOME=/opt/env/targets/sbsa-linux
export CUDA_PATH=/opt/env/targets/sbsa-linux
export CUDAToolkit_ROOT=/opt/env/targets/sbsa-linux

steps=(
)
# A step that fails ends the container here, with that step's exit code. What the image's .pth files start is not needed.
"$python" -I -S "${BASH_SOURCE[0]%/*}/prepare.py" --family "$family" --image "$image" --packages "$packages" "${steps[@]}"

exec "$executable" "$@"
