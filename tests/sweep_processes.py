"""A process that forks others on demand, so that a test that starts many pays for the imports once.

A request is a line of JSON. ``{"start": arguments of the command yzflow, "folder": path}`` runs the command there in a
process group of its own and answers with its number; ``"limit": bytes`` makes every larger file fail, as a full disk
does. ``{"wait": number}`` answers with its exit status.
"""

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
