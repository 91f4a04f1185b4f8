"""Check one certificate."""

import sys

from yzflow_enclose.verifier.verify import main

main(sys.argv[1:])
