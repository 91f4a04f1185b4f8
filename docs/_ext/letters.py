"""Mathematics that stands as plain text in Markdown, such as "eta_Y <= 2^n", in letters and signs."""

from collections.abc import Iterator
from xml.etree import ElementTree

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from yzflow.audits.formulas import readable

_AS_IT_IS = (
    nodes.literal,
    nodes.FixedTextElement,
    nodes.math,
    nodes.raw,
    nodes.comment,
    addnodes.desc_signature,
    addnodes.literal_strong,
    addnodes.literal_emphasis,
)
_NODES = {"sub": nodes.subscript, "sup": nodes.superscript, "code": nodes.literal}


class Letters(SphinxTransform):
    """Runs before quotation marks get curly, since a prime is one of them."""

    default_priority = 740

    def apply(self, **kwargs: object) -> None:
        for text in list(self.document.findall(nodes.Text)):
            parts = in_letters(text.astext())
            if [one.astext() for one in parts] != [text.astext()] and not _inside(text):
                text.parent.replace(text, parts)


def in_letters(text: str) -> list[nodes.Node]:
    """A text as nodes: plain ones, what stands lower or higher, and names of modules as code."""
    return list(_parts(ElementTree.fromstring(f"<p>{readable(text)}</p>")))


def _parts(element: ElementTree.Element) -> Iterator[nodes.Node]:
    if element.text:
        yield nodes.Text(element.text)
    for inner in element:
        yield _NODES[inner.tag]("", "", *_parts(inner))
        if inner.tail:
            yield nodes.Text(inner.tail)


def _inside(node: nodes.Node) -> bool:
    """Whether a node stands in code, mathematics or a signature."""
    while node.parent is not None:
        node = node.parent
        if isinstance(node, _AS_IT_IS):
            return True
    return False


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(Letters)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
