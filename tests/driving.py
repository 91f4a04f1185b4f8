"""Helpers that drive from outside: programs, examples, sweeps as processes, batches of SGD, pages in a browser."""

import glob
import importlib.util
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import pytest

from dynamics.support.distributions import FOLDERS, cure, installed

ROOT = Path(__file__).parents[1]
# Hostile and property tests in their long form, an hour and more: see docs/howto/tests.md.
LONG = bool(os.environ.get("YZFLOW_LONG"))

# Programs and examples


def python(program: str) -> str:
    """The output of a program in a new interpreter; fails if the program does."""
    return subprocess.run(
        [sys.executable, "-c", program], env=_environment(), stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def example(name: str):
    """The script of ``examples/`` of this name as a module; what it imports from its folder is found."""
    folder = ROOT / "examples"
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        if error.name not in FOLDERS:
            raise
        pytest.skip(f"`{name}` needs what {cure(error.name)}")
    finally:
        sys.path.remove(str(folder))
        for other in folder.glob("*.py"):  # so that no test meets what another has patched
            if other.stem not in before:
                sys.modules.pop(other.stem, None)
    return module


def _environment() -> dict[str, str]:
    """With this tree's packages before those that are installed."""
    folders = (".", "studies", *(folder for package, folder in FOLDERS.items() if installed(package)))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / folder) for folder in folders)}


def told(stderr: str) -> list[str]:
    """The lines of standard error but those that say how far the work is."""
    return [line for line in stderr.splitlines() if line.strip() and not re.match(r"[^%]+: \d+% ", line)]


# Sweeps


class Commands:
    """Runs the command ``yzflow`` in processes that can be killed, by `sweep_processes`."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, ROOT / "tests" / "sweep_processes.py"],
            env=_environment(),
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def _ask(self, **request) -> int:
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def load(self, module):
        """Import a module that all processes have which are started later."""
        self._ask(load=module)

    def start(self, arguments, folder, **more) -> int:
        """Process number, which is that of its group too."""
        return self._ask(start=arguments, folder=str(folder), **more)

    def wait(self, number) -> int:
        """Exit status; minus the signal if one ended it."""
        return self._ask(wait=number)

    def close(self):
        self._process.communicate()


def until(condition, seconds=30.0):
    """Waits for what another process does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.003)


def quietly(task, grid, **options):
    """A sweep without progress, in one thread unless said otherwise."""
    import yzflow

    if "executor" in options or "workers" in options:
        return yzflow.sweep(task, grid, progress=False, **options)
    with ThreadPoolExecutor(1) as pool:
        return yzflow.sweep(task, grid, progress=False, executor=pool, **options)


def assert_same_bits(one, other):
    """Datasets equal in every byte, name, order, type, label and attribute."""
    assert list(one.variables) == list(other.variables)
    assert json.dumps(one.attrs) == json.dumps(other.attrs)
    for name in one.variables:
        a, b = one[name], other[name]
        assert (a.dims, a.dtype, dict(a.attrs)) == (b.dims, b.dtype, dict(b.attrs)), name
        assert a.values.tobytes() == b.values.tobytes(), name


# SGD


def start(data, **options):
    """A run before its first step: its buffers, its tables and its random state."""
    from strategies import Population

    import dynamics
    from dynamics._engine.sgd.run import SgdRun

    data = Population(data) if isinstance(data, dynamics.Bags) else data
    parameters = inspect.signature(dynamics.sgd).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.kind == p.KEYWORD_ONLY}
    del (arguments := {**defaults, "eta_y": 1.0, "eta_z": 1.0, "steps": 1, **options})["progress"]
    return SgdRun(data, **arguments)


def draw_batch(run):
    """The groups of the next mini-batch of a run of SGD: query, target, tokens, counts (bags, tokens) and weights."""
    groups = run.feed.draw(1)
    query, target, soft, weight, size, indptr, token, count = (array[0] for array in run.feed.batches)
    bag = entry = 0
    found = []
    for g in range(groups[0]):
        tokens = token[indptr[g] : indptr[g + 1]].copy()
        shape = (size[g], tokens.size)
        found.append(
            {
                "query": query[g],
                "target": soft[g].copy() if soft.shape[1] else target[g],
                "token": tokens,
                "count": count[entry : entry + size[g] * tokens.size].reshape(shape).copy(),
                "weight": weight[bag : bag + size[g]].copy(),
            }
        )
        bag += size[g]
        entry += size[g] * tokens.size
    return found


# Pages in a headless Chromium that may ask nothing of a network and may report no error

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def executable(playwright) -> str | None:
    """Path of the system's Chromium, or else of Playwright's own, or None."""
    found = [path for path in map(shutil.which, _NAMES) if path]
    return (found + glob.glob(playwright.chromium.executable_path) + [None])[0]


@pytest.fixture(scope="session")
def chromium():
    """The browser of this worker's tests; skips where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'yzflow[test]'")
    with sync_api.sync_playwright() as playwright:
        path = executable(playwright)
        if path is None:
            pytest.skip(f"needs a browser: none of {', '.join(_NAMES)} is on the PATH, nor Playwright's own")
        instance = playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)
        yield instance
        instance.close()


@pytest.fixture
def browser(chromium):
    """A function that opens a file in a new window and gives Playwright's page.

    ``browser(path, width=1280, height=800, color_scheme="light")``; further keywords go to Playwright's
    ``new_context``. Every request that is not to file:, data: or blob: is refused. At its end the test fails if there
    was one, or an error on the console or in a script; ``browser.problems`` lists them so far.
    """
    with _windows(chromium) as open_file:
        yield open_file


@pytest.fixture(scope="module")
def shared_browser(chromium):
    """`browser` for all tests of a module, where a page takes long to load; the last test fails for all."""
    with _windows(chromium) as open_file:
        yield open_file


@contextmanager
def _windows(chromium):
    contexts, problems = [], []

    def guard(route):
        url = route.request.url
        if url.split(":", 1)[0] in ("file", "data", "blob"):
            route.continue_()
        else:
            problems.append(f"request to {url}")
            route.abort()

    def watch(page):
        page.on("console", lambda message: message.type == "error" and problems.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: problems.append(f"script: {error}"))
        page.on("websocket", lambda socket: problems.append(f"web socket to {socket.url}"))

    def open_file(path, *, width=1280, height=800, color_scheme="light", **options):
        viewport = {"width": width, "height": height}
        context = chromium.new_context(viewport=viewport, color_scheme=color_scheme, service_workers="block", **options)
        contexts.append(context)
        context.route("**/*", guard)
        context.on("page", watch)
        page = context.new_page()
        page.goto(path if "://" in str(path) else path.resolve().as_uri())
        return page

    open_file.problems = problems
    yield open_file
    for context in contexts:
        context.close()
    assert not problems, problems


def assert_nothing_to_mend(page, *, least, inside=None):
    """Axe-core finds no violation in a page, or in the part of a selector; more than ``least`` rules pass."""
    package = pytest.importorskip("axe_playwright_python", reason="needs axe-core: pip install 'yzflow[test]'")
    page.evaluate(resources.files(package).joinpath("axe.min.js").read_text(encoding="utf-8") + ";0")
    where = f"document.querySelector({inside!r})" if inside else "document"
    found = page.evaluate(f"axe.run({where}, {{resultTypes: ['violations']}})")
    assert [(rule["id"], node["html"][:100]) for rule in found["violations"] for node in rule["nodes"]] == []
    assert len(found["passes"]) > least
