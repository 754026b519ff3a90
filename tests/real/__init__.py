"""dspark over real vLLM: two CPU ranks on the two-host bed. `make test-real` runs these."""
