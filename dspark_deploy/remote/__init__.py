"""Talking to a node: the only room that opens a connection or starts a process."""
