"""The stand-in engine: what `vllm serve` is to everything outside of it, without a model or a GPU.

`vllm.py`, its siblings `vllm_*.py`, this file and the `.tsv` tables are copied side by side into images and sandboxes,
where the dspark package is not installed. They use the standard library only (Python 3.10 and newer). `package_tree.py`
and `snapshots.py` stay here: they write what surrounds the engine, the package tree that `serve.sh` prepares and small
model snapshots in the hub layout.
"""
