"""The statements of our own papers by id, whatever other papers are installed."""

from theory.papers import built_in

OURS = {one.id: one for paper in built_in() for one in paper.statements}
