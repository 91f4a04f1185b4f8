"""The example of bounded Dyck languages: what it prints and writes."""

import driving
import pytest
import xarray as xr
from yzflow_studies.words_and_prefixes import study

FIGURES = ("dyck_attention", "dyck_balance_over_training", "dyck_balanced_layers", "dyck_length", "dyck_variation")


@pytest.mark.slow
def test_the_example_prints_its_findings_and_writes_figures_captions_and_data(tmp_path, capsys):
    example = driving.example("dyck_balance")
    assert example.main(["--quick", "--parts", "--out", str(tmp_path)]) == 0
    names = {path.name for path in tmp_path.iterdir()}
    shown = (*FIGURES, "dyck_architecture", "dyck_residual_link")
    drawn = {f"{name}.{kind}" for name in shown for kind in ("png", "pdf")}
    assert names == drawn | {f"{name}.nc" for name in shown if name != "dyck_balanced_layers"} | {"captions.txt"}
    printed = capsys.readouterr().out
    runs = xr.load_dataset(tmp_path / "dyck_length.nc").isel(contrast_weight=2)
    assert f"{float(runs['violation'].mean()):9.4f}" in printed and "joint rank 6 of 16" in printed
    with pytest.raises(SystemExit):
        example.main(["--seeds", "2", "--out", str(tmp_path)])
    assert "`--seeds` must be at least 3, but got 2" in capsys.readouterr().err


@pytest.mark.slow
def test_the_example_trains_on_words_and_does_it_once(tmp_path, capsys):
    arguments = ["--kind", "word", "--quick", "--out", str(tmp_path)]
    example = driving.example("dyck_balance")
    assert example.main(arguments) == 0
    first = capsys.readouterr().out
    runs = xr.load_dataset(tmp_path / "dyck_words.nc")
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()}
    assert dict(runs["violation"].sizes) == {"kind": 1, "contrast_weight": 3, "seed": 4}
    assert str(study.summary(runs)[0].violation_rank) in first and study.claims(runs) in first
    assert {"dyck_words.png", "dyck_words.pdf", "captions.txt"} <= {path.name for path in tmp_path.iterdir()}
    assert example.main(arguments) == 0
    assert capsys.readouterr().out == first
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "store").iterdir()} == kept
    with pytest.raises(SystemExit):
        example.main(["--kind", "word", "--seeds", "3", "--out", str(tmp_path)])
    assert "`--seeds` must be at least 4, but got 3" in capsys.readouterr().err
