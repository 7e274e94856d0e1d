"""Machine code of the guest, kept between processes in a private folder.

Loading machine code is running it: the folder must be the user's own and closed to others, and
its files are named by all that they depend on.
"""

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import wasmtime


class MachineCode(NamedTuple):
    """A cache in `folder`; None keeps nothing."""

    folder: Path | None

    def load(
        self,
        engine: wasmtime.Engine,
        wasm: bytes,
        depends_on: str,
        *,
        like: wasmtime.Module | None = None,
    ) -> wasmtime.Module:
        """Return the module, from the cache when it is there and sound, else compiled.

        `depends_on` tells this machine code from any other: the module, options, machine. Where
        there is no cache, a module of this process with the same machine code is copied.
        """
        if self.folder is None or not _make_private(self.folder):
            if like is not None:
                return wasmtime.Module.deserialize(engine, bytes(like.serialize()))
            return wasmtime.Module(engine, wasm)
        key = hashlib.sha256(depends_on.encode()).hexdigest()
        path = self.folder / f"guest-{key[:40]}.bin"
        if _is_private(path):
            try:
                return wasmtime.Module.deserialize_file(engine, str(path))
            except wasmtime.WasmtimeError:  # made by another build of wasmtime: compile anew
                path.unlink(missing_ok=True)
        module = wasmtime.Module(engine, wasm)
        _keep(path, bytes(module.serialize()))
        return module


def _make_private(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return False
    return _is_private(folder)


def _is_private(path: Path) -> bool:
    """Whether `path` is there, no symlink, ours, and writable for nobody else."""
    try:
        found = path.lstat()
    except OSError:
        return False
    others = stat.S_IWGRP | stat.S_IWOTH
    return found.st_uid == os.geteuid() and not found.st_mode & others and not path.is_symlink()


def _keep(path: Path, code: bytes) -> None:
    made = path.with_name(f"{path.stem}-{os.urandom(6).hex()}")
    try:
        with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(code)
        made.replace(path)
    except OSError:  # a full or read-only disk costs the next process its half second
        with suppress(OSError):
            made.unlink(missing_ok=True)
