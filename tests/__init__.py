"""The tests of qgen: folders mirror `qgen/`, and `python -m tests.demo` is the demonstration that README names."""
