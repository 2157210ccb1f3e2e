"""What a CHECKED program computes, in exact arithmetic: the judge of every kernel.

It knows nothing of passes, of the numerics library or of the evaluator; a value is a number here, not the bits that hold it. `exact` has
the arithmetic of numbers, `formats` rounds them into dtypes, `operations` says what each operation does, `groups` spreads scales and zero
points over x, and `reference` walks the program.
"""

from qgen.oracle.reference import evaluate_reference

__all__ = ["evaluate_reference"]
