"""Kinds of saved files that this distribution adds to those of yzflow, found by an entry point."""

from dynamics.support.sealed import Kind

KINDS = {
    "yzflow-certificate-2": Kind("a certificate", "yzflow_enclose:Enclosure.load"),
    "yzflow-cell-3": Kind("a certificate of a cell", "yzflow_enclose.cells:CellEnclosure.load", remade=True),
}
