import base64
import hashlib
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.limits import Limits
from codespace.domain.workspace import Root
from codespace.workspace.directory import register
from codespace.workspace.files import FileContent, LargerThanExpectedError, read

LIMITS = Limits()


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def root(top: Path) -> Root:
    return register(str(top))


def version(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_file_larger_than_expected_is_not_read(root: Root, top: Path) -> None:
    (top / "file").write_bytes(b"12345")
    assert read(root, "file", max_bytes=9, limits=LIMITS, largest=5).content == "12345"
    with pytest.raises(LargerThanExpectedError):
        read(root, "file", max_bytes=9, limits=LIMITS, largest=4)


@pytest.fixture
def endless(top: Path) -> str:
    """A file whose version takes hours."""
    with (top / "endless").open("wb") as file:
        file.truncate(1024**4)
    return "endless"


def test_a_file_that_takes_too_long_is_a_timeout_that_says_what_to_do(
    root: Root, endless: str
) -> None:
    with pytest.raises(CodeSpaceError, match="with a command") as caught:
        read(root, endless, max_bytes=9, limits=Limits(grep_timeout_ms=50))
    assert caught.value.code is ErrorCode.TIMEOUT
    assert caught.value.details == {"limit": 50}


def test_a_read_that_nobody_waits_for_ends(root: Root, endless: str) -> None:
    abandoned = threading.Event()
    abandoned.set()
    with pytest.raises(CodeSpaceError, match="cancelled"):
        read(root, endless, max_bytes=9, limits=LIMITS, abandoned=abandoned)


def test_a_small_text_comes_whole(root: Root, top: Path) -> None:
    content = "héllo\r\nwörld\0\n".encode()
    (top / "file").write_bytes(content)
    assert read(root, "./file", max_bytes=100, limits=LIMITS) == FileContent(
        path="file",
        content=content.decode(),
        encoding="utf-8",
        version=version(content),
        size=len(content),
        truncated=False,
    )


def test_an_empty_file_is_empty_text(root: Root, top: Path) -> None:
    (top / "file").write_bytes(b"")
    found = read(root, "file", max_bytes=100, limits=LIMITS)
    assert (found.content, found.encoding, found.size, found.truncated) == ("", "utf-8", 0, False)
    assert found.version == version(b"")


def test_the_version_is_that_of_the_whole_file_when_truncated(root: Root, top: Path) -> None:
    content = os.urandom(3_000_000)
    (top / "file").write_bytes(content)
    found = read(root, "file", offset=1_048_000, max_bytes=2_000, limits=LIMITS)
    assert found.version == version(content)
    assert found.size == 3_000_000
    assert (found.truncated, found.next_offset) == (True, 1_050_000)
    assert found.encoding == "base64"
    assert base64.b64decode(found.content) == content[1_048_000:1_050_000]


@pytest.mark.parametrize("offset", [5, 6, 10**30])
def test_an_offset_at_or_behind_the_end_gives_empty_content(
    root: Root, top: Path, offset: int
) -> None:
    (top / "file").write_bytes(b"12345")
    found = read(root, "file", offset=offset, max_bytes=100, limits=LIMITS)
    assert (found.content, found.truncated, found.next_offset) == ("", False, None)
    assert (found.size, found.version) == (5, version(b"12345"))


def test_a_cut_moves_back_to_the_start_of_a_character(root: Root, top: Path) -> None:
    (top / "file").write_text("aé€😀", encoding="utf-8")
    pieces = {
        count: read(root, "file", max_bytes=count, limits=LIMITS).content for count in range(1, 11)
    }
    assert pieces == {
        1: "a", 2: "a", 3: "aé", 4: "aé", 5: "aé", 6: "aé€", 7: "aé€", 8: "aé€", 9: "aé€",
        10: "aé€😀",
    }  # fmt: skip


def test_a_character_that_does_not_fit_comes_whole_so_that_reading_goes_on(
    root: Root, top: Path
) -> None:
    (top / "file").write_text("😀😀", encoding="utf-8")
    first = read(root, "file", max_bytes=1, limits=LIMITS)
    assert (first.content, first.next_offset) == ("😀", 4)
    second = read(root, "file", offset=4, max_bytes=1, limits=LIMITS)
    assert (second.content, second.truncated) == ("😀", False)


def test_a_piece_that_starts_inside_a_character_is_base64(root: Root, top: Path) -> None:
    (top / "file").write_text("é and more", encoding="utf-8")
    found = read(root, "file", offset=1, max_bytes=4, limits=LIMITS)
    assert found.encoding == "base64"
    assert base64.b64decode(found.content) == b"\xa9 an"


def test_text_that_ends_inside_a_character_is_base64(root: Root, top: Path) -> None:
    (top / "file").write_bytes(b"abc\xe2\x82")
    found = read(root, "file", max_bytes=100, limits=LIMITS)
    assert (found.encoding, base64.b64decode(found.content)) == ("base64", b"abc\xe2\x82")


def test_a_binary_piece_is_cut_exactly(root: Root, top: Path) -> None:
    (top / "file").write_bytes(b"\x80" * 100)
    found = read(root, "file", max_bytes=10, limits=LIMITS)
    assert (base64.b64decode(found.content), found.next_offset) == (b"\x80" * 10, 10)


@given(
    content=st.one_of(st.text(max_size=60).map(lambda text: text.encode()), st.binary(max_size=60)),
    max_bytes=st.integers(1, 70),
)
def test_pieces_in_a_row_make_up_the_file(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, max_bytes: int
) -> None:
    top = tmp_path_factory.getbasetemp() / "pieces"
    top.mkdir(exist_ok=True)
    (top / "file").write_bytes(content)
    root = register(str(top))
    collected = b""
    offset: int | None = 0
    while offset is not None:
        piece = read(root, "file", offset=offset, max_bytes=max_bytes, limits=LIMITS)
        raw = piece.content
        data = raw.encode() if piece.encoding == "utf-8" else base64.b64decode(raw)
        assert len(data) <= max(max_bytes, 4)
        assert data or not content
        assert (piece.version, piece.size) == (version(content), len(content))
        assert piece.truncated == (piece.next_offset is not None)
        collected += data
        offset = piece.next_offset
    assert collected == content


@given(text=st.text(min_size=1, max_size=60), max_bytes=st.integers(1, 70))
def test_text_never_comes_as_base64_when_it_is_read_from_the_start_on(
    tmp_path_factory: pytest.TempPathFactory, text: str, max_bytes: int
) -> None:
    top = tmp_path_factory.getbasetemp() / "texts"
    top.mkdir(exist_ok=True)
    (top / "file").write_bytes(text.encode())
    root = register(str(top))
    collected = ""
    offset: int | None = 0
    while offset is not None:
        piece = read(root, "file", offset=offset, max_bytes=max_bytes, limits=LIMITS)
        assert piece.encoding == "utf-8"
        collected += piece.content
        offset = piece.next_offset
    assert collected == text


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (".", ErrorCode.IS_A_DIRECTORY),
        ("", ErrorCode.IS_A_DIRECTORY),
        ("folder", ErrorCode.IS_A_DIRECTORY),
        ("folder/", ErrorCode.IS_A_DIRECTORY),
        ("none", ErrorCode.FILE_NOT_FOUND),
        ("file/x", ErrorCode.PATH_NOT_DIRECTORY),
        ("/etc/passwd", ErrorCode.PATH_ESCAPE),
        ("folder/../file", ErrorCode.PATH_ESCAPE),
    ],
)
def test_what_cannot_be_read_is_refused(root: Root, top: Path, path: str, code: ErrorCode) -> None:
    (top / "folder").mkdir()
    (top / "file").write_text("")
    with pytest.raises(CodeSpaceError) as caught:
        read(root, path, max_bytes=100, limits=LIMITS)
    assert caught.value.code is code


