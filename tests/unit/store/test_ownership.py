import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from codespace.store.errors import StoreError
from codespace.store.ownership import WriterLock, claim

HOLDER = """
import sys
from codespace.store.ownership import WriterLock
lock = WriterLock(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_database_and_its_directories_are_the_owners_alone(tmp_path: Path) -> None:
    path, lock = claim(str(tmp_path / "state" / "deep" / "ledger.db"))
    lock.release()
    assert mode(Path(path)) == 0o600
    assert mode(Path(f"{path}.lock")) == 0o600
    assert mode(tmp_path / "state") == 0o700
    assert mode(tmp_path / "state" / "deep") == 0o700


def test_an_open_database_is_closed_to_others(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    for name in ("ledger.db", "ledger.db-wal"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o644)
    claim(str(path))[1].release()
    assert (mode(path), mode(tmp_path / "ledger.db-wal")) == (0o600, 0o600)


def test_a_second_holder_is_told_who_the_first_is(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreError, match=f"process {holder.pid}.*CODESPACE_OPERATIONS_DB"):
            claim(path, patience_seconds=0.05)
        holder.kill()
        holder.wait(timeout=10)
        claim(path, patience_seconds=5)[1].release()


def test_a_holder_that_leaves_in_time_is_waited_for(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert holder.stdin is not None
        holder.stdin.close()
        WriterLock(path, patience_seconds=20).release()
        holder.wait(timeout=10)


def test_two_names_of_one_file_meet_in_one_lock(tmp_path: Path) -> None:
    (tmp_path / "other").symlink_to(tmp_path / "ledger.db")
    _, lock = claim(str(tmp_path / "ledger.db"))
    with pytest.raises(StoreError, match="in use"):
        claim(str(tmp_path / "other"), patience_seconds=0)
    lock.release()


@pytest.mark.parametrize("kind", ["directory", "fifo"])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "ledger.db"
    if kind == "directory":
        path.mkdir()
    else:
        os.mkfifo(path)
    with pytest.raises(StoreError, match=r"ledger\.db"):
        claim(str(path))
    WriterLock(str(path), patience_seconds=0).release()


@pytest.mark.parametrize("name", ["ledger.db.lock", "ledger.db-wal", "ledger.db-journal"])
@pytest.mark.parametrize("there", [True, False])
def test_a_link_in_place_of_a_companion_is_not_followed(
    tmp_path: Path, name: str, *, there: bool
) -> None:
    target = tmp_path / "precious"
    if there:
        target.write_text("precious", encoding="utf-8")
        target.chmod(0o644)
    (tmp_path / name).symlink_to(target)
    with pytest.raises(StoreError, match="symbolic link"):
        claim(str(tmp_path / "ledger.db"))
    assert target.exists() is there
    if there:
        assert mode(target) == 0o644


@pytest.mark.parametrize("name", ["ledger.db", "ledger.db.lock", "ledger.db-shm"])
def test_a_file_with_a_second_name_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "elsewhere").touch(0o644)
    (tmp_path / name).hardlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match=f"{name}' has more than one name"):
        claim(str(tmp_path / "ledger.db"))
    assert mode(tmp_path / "elsewhere") == 0o644


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").touch()
    os.chown(tmp_path / "ledger.db", 65534, 65534)
    with pytest.raises(StoreError, match="belongs to another user"):
        claim(str(tmp_path / "ledger.db"))


def test_a_refused_database_is_not_held(tmp_path: Path) -> None:
    (tmp_path / "ledger.db-wal").symlink_to("nowhere")
    with pytest.raises(StoreError, match="symbolic link"):
        claim(str(tmp_path / "ledger.db"))
    WriterLock(str(tmp_path / "ledger.db"), patience_seconds=0).release()


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be made"):
        claim(str(tmp_path / "file" / "deep" / "ledger.db"))


def test_a_lock_can_be_released_twice(tmp_path: Path) -> None:
    lock = WriterLock(str(tmp_path / "ledger.db"))
    lock.release()
    lock.release()
