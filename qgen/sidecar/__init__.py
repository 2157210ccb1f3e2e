"""The sidecar of a kernel: how a host binds and dispatches it, in formulas over the shapes."""
