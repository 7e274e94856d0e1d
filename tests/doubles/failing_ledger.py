"""A ledger of which chosen steps fail, as on a full disk: `store.operations.Operations`."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from codespace.domain.operation import FileImage, Operation
from codespace.store.engine import StoreError
from codespace.store.operations import Operations


@dataclass(frozen=True, slots=True)
class FailingOperations(Operations):
    """Fails in the methods that `broken` names, for as long as it names them."""

    broken: set[str] = field(default_factory=set[str])

    def begin(
        self, operation: Operation, images: Sequence[FileImage], directories: Sequence[str]
    ) -> None:
        self._step("begin")
        Operations.begin(self, operation, images, directories)

    def record(self, operation: Operation) -> None:
        self._step("record")
        Operations.record(self, operation)

    def finish(self, operation: Operation) -> None:
        self._step("finish")
        Operations.finish(self, operation)

    def _step(self, name: str) -> None:
        if name in self.broken:
            raise StoreError("The disk is full.", full=True)
