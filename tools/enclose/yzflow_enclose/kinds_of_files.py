"""Kinds of saved files that this distribution adds to those of yzflow, found by an entry point."""

KINDS = {
    "yzflow-certificate-2": "a certificate",
    "yzflow-cell-3": "a certificate of a cell",
}
