"""The report of a campaign: examples, the worst of them, and simplified violations."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
import xarray as xr

from dynamics.support import files
from dynamics.version import __version__
from yzflow.audits import campaign_table
from yzflow.audits.enclosing import Decided
from yzflow.audits.rendered import as_json
from yzflow.fuzzing.blocks import Example

SEEDS_AGAIN = 20


@dataclass(frozen=True)
class Violation:
    """An example at which a check fails, as simple as hypothesis made it.

    Attributes
    ----------
    statement, level : str
    outside : str
        The assumption that the example breaks; empty inside all.
    check : str
    example : Example
    seed : int
        Seed of the simulations.
    decided : Decided, optional
        The verdict of balls on the check there, if they have one.
    fails : int, optional
        The number of failures among `SEEDS_AGAIN` other seeds; None if nothing is drawn.
    like : str
        For a function: the id of the statement inside whose assumptions settings are drawn.
    """

    statement: str
    level: str
    outside: str
    check: str
    example: Example
    seed: int
    decided: Decided | None = None
    fails: int | None = None
    like: str = ""

    @property
    def python(self) -> str:
        """Python code that reproduces it."""
        outside = f", outside={self.outside!r}" if self.outside else ""
        choices = f"{self.example.choices!r}, seed={self.seed}{outside}"
        # For a conjecture, the reader has the function with this name.
        which, like = (self.check, f", like={self.like!r}") if self.like else (f'"{self.statement}"', "")
        called = f'replay({which}, "{self.level}", {choices}{like})'
        return f"from yzflow.fuzzing.campaign import replay\n\nprint({called}.shares)"

    @property
    def words(self) -> str:
        """For people."""
        example = self.example
        parts = [f"{self.check}: {example.shares[self.check]:.3g} times its tolerance at {example.name}"]
        if self.decided is not None:
            parts.append(f"in balls: {self.decided.words}")
        if self.fails is not None:
            parts.append(f"{self.fails} of {SEEDS_AGAIN} other seeds fail")
        return "; ".join(parts)


@dataclass(frozen=True)
class Campaign:
    """The examples of a statement at one level.

    Attributes
    ----------
    level, outside : str
        ``outside``: the assumption that is broken; empty inside all.
    examples : tuple of Example
    rejected : int
        Number of settings that were drawn outside.
    stopped : int
        Number of settings that could not be made or followed, or at which a check had nothing to compare.
    why : str
        The error of the first of these.
    violations : tuple of Violation
        One for each block with a violation.
    false_alarms : mapping
        For each check that seeds decide: a bound on the probability of a failure where the statement holds, or None if
        no bound is known.
    asked : str
        Hash of the checks, their tolerances and assumptions.
    unreached : int
        Number of settings whose simulation ends before the time that the claim speaks of.
    """

    level: str
    outside: str
    examples: tuple[Example, ...]
    rejected: int
    stopped: int
    why: str
    violations: tuple[Violation, ...]
    false_alarms: Mapping[str, float | None]
    asked: str
    unreached: int = 0

    @property
    def expected_alarms(self) -> float:
        """A bound on the expected number of false alarms, over the checks with a known one."""
        return sum(self.false_alarms.get(check) or 0.0 for example in self.examples for check in example.shares)

    @property
    def worst(self) -> Example | None:
        """The example with the largest share of a tolerance; None if there is none."""
        return max(self.examples, key=lambda example: example.worst, default=None)

    @property
    def borders(self) -> dict[str, float]:
        """For each assumption whose margin varies, the margin nearest to its border."""
        margins: dict[str, set[float]] = {}
        for example in self.examples:
            for text, margin in example.margins.items():
                margins.setdefault(text, set()).add(margin)
        return {text: min(seen, key=lambda margin: abs(margin - 1)) for text, seen in margins.items() if len(seen) > 1}

    @property
    def lines(self) -> list[str]:
        """For people."""
        where = f" outside of {self.outside}" if self.outside else ""
        drawn = f"{len(self.examples)} examples{where}, {len(self.violations)} violations"
        lines = [f"{self.level}: {drawn}; {self.rejected} settings were outside, {self.stopped} could not be asked"]
        if self.stopped:
            lines.append(f"  the first that could not: {self.why}")
        if self.unreached:
            lines.append(f"  the claim's time was not reached in {self.unreached} more, which say nothing of it")
        if not self.examples:
            lines.append("  no result: the claim was asked nowhere")
        if self.worst is not None:
            lines.append(f"  worst: {self.worst.worst:.3g} of a tolerance, at {self.worst.name}")
        if self.false_alarms:
            unknown = [name for name, rate in self.false_alarms.items() if rate is None]
            known = f"at most {self.expected_alarms:.2g} expected" if len(unknown) < len(self.false_alarms) else ""
            besides = f"no bound is known for {'; '.join(unknown)}" if unknown else ""
            lines.append(f"  false alarms: {'; '.join(filter(None, (known, besides)))}")
        lines += [f"  nearest to the border: {margin:.4g} for {text}" for text, margin in sorted(self.borders.items())]
        for violation in self.violations:
            lines += [f"  VIOLATED: {violation.words}", *(f"    {line}" for line in violation.python.splitlines())]
        return lines


@dataclass(frozen=True)
class FuzzReport:
    """The result of `yzflow.fuzz`.

    Attributes
    ----------
    statement : str
    seed : int
    campaigns : tuple of Campaign
        One for each level.
    """

    statement: str
    seed: int
    campaigns: tuple[Campaign, ...]

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Violations of all levels."""
        return tuple(violation for campaign in self.campaigns for violation in campaign.violations)

    @property
    def passed(self) -> bool:
        """True if examples were tried at every level, and none violates the statement."""
        return not self.violations and all(campaign.examples for campaign in self.campaigns)

    @property
    def text(self) -> str:
        """For people: what was tried, how near to the borders, and what was found."""
        lines = [
            f"{self.statement}, seed {self.seed}",
            *(line for campaign in self.campaigns for line in campaign.lines),
        ]
        tried = sum(len(campaign.examples) for campaign in self.campaigns)
        if not self.violations and tried:
            high = 1 - 0.05 ** (1 / tried)  # at this share, one of twenty campaigns would see no violation
            lines.append(
                f"No violation: of settings drawn so, less than {high:.2%} violate it (95%, if draws are independent). "
                "This is no proof."
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text

    @property
    def dataset(self) -> xr.Dataset:
        """(example,): level, setting, the largest share of a tolerance, and the least margin of an assumption."""
        flat = [(campaign.level, example) for campaign in self.campaigns for example in campaign.examples]
        return xr.Dataset(
            {
                "level": ("example", np.array([level for level, _ in flat], dtype=str)),
                "setting": ("example", np.array([example.name for _, example in flat], dtype=str)),
                "share": ("example", np.array([example.worst for _, example in flat], dtype=float)),
                "margin": ("example", np.array([min(example.margins.values(), default=np.inf) for _, example in flat])),
            },
            attrs={"statement": self.statement, "seed": self.seed},
        )

    def json(self) -> str:
        """The report as JSON; numbers that are not finite are words."""
        return as_json(asdict(self), said=True)

    @property
    def rows(self) -> list[campaign_table.CampaignRow]:
        """The campaigns inside all assumptions that have examples, for the table of a paper."""
        return [
            _row(self, campaign, campaign.worst)
            for campaign in self.campaigns
            if campaign.worst is not None and not campaign.outside
        ]

    def to_table(self, path: str | os.PathLike) -> None:
        """Put the campaigns into a table (`yzflow.Paper`, ``tried``); they replace earlier ones of the same level."""
        campaign_table.write(path, self.rows)

    def to_json(self, path: str | os.PathLike) -> None:
        """Write the report as JSON."""
        files.write(path, (self.json() + "\n").encode())


def _row(report: FuzzReport, campaign: Campaign, worst: Example) -> campaign_table.CampaignRow:
    return campaign_table.CampaignRow(
        report.statement,
        campaign.level,
        len(campaign.examples),
        len(campaign.violations),
        float(f"{worst.worst:.3g}"),
        worst.name,
        None if None in campaign.false_alarms.values() else campaign.expected_alarms,
        report.seed,
        __version__,
        campaign.asked,
    )
