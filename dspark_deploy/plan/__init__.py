"""Pure decisions: which rank, which HCA and GID, which environment and argv, and what can't work."""
