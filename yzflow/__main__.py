"""``python -m yzflow``: the command, where its script is not on the path."""

from yzflow.cli import main

if __name__ == "__main__":
    main(prog_name="yzflow")
