"""A fuzzer of theorems: settings inside all assumptions are drawn, and the statement's checks have to hold there."""
