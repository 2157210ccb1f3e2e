"""The numerics library, written in the formula language (`*.qg`): functions, and what each computes (`is` clauses)."""
