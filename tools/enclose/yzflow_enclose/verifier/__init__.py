"""An independent program that checks certificates: ``python -m yzflow_enclose.verifier FILE``.

It shares no code with their maker, and its files run in a folder by themselves, with python-flint alone.
"""
