"""Enclosures for tests of the core, which are skipped where yzflow-enclose is not installed."""

from typing import Any

import pytest


def enclose_flow(*arguments: Any, **options: Any) -> Any:
    return pytest.importorskip("yzflow_enclose").enclose_flow(*arguments, **options)


def long_enough(*arguments: Any, **options: Any) -> Any:
    return pytest.importorskip("yzflow_enclose.scan_and_snap.long_enough").long_enough(*arguments, **options)