@pytest.mark.parametrize(
    ("offset", "max_bytes", "code"),
    [
        (-1, 10, ErrorCode.INVALID_ARGUMENT),
        (0, 0, ErrorCode.INVALID_ARGUMENT),
        (0, LIMITS.read_max_bytes + 1, ErrorCode.LIMIT_EXCEEDED),
    ],
)
def test_a_range_that_cannot_be_is_refused(
    root: Root, offset: int, max_bytes: int, code: ErrorCode
) -> None:
    with pytest.raises(CodeSpaceError) as caught:
        read(root, "file", offset=offset, max_bytes=max_bytes, limits=LIMITS)
    assert caught.value.code is code


def test_a_log_that_grows_all_the_time_is_read_with_the_version_of_one_of_its_states(
    root: Root, top: Path
) -> None:
    log = top / "log"
    log.write_bytes(b"0123456789" * 200_000)
    stop = threading.Event()

    def grow() -> None:
        with log.open("ab", buffering=0) as file:
            while not stop.is_set():
                file.write(b"0123456789")

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        found = [read(root, "log", max_bytes=100, limits=LIMITS) for _ in range(10)]
    finally:
        stop.set()
        writer.join()
    whole = log.read_bytes()
    for piece in found:
        assert piece.version == version(whole[: piece.size])


def test_a_file_that_is_replaced_all_the_time_is_read_as_one_of_its_states(
    root: Root, top: Path
) -> None:
    states = [bytes([65 + number]) * 1_500_000 for number in range(4)]
    (top / "file").write_bytes(states[0])
    stop = threading.Event()

    def replace() -> None:
        while not stop.is_set():
            for state in states:
                (top / "new").write_bytes(state)
                (top / "new").replace(top / "file")

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        found = [read(root, "file", max_bytes=10, limits=LIMITS) for _ in range(20)]
    finally:
        stop.set()
        writer.join()
    expected = {state[:10].decode(): version(state) for state in states}
    for piece in found:
        assert expected[piece.content] == piece.version
