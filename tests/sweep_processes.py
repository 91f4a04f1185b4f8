"""A process that forks others on demand, so that a test that starts many pays for the imports once.

A request is a line of JSON. ``{"start": arguments of the command yzflow, "folder": path}`` runs the command there in a
process group of its own and answers with its number; in the place of arguments it may name a function, "module:name".
``"limit": bytes`` makes every larger file fail, as a full disk does. ``{"wait": number}`` answers with the exit status,
and ``{"load": module}`` imports a module that all later processes have.
"""

import importlib
import json
import os
import resource
import sys


def run(arguments, folder, limit=None):
    from yzflow import cli

    os.setpgid(0, 0)
    os.chdir(folder)
    for stream, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), stream)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        if isinstance(arguments, str):
            module, _, name = arguments.partition(":")
            getattr(importlib.import_module(module), name)()
            os._exit(0)
        cli.main(arguments)
    except SystemExit as end:
        sys.stdout.flush()
        os._exit(end.code or 0)
    finally:
        os._exit(99)


def main():
    from yzflow.sweeps.tasks import named

    named()
    for line in sys.stdin:
        request = json.loads(line)
        if "load" in request:
            importlib.import_module(request["load"])
            print(0, flush=True)
            continue
        if "wait" in request:
            print(os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1]), flush=True)
            continue
        child = os.fork()
        if child == 0:
            run(request["start"], request["folder"], request.get("limit"))
        os.setpgid(child, child)  # here too: whichever comes first
        print(child, flush=True)


if __name__ == "__main__":
    main()
