"""Commands that hold a machine, and qgen itself, to what is promised: the self-test, the matrix on every stack, all of what is finite."""
