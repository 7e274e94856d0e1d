"""The build hook: guest.wasm is made before a wheel, an sdist or an editable install is."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))

import build_guest


class GuestHook(BuildHookInterface[Any]):
    """Puts guest.wasm beside the package's modules."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the file before the builder collects what goes into the archive."""
        build_guest.make()
