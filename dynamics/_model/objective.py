"""What training descends on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynamics.bags import Bags
from dynamics.support import checks

if TYPE_CHECKING:
    from dynamics.layer import Layer

CRITERIA = ("cross-entropy", "squared")


@dataclass(frozen=True)
class Objective:
    """What `gradient_flow` and `sgd` descend on.

    Parameters
    ----------
    criterion : "cross-entropy" or "squared"
        Nats (2), or ``sum_c (u_c - target_c)^2`` of the logits u (Wen et al. 2023, (5)).
    contrast : Bags, optional
        Insertions for the regulariser ``contrast_weight E ||u(x) - u(x + insertion)||^2 / M`` (Wen et al. 2023, (22)),
        each as likely as its weight: in `sgd` each bag of a batch comes with one. `DyckLanguage.nested_pairs` makes
        them.
    contrast_weight : float

    Raises
    ------
    ValueError
        If an argument is invalid.
    """

    criterion: str = "cross-entropy"
    contrast: Bags | None = None
    contrast_weight: float = 0.0

    def __post_init__(self) -> None:
        checks.one_of("criterion", self.criterion, CRITERIA)
        weight = checks.non_negative("contrast_weight", self.contrast_weight)
        if self.contrast is None:
            if weight > 0:
                raise checks.reject("contrast_weight", "be 0 without `contrast`", weight)
        elif not isinstance(self.contrast, Bags):
            raise checks.reject("contrast", "be Bags, one an insertion", type(self.contrast).__name__)
        object.__setattr__(self, "contrast_weight", weight)

    @property
    def plain(self) -> bool:
        """Whether this is the cross-entropy alone."""
        return self.criterion == "cross-entropy" and self.contrast is None

    @property
    def parameters(self) -> dict[str, str | float]:
        """What a trajectory records."""
        return {"criterion": self.criterion, "contrast_weight": self.contrast_weight}

    def check_fits(self, layer: Layer) -> None:
        """Raise ``ValueError`` unless ``layer`` has a column for every token of the insertions."""
        if self.contrast is not None and self.contrast.n_tokens > layer.Z.shape[1]:
            rule = f"have at most the {layer.Z.shape[1]} tokens of the layer"
            raise checks.reject("contrast", rule, self.contrast.n_tokens)


def as_objective(objective: Objective | None) -> Objective:
    """The argument ``objective``, checked; None is the cross-entropy."""
    if objective is None:
        return Objective()
    if not isinstance(objective, Objective):
        raise checks.reject("objective", "be an Objective", type(objective).__name__)
    return objective
