"""The tour of sparse averaging."""

import driving
import pytest
import xarray as xr


@pytest.mark.slow
def test_the_tour_writes_what_it_says(tmp_path, capsys):
    tour = driving.example("sparse_averaging")
    assert tour.main(["--quick", "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    names = ["qsa_smallest_dimension", "qsa_precision", "qsa_query_bits", "match2_margins", "qsa_training"]
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {f"{name}.{kind}" for name in names for kind in ("png", "nc")} | {
        "summary.txt",
        "captions.txt",
    }
    assert xr.load_dataset(tmp_path / "out" / "match2_margins.nc").attrs["scale"] == 2000
    assert "0 of 16000 outputs wrong" in out and "no certificate, best rho" in out
    with pytest.raises(SystemExit) as caught:
        tour.main(["--out", __file__])
    assert caught.value.code == 2
