"""What the tree is held to, as pure functions from texts to violations; `test_architecture.py` applies and tests them."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

LAYERS: Final[tuple[frozenset[str], ...]] = tuple(
    frozenset(layer.split())
    for layer in (
        "errors resources",
        "codes files",
        "dtypes",
        "shapes",
        "arrays",
        "signatures",
        "ir",
        "frontend",
        "numerics formulas target",
        "passes",
        "sidecar cost",
        "emit",
        "evaluate",
        "plain request",
        "compiler",
        "oracle fragment profile",
        "validate runtime",
        "kernel",
        "check importer glue",
        "conform package tune",
        "api",
        "cli",
        "__init__",
        "__main__",
    )
)
"""The units of qgen (modules and folders directly below it), lowest first; a unit imports from lower layers only."""

ORACLE_IMPORTS: Final = frozenset({"errors", "dtypes", "arrays", "shapes", "signatures", "ir", "frontend"})
"""The oracle judges passes, numerics and evaluator, so it may not share anything with them."""

_COMPUTING: Final = frozenset({
    "shapes", "arrays", "evaluate", "plain", "compiler", "oracle", "importer", "validate", "runtime", "glue", "kernel", "check", "conform",
    "package", "tune", "cli",
})  # fmt: skip

DOORS: Final[dict[str, frozenset[str]]] = {
    "lark": frozenset({"frontend"}),
    "jinja2": frozenset({"emit"}),
    "wgpu": frozenset({"runtime", "validate"}),
    "wgpudawn": frozenset({"runtime", "validate"}),
    "onnx": frozenset({"importer"}),
    "google": frozenset({"importer"}),  # protobuf, whose errors onnx raises
    "distributed": frozenset({"conform"}),  # Dask
    "numpy": _COMPUTING,
    "ml_dtypes": _COMPUTING,
}
"""The third-party libraries, each with the units that may import it; any other library may not be imported at all."""

TOP_FOLDERS: Final = frozenset({"qgen", "grammar", "targets", "tests", "golden", ".ci", ".github"})
MODULE_LINES: Final = 320

_FORBIDDEN: Final = {
    "a machine's path": re.compile(r"(?<![.\w])/(?:tmp|work|root|home|Users)/"),
    "a package registry's host": re.compile(
        r"registry\.npmjs|\bpypi\.org|pythonhosted\.org|\bdeb\.debian\.org|static\.crates\.io|proxy\.golang\.org"
    ),
    "a date": re.compile(r"\b(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])\b"),
}
_SUPPRESSION: Final = re.compile(r"#\s*(?:noqa|type:\s*ignore)\b(?P<rest>.*)")
_EXPLAINED: Final = re.compile(r"(?:: *[A-Z]+\d+(?:, *[A-Z]+\d+)*|\[[\w, -]+\]) *[-#:(] *\w.*")
_CODE: Final = re.compile(r"\bQG\d{3}\b")


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module by its full dotted name, and the line where it is imported."""

    name: str
    line: int


def find_imports(source: str, module: str, *, is_package: bool) -> Iterator[Import]:
    """Yield every import of `module`, those inside functions too; `from qgen import x` counts as `qgen.x`.

    `importlib.import_module` and `__import__` count when their argument is a literal, and as the import `?` otherwise.
    """
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (Import(alias.name, node.lineno) for alias in names)
            case ast.ImportFrom(module=name, names=names, level=level):
                base = ".".join([*package[: len(package) - level + 1], *([name] if name else [])]) if level else str(name)
                if base == "qgen":
                    yield from (Import(f"qgen.{alias.name}", node.lineno) for alias in names)
                else:
                    yield Import(base, node.lineno)
            case ast.Call(func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"), args=[argument, *_]):
                literal = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
                yield Import(ast.literal_eval(argument) if literal else "?", node.lineno)
            case _:
                pass


def find_layer_violations(source: str, module: str, *, is_package: bool) -> list[str]:
    """Return the imports of `module` that go up or sideways, or through a door that is not its own."""
    unit = _unit(module)
    found = []
    for imported in find_imports(source, module, is_package=is_package):
        if imported.name == "?" and unit == "__init__":
            continue  # The public names, imported when they are asked for; all are of qgen.
        reason = _judge(unit, imported.name)
        if reason:
            found.append(f"{module}:{imported.line} imports {imported.name}: {reason}")
    if _layer(unit) is None:
        found.append(f"{module}: `{unit}` has no layer; give it one in tests/architecture.py")
    return found


def _judge(unit: str, name: str) -> str | None:
    """Return why `unit` may not import `name`, or None."""
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names or name == "qgen.__version__":
        return None
    if top != "qgen":
        return None if unit in DOORS.get(top, ()) else f"`{unit}` is no door for this library"
    other = _unit(name)
    if other == unit:
        return None
    if unit == "oracle" and other not in ORACLE_IMPORTS:
        return "the oracle stands on its own"
    own, its = _layer(unit), _layer(other)
    return None if own is not None and its is not None and its < own else f"`{other}` is not below `{unit}`"


def _unit(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def _layer(unit: str) -> int | None:
    return next((index for index, layer in enumerate(LAYERS) if unit in layer), None)


def find_long_module(name: str, source: str) -> list[str]:
    """Return `name` if it has more lines than a module may have."""
    count = len(source.splitlines())
    return [f"{name} has {count} lines, at most {MODULE_LINES}"] if count > MODULE_LINES else []


def find_extra_folders(paths: Iterable[str]) -> list[str]:
    """Return the top-level folders among tracked `paths` that the layout does not have."""
    return sorted({path.split("/")[0] for path in paths if "/" in path} - TOP_FOLDERS)


def find_forbidden_text(name: str, text: str) -> list[str]:
    """Return what may not stand in a committed text: paths of one machine, hosts of package registries, dates."""
    return [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1} has {what}: {match.group().strip()}"
        for what, pattern in _FORBIDDEN.items()
        for match in pattern.finditer(text)
    ]


def find_unexplained_ignores(pyproject: str) -> list[str]:
    """Return the rules that ruff is told to ignore, for all files or some, without a comment on the rule's own line."""
    lint = tomllib.loads(pyproject)["tool"]["ruff"]["lint"]
    rules = {*lint["ignore"], *(rule for ignored in lint["per-file-ignores"].values() for rule in ignored)}
    found = []
    for rule in sorted(rules):
        lines = [line for line in pyproject.splitlines() if line.strip().startswith(f'"{rule}"')]
        if not lines or not all(re.search(r"# \w", line) for line in lines):
            found.append(rule)
    return found


def find_unexplained_suppressions(name: str, source: str) -> list[str]:
    """Return the lint and type errors silenced in a line without their code and, after it, the reason."""
    return [
        f"{name}:{number} silences a check without code and reason"
        for number, line in enumerate(source.splitlines(), 1)
        if (match := _SUPPRESSION.search(line)) and not _EXPLAINED.fullmatch(match["rest"].strip())
    ]


def compare_codes(sources: Iterable[str], tables: Iterable[str]) -> list[str]:
    """Return the error codes in Python `sources` that no TOML of `tables` explains, and those that are explained but not raised."""
    raised = {code for source in sources for code in _CODE.findall(source)}
    explained = [code for table in tables for code in tomllib.loads(table)]
    twice = {code for code in explained if explained.count(code) > 1}
    return [
        *(f"{code} is raised, but no table in qgen/codes explains it" for code in sorted(raised - set(explained))),
        *(f"{code} is explained in qgen/codes, but never raised" for code in sorted(set(explained) - raised)),
        *(f"{code} is explained twice" for code in sorted(twice)),
    ]
