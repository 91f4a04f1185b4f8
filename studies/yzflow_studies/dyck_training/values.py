"""Data and training of the small Dyck layers, from the functions' defaults."""

import inspect
from typing import Any

from yzflow_bounded_dyck import training

from theory.values import Study


def defaults() -> dict[str, Any]:
    """The language, the numbers of prefixes and the options of `training.trained` where none are given."""

    def of(function: Any) -> dict[str, Any]:
        return {name: one.default for name, one in inspect.signature(function).parameters.items()}

    data, trained, start = of(training.data), of(training.trained), of(training.start)
    language = data["language"]
    return {
        "k": language.n_types,
        "D": language.max_depth,
        "q": language.open_probability,
        "train": data["n_train"],
        "test": data["n_test"],
        "below": training.LENGTHS["below 28"][1] + 1,
        "long": list(training.LENGTHS["4000-5000"]),
        "steps": trained["steps"],
        "eta": trained["eta"][0],
        "batch": trained["batch_size"],
        "seeds": trained["seeds"],
        "hidden": trained["hidden"],
        "width": start["width"],
    }


STUDIES = (Study("defaults", defaults),)
