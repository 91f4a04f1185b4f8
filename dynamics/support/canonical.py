"""The canonical text of plain content, and its hash, by which questions are told apart."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical(content: Any) -> str:
    """The one JSON text of plain content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(content: Any) -> str:
    """SHA-256 of the canonical text, in hexadecimal."""
    return hashlib.sha256(canonical(content).encode()).hexdigest()
