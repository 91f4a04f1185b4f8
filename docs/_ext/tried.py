"""A directive that shows a paper's campaigns of the fuzzer: ``{tried} PAPER``, the most strained statements first."""

from sphinx.util.docutils import SphinxDirective

from theory import papers
from yzflow.audits.campaign_table import CampaignRow
from yzflow.audits.rendered import markdown_table


def listed(found: tuple[CampaignRow, ...]) -> list[str]:
    """The rows as a table of Markdown, those that take the largest share of a tolerance first."""
    heads = ["statement", "level", "settings", "violations", "worst share of a tolerance", "there"]
    ordered = sorted(found, key=lambda row: -row.share)
    cells = [
        [
            row.statement.partition(": ")[2],
            row.level,
            f"{row.examples:,}",
            str(row.violations),
            f"{row.share:.2g}" if row.share else "0",
            row.setting if row.share else "everywhere",
        ]
        for row in ordered
    ]
    return markdown_table([heads, *cells])


class Tried(SphinxDirective):
    required_arguments = 1

    def run(self):
        paper = papers.papers()[self.arguments[0]]
        return self.parse_text_to_nodes("\n".join(listed(paper.tried)))


def setup(app):
    app.add_directive("tried", Tried)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
