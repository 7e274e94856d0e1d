"""Bringing files back to their before-images: after a write that failed, and after a crash.

What is to be brought back is decided elsewhere; here it is looked at, done and looked at again.
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.operation import FileImage
from codespace.domain.patch import ABSENT
from codespace.workspace.attributes import NO_ATTRIBUTES, Attributes, attributes_of
from codespace.workspace.directory import RootDirectory, open_regular
from codespace.workspace.survey import UNBOUND, Found, Standing, read_files
from codespace.workspace.temporaries import Ownership, Target, Temporaries, by_directory

OTHER = "other"
"""The version of what is no readable regular file."""


def current_version(root: RootDirectory, path: str, made: Collection[str] = ()) -> str:
    """Return the version that stands at `path` now.

    A directory that the operation itself made there counts as no file.
    """
    try:
        ((_, standing),) = read_files(root, (path,), lambda: UNBOUND)
    except CodeSpaceError:
        return OTHER
    return version_standing(path, standing, made)


def version_standing(path: str, standing: Standing, made: Collection[str]) -> str:
    """Return what stands at `path` as a version."""
    if isinstance(standing, Found):
        return standing.version
    return ABSENT if standing == "absent" or path in made else OTHER


@dataclass(frozen=True, slots=True)
class Restorer:
    """Restores files of one operation.

    Attributes:
        directories: those that it made, outermost first.
        attributes: those of the files before, by path. After a crash they are not known: then a
            file gets those of what was written in its place, which were copied from it.
    """

    temporaries: Temporaries
    images: Sequence[FileImage]
    directories: Sequence[str]
    durable: bool
    attributes: Mapping[str, Attributes] | None = None

    def observe(self) -> list[tuple[FileImage, str]]:
        """Return each file with the version that stands there now."""
        root = self.temporaries.root
        return [
            (image, current_version(root, image.path, self.directories)) for image in self.images
        ]

    def restore(self, paths: Collection[str]) -> bool:
        """Bring `paths` back and remove what was made for the patch; say whether all went well.

        New files go first, so that their directories can go, so that a file whose name such a
        directory took can come back. Every path is tried, also after a failure.
        """
        files = [
            Target(image.path, position)
            for position, image in enumerate(self.images)
            if image.path in paths
        ]
        vanish = [self._try(file) for file in files if self.images[file.position].before is None]
        self.remove_directories()
        return all(
            [
                *vanish,
                *[
                    self._try(file)
                    for file in files
                    if self.images[file.position].before is not None
                ],
                self._sync(files),
            ]
        )

    def remove_directories(self) -> None:
        """Remove the made directories, innermost first. What others put into one keeps it."""
        root, calls = self.temporaries.root, self.temporaries.calls
        for path in reversed(self.directories):
            with suppress(OSError, CodeSpaceError), root.parent(path) as (dir_fd, name):
                calls.rmdir(name, dir_fd=dir_fd)
                if self.durable:
                    self.temporaries.sync_directory(dir_fd)

    def _try(self, file: Target) -> bool:
        image, calls = self.images[file.position], self.temporaries.calls
        try:
            with self.temporaries.root.parent(file.path) as (dir_fd, name):
                if image.before is None:
                    calls.unlink(name, dir_fd=dir_fd)
                else:
                    attributes = self._attributes(file, dir_fd)
                    ownership = Ownership(image.mode, image.uid, image.gid, attributes)
                    self.temporaries.write(
                        file.position, image.before, ownership, dir_fd=dir_fd, sync=self.durable
                    )
                    calls.rename(self.temporaries.name_of(file.position), name, dir_fd=dir_fd)
        except (OSError, CodeSpaceError):
            return False
        return True

    def _attributes(self, file: Target, dir_fd: int) -> Attributes:
        if self.attributes is not None:
            return self.attributes.get(file.path, NO_ATTRIBUTES)
        if any(image.planned_version == ABSENT for image in self.images):
            return NO_ATTRIBUTES  # another file may have been moved there, with its own
        try:
            standing = open_regular(file.path, dir_fd, file.name)
        except OSError:
            return NO_ATTRIBUTES
        try:
            return attributes_of(standing)
        finally:
            os.close(standing)

    def _sync(self, files: Iterable[Target]) -> bool:
        if not self.durable:
            return True
        synced = True
        for group in by_directory(files):
            try:
                with self.temporaries.root.parent(group[0].path) as (dir_fd, _):
                    self.temporaries.sync_directory(dir_fd)
            except CodeSpaceError as error:
                # The directory was the patch's own and is gone: its parent was synced for that.
                gone = (ErrorCode.FILE_NOT_FOUND, ErrorCode.PATH_NOT_DIRECTORY)
                synced = synced and error.code in gone
            except OSError:
                synced = False
        return synced
