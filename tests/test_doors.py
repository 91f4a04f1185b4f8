"""The page of doors: every place that makes code of a name has its row there, and no row outlives its place."""

import ast
import functools
import re
import subprocess

import pytest
from driving import ROOT

PAGE = (ROOT / "tests" / "doors.md").read_text(encoding="utf-8")
# The full name that a name stands for -> the kind of door.
DOORS = [
    (
        "import",
        r"importlib\.(import_module|reload|__import__)|importlib\.util\.(?!resolve_name)\w+|(builtins\.)?__import__",
    ),
    (
        "import",
        r"runpy\.\w+|pkgutil\.\w+|zipimport\.\w+|sys\.(modules|meta_path|path_hooks)|\S*\.(exec_module|load_module)",
    ),
    ("entry points", r"(\S*\.)?entry_points|(point|entry_point|ep)\.load"),
    ("pickle", r"(pickle|cloudpickle|marshal|joblib|dill|shelve|jsonpickle)\.\w+|torch\.(load|jit\.load|hub\.\w+)"),
    ("pickle", r"\S*\.(read_pickle|unsafe_load|full_load)|yaml\.load"),
    ("weights", r"\S*\.from_pretrained|safetensors\.\S*(load\w*|safe_open)"),
    ("arrays", r"numpy\.(load|fromfile|memmap|genfromtxt|lib\.format\.(read_array|open_memmap))"),
    ("program", r"subprocess\.\w+|os\.(system|popen|startfile|exec\w+|spawn\w+|posix_spawn\w*)|pty\.\w+"),
    ("program", r"asyncio\.create_subprocess\w+|multiprocessing\.connection\.\w+"),
    ("eval", r"(builtins\.|pandas\.)?eval"),
    ("exec", r"(builtins\.)?exec"),
    ("compile", r"(builtins\.)?compile"),
    ("literal", r"ast\.literal_eval"),
    ("sympify", r"sympy\.(sympify|parse_expr|S)|sympy\.parsing\S*"),
    ("template", r"string\.Template|jinja2\.\w+"),
    ("library", r"ctypes\.\w+|cffi\.\w+"),
    ("logging", r"logging\.config\.\w+"),
]
# Of these a call with a name that is not typed there is a door, and so is handing them on.
LOOKUPS = {"getattr", "setattr", "delattr", "operator.attrgetter", "operator.methodcaller"}
TABLES = {"globals()", "vars()", "locals()"}
HARMLESS = {"pickle.PicklingError", "subprocess.TimeoutExpired", "subprocess.PIPE", "subprocess.DEVNULL"}
HARMLESS |= {
    "subprocess.CalledProcessError",
    "subprocess.CompletedProcess",
    "subprocess.STDOUT",
    "subprocess.Popen.kill",
}


def aliases(tree):
    """Name in a file -> what it was imported as."""
    known = {"np": "numpy", "sp": "sympy", "pd": "pandas"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known |= {one.asname or one.name.partition(".")[0]: one.name if one.asname else one.name.partition(".")[0]
                      for one in node.names}  # fmt: skip
        elif isinstance(node, ast.ImportFrom) and not node.level:
            known |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    return known


def dotted(node, known):
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value, known)}.{node.attr}"
    if isinstance(node, ast.Call):
        return f"{dotted(node.func, known)}()"
    return known.get(node.id, node.id) if isinstance(node, ast.Name) else "?"


def typed(node, place):
    return len(node.args) > place and isinstance(node.args[place], ast.Constant)


@functools.cache
def kind_of(name):
    return next((kind for kind, pattern in DOORS if re.fullmatch(pattern, name)), None)


def door(node, parent, known):
    """The kind of door that a name is where it stands, or nothing."""
    if isinstance(node, ast.Subscript):
        table = dotted(node.value, known)
        looked_up = not isinstance(node.slice, ast.Constant) and (table in TABLES or table.endswith(".__dict__"))
        return "attribute" if looked_up else None
    if not isinstance(node, ast.Attribute | ast.Name) or isinstance(getattr(node, "ctx", None), ast.Store):
        return None
    name = dotted(node, known)
    called = isinstance(parent, ast.Call) and parent.func is node
    if name in HARMLESS or (isinstance(parent, ast.Attribute) and parent.value is node
                                                     and name not in ("sys.modules",)):  # fmt: skip
        return None
    if name in LOOKUPS:
        return None if called and typed(parent, 0 if "." in name else 1) else "attribute"
    return kind_of(name)


