"""Every public callable of this distribution with hostile values, and with those that a rule forbids."""

from pathlib import Path

from hostile import OfCalls, Table


class TestCalls(OfCalls):
    TABLE = Table(["yzflow_beyond_scan_and_snap"], Path(__file__).with_name("calls.py"))
