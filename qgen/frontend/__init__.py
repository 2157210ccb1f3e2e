"""The front end: text of the formula language to AST (`parse`), and an `op` under a binding to a CHECKED program (`check`)."""
