"""The fault sweep: each command that changes a pair, stopped after each of its remote steps in each way there is.

`nodes.py` is an embedded pair in a process of its own that numbers what is done on it, holds a step's answer back when
told to, and can be broken; `side.py` drives it and runs the tool beside it; `points.py` says what is stopped where;
`judge.py` plays one point and holds it to what was promised. `python -m tests.sweep` plays all of them.
"""
