"""JoMA (Tian, Wang, Zhang, Chen and Du 2023), in our statement: joint dynamics of attention and a hidden layer."""

from yzflow.paper import Paper, later

PAPER = Paper(
    name="JoMA",
    slug="joma",
    reference="Tian, Wang, Zhang, Chen and Du (2023), arXiv 2310.00535",
    levels=later("yzflow_joma.statements:LEVELS"),
    statements=later("yzflow_joma.statements:STATEMENTS"),
    settings=later("yzflow_joma.settings:settings"),
    columns=later("yzflow_joma.statements:COLUMNS"),
    source=later("yzflow_joma.statements:SOURCE"),
    proofs=later("yzflow_joma.proofs:derive"),
    mistakes=later("yzflow_joma.mistakes:MISTAKES"),
    figures=later("yzflow_joma.figures:FIGURES"),
    tasks=later("yzflow_joma.tasks:TASKS"),
    survival=later("yzflow_joma.survival:ROOM"),
    rivals=later("yzflow_joma.watched:RIVALS"),
    views=later("yzflow_joma.views:VIEWS"),
    enclosing=later("yzflow_joma.enclosed:ENCLOSING"),
    questions=later("yzflow_joma.questions:QUESTIONS"),
    not_examined=later("yzflow_joma.statements:NOT_EXAMINED"),
)
