"""A program of its own that checks certificates: ``python -m yzflow_enclose.verifier FILE``.

It shares no code with what makes them, and its files run in a folder by themselves, with python-flint alone.
"""
