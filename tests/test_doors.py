"""The page of doors: every place that makes code of a name has its row there, and no row outlives its place."""

import ast
import functools
import re
import subprocess

import pytest
from driving import ROOT

PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
IMPORTS = {"import_module", "__import__", "spec_from_file_location", "module_from_spec", "exec_module", "load_module"}
IMPORTS |= {"run_path", "run_module"}
PROGRAMS = {"os.system", "os.popen", "os.startfile", "Popen", "create_subprocess_exec", "create_subprocess_shell"}
CALLS = {"eval", "exec", "compile", "sympify", "parse_expr", "Template", "from_string", "CDLL", "unsafe_load"}
CALLED = {"parse_expr": "sympify"}


def dotted(node):
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def typed(node, place):
    return len(node.args) > place and isinstance(node.args[place], ast.Constant)


def door(node):
    """The kind of door that a call is, or nothing."""
    name = dotted(node.func)
    owner, _, last = name.rpartition(".")
    owner = owner.rpartition(".")[2]
    if last in IMPORTS:
        return "import"
    if last == "entry_points" or (last == "load" and owner in ("point", "entry", "entry_point")):
        return "entry points"
    if owner in ("pickle", "cloudpickle", "marshal", "joblib", "dill", "shelve") or (owner, last) == ("torch", "load"):
        return "pickle"
    if (owner, last) in (("np", "load"), ("numpy", "load"), ("np", "fromfile"), ("np", "memmap")):
        return "arrays"
    if owner == "subprocess" or name in PROGRAMS or re.match(r"os\.(exec|spawn)", name):
        return "program"
    if last == "literal_eval":
        return "literal"
    if last in CALLS and owner in ("", "sp", "sympy", "builtins", "string", "ctypes", "yaml"):
        return CALLED.get(last, last)
    if (name == "getattr" and not typed(node, 1)) or (last in ("attrgetter", "methodcaller") and not typed(node, 0)):
        return "attribute"
    return None


def doors_in(text):
    """(function, kind) of each door in a source text."""
    found = set()

    def visit(node, where):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            where = [*where, node.name]
        if isinstance(node, ast.Call) and (kind := door(node)):
            found.add((".".join(where) or "(module)", kind))
        for child in ast.iter_child_nodes(node):
            visit(child, where)

    visit(ast.parse(text), [])
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
        ("__import__(name)", "import"),
        ("runpy.run_path(path)", "import"),
        ("eval(text)", "eval"),
        ("exec(text)", "exec"),
        ("compile(text, '', 'exec')", "compile"),
        ("pickle.loads(content)", "pickle"),
        ("torch.load(path)", "pickle"),
        ("np.load(path, allow_pickle=True)", "arrays"),
        ("subprocess.run(command)", "program"),
        ("os.system(command)", "program"),
        ("os.execv(path, arguments)", "program"),
        ("getattr(module, name)", "attribute"),
        ("operator.attrgetter(name)", "attribute"),
        ("metadata.entry_points(group=GROUP)", "entry points"),
        ("point.load()", "entry points"),
        ("sp.sympify(text)", "sympify"),
        ("string.Template(text)", "Template"),
        ("yaml.unsafe_load(text)", "unsafe_load"),
    ],
)
def test_each_kind_of_door_is_seen(text, kind):
    assert doors_in(f"def f():\n    {text}") == {("f", kind)}
    assert doors_in("def f():\n    getattr(x, 'name'); re.compile(text); row.load()") == set()


def test_no_array_is_unpickled_and_no_page_evaluates_text():
    for name, text in sources():
        assert not re.search(r"allow_pickle\s*=\s*True|shell\s*=\s*True", text), name
    for path in [*ROOT.glob("yzflow/**/*.js"), *ROOT.glob("yzflow/**/*.html"), *ROOT.glob("papers/*/*/*.js")]:
        assert not re.search(r"\beval\(|new Function\(|document\.write\(", path.read_text(encoding="utf-8")), path
