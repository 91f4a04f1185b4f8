"""The protocol of an open flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    import xarray as xr


@runtime_checkable
class Flow(Protocol):
    r"""An ordinary differential equation with named states: what `integrate` and `descend` take.

    Two members are required; a class that has them is a `Flow` and inherits from nothing:

    - ``initial``: name -> DataArray or array, the states at t = 0. A run keeps dimensions and coordinates.
    - ``derivative(t, state)``: name -> array, the rate of change of each state in its shape. ``state`` maps names to
      plain arrays, read-only and valid until the call returns; a state without dimensions is an array without axes.
      Plain Python and functions compiled by numba both do.

    What else a class may have:

    - ``observe(t, state)``: name -> DataArray, array or number, recorded at each time.
    - ``events(t, state)``: name -> number. Its zeros are located and recorded; ``kinds``, a mapping, says of some more:
      "stop" ends the run there; "kink" is a surface at which the derivative jumps or bends, see `integrate`; "record"
      is the default. A sign after the kind takes zeros in one direction only: "record +" where the number rises,
      "stop -" where it falls.
    - ``orbits()``: name -> integers of the state's shape. Entries with equal labels move together: one is integrated.
    - ``sample(t, state, rng)``: as ``derivative``, drawn at random: what `descend` steps along.
    - ``config()``: keyword arguments of the class, plain data, that make the flow again: for files.
    - ``field(t, state)``: the same as ``derivative``, for enclosures, where that is compiled or takes floats alone.

    Examples
    --------
    >>> import numpy as np
    >>> from dynamics import integrate
    >>> class Decay:
    ...     initial = {"x": np.array([1.0, 2.0])}
    ...     def derivative(self, t, state):
    ...         return {"x": -state["x"]}
    >>> run = integrate(Decay(), t_end=1.0)
    >>> bool(np.allclose(run.final["x"], np.exp(-1.0) * np.array([1.0, 2.0]), rtol=1e-7))
    True
    """

    @property
    def initial(self) -> Mapping[str, xr.DataArray | ArrayLike]: ...

    def derivative(self, t: float, state: Mapping[str, np.ndarray]) -> Mapping[str, ArrayLike]: ...
