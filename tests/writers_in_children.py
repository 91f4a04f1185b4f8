"""Every writer of the project at targets that cannot or must not be replaced, each in a process of its own.

``python writers_in_children.py FOLDER`` prints a line of JSON for each: writer, hazard, how the process ended, what it
said, and what was changed.
"""

import importlib
import json
import os
import resource
import stat
import sys
from pathlib import Path

import numpy as np
import xarray as xr

NOBODY = 65534


def writers():
    """Name -> (suffix, function of a path); all is computed before, so that only writing is left."""
    import matplotlib.figure

    from dynamics import Bags, SequenceClasses, gradient_flow
    from dynamics.support import distributions, files, netcdf
    from yzflow import cli, figures
    from yzflow.sweeps.runs import Result
    from yzflow.sweeps.store import Store

    trajectory = gradient_flow(SequenceClasses.single_common_token(2, 5), eta_y=1.0, eta_z=1.0, t_end=1.0, n_times=2)
    bags = Bags([0], [0], [0, 1], [0], [1.0])
    figure = matplotlib.figure.Figure()
    figure.add_subplot().plot([1, 2])
    store = Store("store")
    identity = {"schema": 2, "task": "t", "version": 1, "configuration": {"a": 1}, "seed": 0}
    store.write(identity, Result({"y": ((), np.array(1.0), {})}))
    Path("c.toml").write_text('task = "syn_small"\nstore = "runs"\n[grid]\nsteps = [2]\n')

    def replacing(path):
        with files.replacing(path) as temporary:
            temporary.write_text("new" * 100)

    def command(*arguments):
        return lambda path: cli.main([*arguments, "--out", str(path)])

    own = {
        "write": (".txt", lambda path: files.write(path, b"new" * 100)),
        "replacing": (".txt", replacing),
        "dataset": (".nc", lambda path: netcdf.save_dataset(xr.Dataset({"x": ("a", [1.0])}), path)),
        "trajectory": (".nc", trajectory.save),
        "bags": (".npz", bags.save),
        "consolidate": (".nc", store.consolidate),
        "figure": (".png", lambda path: figures.save(figure, str(path).removesuffix(".png"), formats=["png"])),
        "yzflow flow": (".nc", command("flow", "--classes", "2", "--vocab-size", "5", "--t-end", "1")),
        "yzflow sgd": (".nc", command("sgd", "--steps", "2")),
        "yzflow sweep": (".nc", command("sweep", str(Path("c.toml").absolute()), "--workers", "1")),
    }
    if distributions.installed("yzflow_sparse_averaging"):
        trained = importlib.import_module("yzflow_sparse_averaging.trained.qsa")
        training = {"n_tokens": 4, "subset_size": 2, "embedding_dim": 3, "value_dim": 2, "steps": 2, "batch_size": 2}
        own["qsa"] = (".nc", lambda path: trained.train_qsa(**training, checkpoint=path))
    for name, (suffix, writer) in own.items():  # compiled and imported before the files are limited
        if name != "yzflow sweep":
            ends(writer, Path(f"warm {name}{suffix}").absolute())
    return own


def ends(writer, path):
    try:
        writer(path)
    except SystemExit as end:
        return end.code


# The file at the path, what is done to the process, and whether the writer is to succeed.


def device(path):
    path.symlink_to("/dev/null")


def real_device(path):
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except OSError:
        device(path)


def precious(path, mode=0o644):
    path.write_text("precious")
    path.chmod(mode)


def linked(path):
    precious(path.with_name("target"), 0o600)
    path.symlink_to("target")


def write_protected(path):
    precious(path, 0o444)
    os.chown(path, NOBODY, NOBODY)
    path.parent.chmod(0o777)


def limit():
    resource.setrlimit(resource.RLIMIT_FSIZE, (40, 40))


def become_nobody():
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def nothing(*_):
    pass


HAZARDS = {
    "limit": (nothing, limit, False),
    "limit, a file there": (precious, limit, False),
    "read-only folder": (lambda path: path.parent.chmod(0o555), become_nobody, False),
    "read-only folder, a file there": (lambda path: (precious(path), path.parent.chmod(0o555)), become_nobody, False),
    "write-protected": (write_protected, become_nobody, False),
    "link to a device": (device, nothing, False),
    "device": (real_device, nothing, False),
    "pipe": (os.mkfifo, nothing, False),
    "folder": (Path.mkdir, nothing, False),
    "loop": (lambda path: path.symlink_to(path.name), nothing, False),
    "missing folder": (lambda path: path.parent.rmdir(), nothing, False),
    "new": (nothing, nothing, True),
    "mode": (lambda path: precious(path, 0o600), nothing, True),
    "link": (linked, nothing, True),
}


def facts(folder):
    """Every entry with its kind, its mode, and what it holds."""
    if not folder.exists():
        return None
    found = {}
    for path in sorted(folder.iterdir()):
        mode = path.lstat().st_mode
        held = os.readlink(path) if path.is_symlink() else path.read_text("latin-1") if stat.S_ISREG(mode) else ""
        found[path.name] = [stat.S_IFMT(mode), stat.S_IMODE(mode), path.lstat().st_rdev, held]
    return found


def child(writer, path, prepare, said):
    os.dup2(os.open(said, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), 2)
    prepare()
    try:
        code = ends(writer, path)
        os._exit(code or 0)
    except (ValueError, OSError, RuntimeError) as error:
        os.write(2, f"{error}".encode())  # which no limit of files holds back: it is shorter
        os._exit(3)
    finally:
        os._exit(4)


def main(root):
    root.chmod(0o755)
    os.chdir(root)
    for name, (suffix, writer) in writers().items():
        for hazard, (place, prepare, _) in HAZARDS.items():
            folder = root / f"{name} {hazard}"
            folder.mkdir()
            path = folder / f"a{suffix}"
            place(path)
            before = facts(folder)
            out, into = os.pipe()
            number = os.fork()
            if number == 0:
                os.close(out)
                sys.stdout = open(os.devnull, "w")  # noqa: SIM115
                child(writer, path, prepare, f"/proc/self/fd/{into}")
            os.close(into)
            with open(out, "rb") as pipe:
                said = pipe.read().decode()
            status = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
            after = facts(folder)
            entry = {"writer": name, "hazard": hazard, "status": status, "said": said, "same": before == after}
            entry["names"] = None if after is None else sorted(after)
            entry["modes"] = None if after is None else {key: [value[0], value[1]] for key, value in after.items()}
            print(json.dumps(entry), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
