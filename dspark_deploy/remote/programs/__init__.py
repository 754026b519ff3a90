"""Programs that run on a node: standard library only, Python 3.10 and newer, sent as text with every call.

`remote/program.py` sends a program together with the modules of this folder that it imports. Each is an ordinary
module here, so that the type checker and the tests see it. Their start is paid for at every step of a run: they
import little (no pathlib, no typing, no subprocess), and `from __future__ import annotations` keeps it so.
"""
