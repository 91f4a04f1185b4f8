"""A directive that lists the tasks of sweeps from the code: what each runs, its keys and their defaults."""

from sphinx.util.docutils import SphinxDirective

from yzflow.sweeps.runs import Task
from yzflow.sweeps.tasks import named


def listed(task: Task) -> str:
    """A task as an item of a list in Markdown."""
    what = " ".join((task.run.__doc__ or "").split("\n\n")[0].split())
    try:
        defaults = {} if task.complete is None else task.complete({})
    except ValueError:  # some key has no default
        defaults = {}
    names = list(dict.fromkeys([*(task.keys or ()), *defaults]))
    keys = ", ".join(f"`{name}` ({defaults[name]!r})" if name in defaults else f"`{name}`" for name in names)
    return f"- **`{task.name}`**: {what} Keys{' with their defaults' if defaults else ''}: {keys}."


class Tasks(SphinxDirective):
    def run(self):
        return self.parse_text_to_nodes("\n".join(listed(task) for task in named().values()))


def setup(app):
    app.add_directive("tasks", Tasks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
