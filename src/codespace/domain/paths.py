"""The lexical rule for a client's path: what may be said, before anything is looked at on disk."""

from codespace.domain.errors import CodeSpaceError, ErrorCode

ROOT = "."
"""The cleaned path of the root itself."""

PATH_MAX_BYTES = 4_096
COMPONENT_MAX_BYTES = 255


def clean(path: str) -> str:
    """Return `path` relative to the root, without empty and `.` components.

    `./a`, `a//b`, `a/./b` and `a/` are accepted; the root itself is `"."`. A backslash, a colon, a
    tilde and a percent sign are ordinary characters.

    Raises:
        CodeSpaceError: PATH_ESCAPE for an absolute path, any `..` component or a NUL;
            FILE_OPERATION_FAILED with ENAMETOOLONG for what no filesystem could hold.
    """
    if path.startswith("/"):
        raise _escape(path, "is absolute; give it relative to the workspace's root")
    if "\0" in path:
        raise _escape(path, "holds a NUL character; leave it out")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise _escape(path, "holds '..'; name the file from the workspace's root")
    cleaned = "/".join(parts) or ROOT
    encoded = cleaned.encode("utf-8", "surrogatepass")
    if len(encoded) >= PATH_MAX_BYTES or any(
        len(part) > COMPONENT_MAX_BYTES for part in encoded.split(b"/")
    ):
        raise CodeSpaceError(
            ErrorCode.FILE_OPERATION_FAILED,
            f"The path {shown(cleaned)} is too long; a name holds at most"
            f" {COMPONENT_MAX_BYTES} bytes, a path {PATH_MAX_BYTES - 1}.",
            details={"path": shown_raw(cleaned), "errno": "ENAMETOOLONG"},
        )
    return cleaned


def ancestors(path: str) -> tuple[str, ...]:
    """Return the directories above a cleaned path, outermost first, without the root."""
    parts = path.split("/")[:-1]
    return tuple("/".join(parts[: depth + 1]) for depth in range(len(parts)))


def shown(path: str) -> str:
    """Return a client's path as a message may repeat it: quoted, escaped, and cut."""
    return repr(shown_raw(path))


def shown_raw(path: str) -> str:
    """Return a client's path as `details` may repeat it: cut, and valid Unicode."""
    path = path.encode("utf-8", "replace").decode("utf-8")
    return path if len(path) <= 256 else f"{path[:256]}…"  # noqa: PLR2004 -- the cut itself


def _escape(path: str, why: str) -> CodeSpaceError:
    return CodeSpaceError(
        ErrorCode.PATH_ESCAPE,
        f"The path {shown(path)} {why}.",
        details={"path": shown_raw(path)},
    )
