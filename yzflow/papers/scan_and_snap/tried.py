"""Campaigns of the fuzzer on statements of Scan and Snap: `yzflow fuzz "Scan and Snap" --table` writes them."""

from pathlib import Path

from yzflow.audits.campaign_table import load

TRIED = load(Path(__file__).with_suffix(".json"))