def doors_in(text):
    """(function, kind) of each door in a source text."""
    tree = ast.parse(text)
    known, found = aliases(tree), set()

    def visit(node, parent, where):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            where = [*where, node.name]
        if kind := door(node, parent, known):
            found.add((".".join(where) or "(module)", kind))
        for child in ast.iter_child_nodes(node):
            if not (isinstance(node, ast.arg | ast.AnnAssign) and child is node.annotation):
                visit(child, node, where)

    visit(tree, None, [])
    return found


@functools.cache
def sources():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("no clone")
    names = [name for name in listed.stdout.split("\n") if name.endswith(".py") and (ROOT / name).exists()]
    ours = [name for name in names if not re.match(r"tests/|conftest|.*/tests/|.*/test_", name)]
    return [(name, (ROOT / name).read_text(encoding="utf-8")) for name in ours]


def rows():
    """(file, function, kind) of each place in the page; a file without functions stands for all of its own."""
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("| ") or cells[0] == "door":
            continue
        for file, functions in re.findall(r"`([^`]+)`(?:: ([^`]+?))?(?=, `|$)", cells[1]):
            for function in functions.split(", ") if functions else ["(any)"]:
                yield file, function, cells[0]


@pytest.mark.slow  # reads every source
def test_every_door_has_its_row():
    listed = set(rows())
    there = {(name, *place) for name, text in sources() for place in doors_in(text)}
    whole = {(file, kind) for file, function, kind in listed if function == "(any)"}
    there = {(file, "(any)" if (file, kind) in whole else function, kind) for file, function, kind in there}
    assert sorted(there - listed) == [] and sorted(listed - there) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("importlib.import_module(name)", "import"),
        ("from transformers import AutoModel; AutoModel.from_pretrained(path)", "weights"),
        ("from safetensors.torch import load_file; load_file(path)", "weights"),
        ("from importlib import import_module as im; im(name)", "import"),
        ("__import__(name)", "import"),
        ("importlib.reload(module)", "import"),
        ("import importlib.util; importlib.util.find_spec(name)", "import"),
        ("runpy.run_path(path)", "import"),
        ("sys.modules[name]", "import"),
        ("eval(text)", "eval"),
        ("f = eval; f(text)", "eval"),
        ("import pandas as pd; pd.eval(text)", "eval"),
        ("exec(text)", "exec"),
        ("compile(text, '', 'exec')", "compile"),
        ("pickle.loads(content)", "pickle"),
        ("from pickle import loads; loads(content)", "pickle"),
        ("import pickle as p; p.load(file)", "pickle"),
        ("torch.load(path)", "pickle"),
        ("import pandas; pandas.read_pickle(path)", "pickle"),
        ("yaml.load(text)", "pickle"),
        ("np.load(path, allow_pickle=True)", "arrays"),
        ("from numpy import load; load(path)", "arrays"),
        ("subprocess.run(command)", "program"),
        ("from subprocess import run; run(command)", "program"),
        ("from os import system; system(command)", "program"),
        ("os.execv(path, arguments)", "program"),
        ("os.posix_spawn(path, arguments, {})", "program"),
        ("getattr(module, name)", "attribute"),
        ("setattr(module, name, value)", "attribute"),
        ("map(getattr, rows)", "attribute"),
        ("import operator; operator.attrgetter(*names)", "attribute"),
        ("globals()[name]", "attribute"),
        ("vars(module)[name]", "attribute"),
        ("module.__dict__[name]", "attribute"),
        ("metadata.entry_points(group=GROUP)", "entry points"),
        ("point.load()", "entry points"),
        ("import sympy as sp; sp.sympify(text)", "sympify"),
        ("sympy.S(text)", "sympify"),
        ("string.Template(text)", "template"),
        ("import jinja2; jinja2.Template(text)", "template"),
        ("ctypes.CDLL(path)", "library"),
    ],
)
def test_each_kind_of_door_is_seen(text, kind):
    assert doors_in(f"def f():\n    {text}") == {("f", kind)}
    harmless = "getattr(x, 'name'); re.compile(text); row.load(); object.__setattr__(x, name, 1); model.eval()"
    assert doors_in(f"def f():\n    {harmless}") == set()


def test_no_array_is_unpickled_and_no_page_evaluates_text():
    for name, text in sources():
        assert not re.search(r"allow_pickle\s*=\s*True|shell\s*=\s*True", text), name
    for path in [*ROOT.glob("yzflow/**/*.js"), *ROOT.glob("yzflow/**/*.html"), *ROOT.glob("papers/*/*/*.js")]:
        assert not re.search(r"\beval\(|new Function\(|document\.write\(", path.read_text(encoding="utf-8")), path
