"""Pure: what fits and how fast it is, from published measurements and the runtime's own arithmetic."""
