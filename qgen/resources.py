"""The texts beside the code: `grammar/` and `targets/`, in a checkout beside the package, in an installed wheel inside it."""

from __future__ import annotations

from pathlib import Path


def read_resource(folder: str, name: str) -> str:
    """Return the text of the file `name` (may contain `/`) in `folder`, which is `grammar` or `targets`.

    Raises `FileNotFoundError` where this copy of qgen does not have it.
    """
    return (_root() / folder / name).read_text(encoding="utf-8")


def list_resources(folder: str) -> tuple[str, ...]:
    """Return the names of the files directly in `folder`, sorted; raises `FileNotFoundError` where there is no such folder."""
    return tuple(sorted(entry.name for entry in (_root() / folder).iterdir() if entry.is_file()))


def _root() -> Path:
    """Prefer the packed copy: a checkout has none, and an installed qgen must not look beside itself."""
    package = Path(__file__).parent
    packed = package / "_data"
    return packed if packed.is_dir() else package.parent
