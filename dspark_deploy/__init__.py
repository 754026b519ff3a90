"""Serve DeepSeek-V4-Flash on a pair of DGX Sparks."""

__version__ = "0.1.0"
