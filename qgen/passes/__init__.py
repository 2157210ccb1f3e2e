"""The passes: pure functions from program to program, each verified after it ran. `pipeline` has their order."""
