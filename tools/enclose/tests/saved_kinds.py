"""A small saved file of each kind that this distribution adds."""

import saved
from saved_kinds import File
from yzflow_enclose import Enclosure
from yzflow_enclose.cells import Cell, CellEnclosure, decide_cell


def _certificate(of):
    def read(path):
        found = of.load(path)
        return repr((found.claimed, {name: (array.dtype, array.tobytes()) for name, array in found.arrays().items()}))

    return read


def _cell(path):
    cell = Cell(2, 2, (2.0, 1.0), 1.0, (0.2, 0.21), (1.4, 1.45))
    decide_cell(cell, [(0.0, 1.0, -1.0)], t_end=0.5, degree=1)[1].save(path)


FILES = {
    "yzflow-certificate-2": File("flow.npz", saved.MADE["a certificate"][1], _certificate(Enclosure)),
    "yzflow-cell-3": File("cell.npz", _cell, _certificate(CellEnclosure)),
}
