"""The only home of wasmtime: one compiled guest a process, its instances, and how they run."""

from pathlib import Path


class Machine:
    """The compiled guest, shared by all VMs of a process. Threads may share it."""

    @classmethod
    def load(cls, *, cache: Path | None) -> "Machine":
        """Compile the guest, or take its machine code from the private folder `cache`."""
        raise NotImplementedError
