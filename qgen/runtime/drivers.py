"""The environment in which stacks find their drivers.

All find Vulkan drivers through the loader, which looks into the system's folders. SwiftShader is not there: Debian's chromium-common keeps
it beside the browser, so it is added by name while a stack starts; the environment is then as it was. Whoever sets any of the loader's
variables has the say, and nothing is added.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_LOADER_VARIABLES: Final = (
    "VK_ICD_FILENAMES",
    "VK_DRIVER_FILES",
    "VK_ADD_DRIVER_FILES",
    "VK_LOADER_DRIVERS_SELECT",
    "VK_LOADER_DRIVERS_DISABLE",
)

_SWIFTSHADER: Final = ("/usr/lib/chromium/vk_swiftshader_icd.json", "/usr/lib/chromium-browser/vk_swiftshader_icd.json")


@contextmanager
def driver_environment(stack: str) -> Iterator[None]:
    """Hold the variables that the drivers read while a stack starts, those of them that the user has not set."""
    added = {"XDG_RUNTIME_DIR": tempfile.gettempdir()}
    if not any(name in os.environ for name in _LOADER_VARIABLES):
        files = [path for path in _SWIFTSHADER if Path(path).is_file()]
        added |= {"VK_ADD_DRIVER_FILES": os.pathsep.join(files)} if files else {}
        # Dawn refuses the lavapipe of Mesa 22 with three lines on stderr, whichever adapter was asked for.
        added |= {"VK_LOADER_DRIVERS_DISABLE": "*lvp*"} if stack == "dawn" else {}
    added = {name: value for name, value in added.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]
