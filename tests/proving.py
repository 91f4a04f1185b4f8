"""Tests of a paper's proofs: each holds, and each refutes the mistakes of ``mistakes.py`` beside the paper's tests."""

import dataclasses
import functools
import inspect
import re
import runpy
from collections import Counter
from pathlib import Path

import pytest
import sympy as sp

from theory.symbolic import derived, part
from theory.trust import Trust
from yzflow.testing import check_paper


def fresh(found):
    """The result of a part of a proof, in mappings that a caller may add to."""
    if type(found) is tuple:
        return tuple(map(fresh, found))
    return type(found)(found) if type(found) in (dict, list) else found


def once(part_of_proof):
    """A function that derives once for each set of claims: a mistake leaves most parts of a proof as they are."""
    known = functools.lru_cache(maxsize=None, typed=True)(part_of_proof)

    @functools.wraps(part_of_proof)
    def derived_once(*claims, **options):
        try:
            return fresh(known(*claims, **options))
        except TypeError:  # of a matrix, which has no hash, or the part's own, which comes again
            return part_of_proof(*claims, **options)

    return derived_once


# A wrong claim leaves most expressions of a proof as they are, and what SymPy makes of them.
for name in ("simplify", "expand", "limit", "factor", "together", "powdenest", "summation"):
    setattr(sp, name, once(getattr(sp, name)))


def derive_parts_once(module):
    """Makes the parts of a module's proof remember what they derived; the claims themselves stay as they are."""
    claims = inspect.signature(module.derive).parameters
    for name, function in list(vars(module).items()):
        if inspect.isfunction(function) and function.__module__ == module.__name__ and name not in {"derive", *claims}:
            setattr(module, name, once(function))


def first_quick(kinds, number, slow=()):
    """Parameters: names, by what they are about; of each, the first are quick, without those named in ``slow``."""
    seen, parameters = Counter(), []
    for name, kind in kinds.items():
        seen[kind] += name not in slow
        parameters.append(pytest.param(name, marks=[pytest.mark.slow] * (name in slow or seen[kind] > number)))
    return parameters


class Proofs:
    """The proofs of a paper and its mistakes."""

    def __init__(self, paper, folder):
        given = runpy.run_path(str(Path(folder) / "mistakes.py"))
        self.paper, self.mistakes = paper, given["MISTAKES"]
        for module in {module for module, _, _ in self.mistakes.values()}:
            derive_parts_once(module)
        # Those of a package alone: others may add proofs to a paper.
        packages = {module.__package__ for module, _, _ in self.mistakes.values()}
        proofs = paper.proofs.items()
        self.modules = {name: derive for name, derive in proofs if derive.__module__.rpartition(".")[0] in packages}
        # Beside expressions for all sizes, the same is written out at some: a further look.
        self.confirmed = given.get("CONFIRMED", ())

    def chosen(self):
        """Parameters: names of mistakes; of each proof, two are quick."""
        return first_quick({name: module for name, (module, _, _) in self.mistakes.items()}, 2)

    def cases(self, *left_out):
        """Parameters: what `yzflow.testing` asks of any paper, but cases that begin so."""
        mistakes = {name: (module.derive, claims, start) for name, (module, claims, start) in self.mistakes.items()}
        for given in check_paper(self.paper, mistakes=mistakes):
            (case,) = given.values
            if not case.name.startswith(left_out):
                yield pytest.param(case, id=case.name)

    def check_holds(self, name):
        derivation = derived(self.modules[name])
        assert derivation.vanishing and derivation.steps and derivation.scope and derivation.statement
        label = derivation.label
        assert label.failures == ()
        # Written-out entries and sizes in the names are those of an instance.
        names = (*derivation.vanishing, *derivation.signed)
        written = [entry for entry in names if re.search(r"\[\d|\b[A-Za-z] = \d|(class|token) \d", entry)]
        assert label.trust is Trust.PROVED_AT_SIZES or not written or name in self.confirmed, written[:3]
        # Of sizes that are letters, each that is claimed is written out.
        for letters, values in derivation.sizes.items():
            for value in values:
                pairs = zip(
                    letters.strip("()").split(", "), value if isinstance(value, tuple) else [value], strict=True
                )
                at = ", ".join(f"{letter} = {number}" for letter, number in pairs)
                assert any(at in entry for entry in names) or not any(
                    f"{letters[:1]} = " in entry for entry in names
                ), at
        # An index ranges up to a size, and is not named after one.
        shown = (*derivation.vanishing.values(), *(value for value, _ in derivation.signed.values()))
        indices = {each for value in shown if isinstance(value, sp.Basic) for each in value.atoms(sp.Idx)}
        assert not {str(each.label) for each in indices} & {str(each.upper) for each in indices}

    def check_refutes(self, mistake):
        """The first expression that is wrong under a mistake, of those that it belongs to: to decide all takes long."""
        module, claims, expected = self.mistakes[mistake]
        derivation = part(module.derive, expected)(**claims)
        for kind in ("vanishing", "signed"):
            for name, expression in getattr(derivation, kind).items():
                alone = {"vanishing": {}, "signed": {}, kind: {name: expression}}
                if dataclasses.replace(derivation, **alone).failures():
                    return expression
        pytest.fail(f"{mistake} is not refuted")

    def check_all_have_mistakes(self):
        assert {module.__name__.split(".")[-1] for module, _, _ in self.mistakes.values()} == set(self.modules)

    def check_says(self, module, name, values, left):
        """An inequality has this value at these values of its symbols, by hand: it says no less than it should."""
        expression, _ = derived(self.modules[module]).signed[name]
        at = {symbol: sp.nsimplify(values[symbol.name]) for symbol in expression.free_symbols if symbol.name in values}
        assert len(at) == len(values) or left == 0
        assert sp.simplify(expression.subs(at) - left) == 0
