"""In which share of the cells of the two fine maps statements hold in the full flow."""

from theory import attention
from theory.values import Study
from yzflow_studies.regime_maps import study as regime


def maps(n: int, within: float) -> dict:
    """Largest errors, and shares of the cells with an error of at most ``within``, of the maps of the example."""
    found = {}
    for name, grid in regime.grids(n).items():
        errors = regime.regime_map(grid, levels=["full flow"]).isel(level=0)
        cells = errors["slowdown"].notnull()
        row: dict = {"rows": errors["slowdown"].shape[0], "columns": errors["slowdown"].shape[1]}
        for number in regime.NUMBERS:
            own, key = errors.sel(statement=number), number.lower().replace(" ", "_").replace("(", "").replace(")", "")
            row[key] = {
                "largest": float(own["error"].max()),
                "share": float((own["error"] <= within).where(cells).mean()),
                "printed": float((own["printed"] <= within).where(cells).mean()),
            }
        close = errors["slowdown"].where(errors["error"].sel(statement="Theorem 4") <= within)
        if close.notnull().any():
            row["slow"] = {"low": float(close.min()), "high": float(close.max()), "median": float(close.median())}
        found[name] = row
    found["largest"] = {
        key: max(found[name][key]["largest"] for name in regime.grids(n))
        for key in ("theorem_2a", "theorem_3", "remark_1")
    }
    return found


def sizes(n: int, coarse: int) -> dict:
    """How many values the fine maps have on each axis, and those with SGD; and where maps over K and rates are."""
    found = {name: [len(values) for values in grid.values()] for name, grid in regime.grids(n).items()}
    found["with_sgd"] = [len(values) for values in regime.grids(coarse)["vocabulary_overlap"].values()]
    m, rho = regime.DEFAULTS["vocab_size"], regime.DEFAULTS["overlap"]
    classes = regime.grids(n)["classes_ratio"]["n_classes"]
    slow = [float(attention.full_flow_slowdown(n_classes=k, vocab_size=m, overlap=rho)) for k in classes]
    return {**found, "m": m, "rho": rho, "slowest": min(slow), "fastest": max(slow)}


STUDIES = (
    Study("sizes", sizes, {"n": 100, "coarse": 9}),
    Study("maps", maps, {"n": 100, "within": 0.1}, quick=False, tolerance=1e-3),
)
