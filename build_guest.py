"""Makes guest.wasm, the JavaScript engine of `codespace.codemode`, from pinned sources.

The engine's source is an sdist of the package index, checked by its hash; the compiler is the
`ziglang` package. What was made is kept in the user's cache, so that this happens once. As a
program (`python build_guest.py`), it makes the file for a clone; with `--pin`, it writes down the
hash of what it made, after a change of the guest.
"""

import hashlib
import importlib.util
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

ENGINE = "quickjs-ng==0.17.0.2"
ENGINE_SHA256 = "43d2e48272208721a7aaea8e3f02d4b9318f12ef20cc4f5421b59d9a470706ef"
ENGINE_FOLDER = "quickjs_ng-0.17.0.2/upstream-quickjs"
COMPILER_VERSION = "0.15.2"
BAKING = "1"
SDIST_VARIABLE = "CODESPACE_QUICKJS_SDIST"

HERE = Path(__file__).resolve().parent
GUEST = HERE / "src" / "codespace" / "codemode" / "guest"
PIN = GUEST / "guest.sha256"
TARGET = GUEST.parent / "guest.wasm"

FLAGS = [
    "-target",
    "wasm32-wasi",
    "-mexec-model=reactor",
    "-std=gnu23",
    "-O3",
    "-DNDEBUG",
    "-DFAST_JSON",
    "-fno-sanitize=undefined",
    "-D_GNU_SOURCE",
    "-w",
    "-Wl,-z,stack-size=1048576",
    "-Wl,--strip-all",
]
ENGINE_UNITS = ["libregexp.c", "libunicode.c", "dtoa.c"]
# Small arenas: a VM that waits has one for each size of block that its script used.
PATCHES = [
    ("quickjs.c", "#define JS_ARENA_SIZE              4096", "#define JS_ARENA_SIZE 1024"),
    # The place where a script was stopped is that of its loop (loop_line.c).
    ("quickjs.c", "= find_line_num(ctx, b, pc, &col_num1);", "= place_of(ctx, b, pc, &col_num1);"),
]
PAGE = 65536
IMPORTS = 2
STACK_SIZE = 1048576


class BuildError(Exception):
    """The guest cannot be made; the message says what is missing and how to get it."""


def make(*, pin: bool = False) -> None:
    """Put guest.wasm in place: as it is, from the user's cache, or made from the sources."""
    key, pinned_key, pinned_hash = source_key(), *read_pin()
    if not pin and key != pinned_key:
        raise BuildError(
            "The sources of the guest differ from guest.sha256; run `python build_guest.py --pin`."
        )
    if not pin and TARGET.exists() and sha256(TARGET.read_bytes()) == pinned_hash:
        return
    cached = cache_folder() / f"guest-{key}.wasm"
    wasm = cached.read_bytes() if cached.exists() else b""
    if not wasm or (not pin and sha256(wasm) != pinned_hash):
        wasm = bake(compile_guest())
        replace(cached, wasm)
    if pin:
        PIN.write_text(f"sources {key}\nwasm {sha256(wasm)}\n", encoding="ascii")
    elif sha256(wasm) != pinned_hash:
        raise BuildError(
            f"The guest made here has hash {sha256(wasm)}, not the pinned {pinned_hash}; "
            f"check that ziglang is {COMPILER_VERSION}."
        )
    replace(TARGET, wasm)


def sha256(data: bytes) -> str:
    """Return the hash as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def source_key() -> str:
    """Return a hash of all that decides the bytes of guest.wasm."""
    parts = [ENGINE_SHA256, COMPILER_VERSION, BAKING, *FLAGS, *ENGINE_UNITS]
    parts += [text for patch in PATCHES for text in patch]
    for path in sorted([*GUEST.glob("*.[ch]"), *GUEST.glob("*.js")]):
        parts += [path.name, sha256(path.read_bytes())]
    return sha256("\n".join(parts).encode())


def read_pin() -> tuple[str, str]:
    """Return the pinned key of the sources and the pinned hash of the wasm."""
    words = PIN.read_text(encoding="ascii").split() if PIN.exists() else []
    return (words[1], words[3]) if len(words) == 4 else ("", "")  # noqa: PLR2004 -- two names, two values


def cache_folder() -> Path:
    """Return the private folder of this user for what was made before."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "codespace" / "build"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="codespace-build-"))
    return folder


def replace(path: Path, data: bytes) -> None:
    """Write a file so that nobody sees half of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    Path(name).chmod(0o644)
    Path(name).replace(path)


def compile_guest() -> bytes:
    """Return the module that the compiler makes of the engine and the bridge."""
    check_tools()
    with tempfile.TemporaryDirectory(prefix="codespace-guest-") as name:
        folder = Path(name)
        engine = unpack(engine_sdist(folder), folder)
        output = folder / "guest.wasm"
        units = [str(GUEST / "guest.c"), *(str(engine / unit) for unit in ENGINE_UNITS)]
        command = [sys.executable, "-m", "ziglang", "cc", *FLAGS, f"-I{engine}", "-o", str(output)]
        environment = {**os.environ, "ZIG_LOCAL_CACHE_DIR": str(folder / "zig")}
        done = subprocess.run(
            [*command, *units], env=environment, cwd=folder, capture_output=True, check=False
        )
        if done.returncode:
            text = done.stderr.decode(errors="replace")[-2000:]
            raise BuildError(f"The compiler could not make the guest:\n{text}")
        return output.read_bytes()


def check_tools() -> None:
    """Refuse to begin without the tools: the pinned compiler, and what runs the start-up."""
    if importlib.util.find_spec("wasmtime") is None:
        raise BuildError("The build needs the package wasmtime; install requirements/build.txt.")
    done = subprocess.run(
        [sys.executable, "-m", "ziglang", "version"], capture_output=True, check=False
    )
    found = done.stdout.decode().strip()
    if found != COMPILER_VERSION:
        raise BuildError(
            f"The build needs the package ziglang=={COMPILER_VERSION} (found: {found or 'none'}); "
            "install requirements/build.txt, or build without --no-build-isolation."
        )


def engine_sdist(folder: Path) -> Path:
    """Return the engine's sdist, checked: a local file, or fetched with pip."""
    local = os.environ.get(SDIST_VARIABLE)
    path = Path(local) if local else download(folder)
    if not path.is_file():
        raise BuildError(f"{SDIST_VARIABLE} names {path.name!r}, which is not a file.")
    if sha256(path.read_bytes()) != ENGINE_SHA256:
        raise BuildError(f"{path.name!r} is not the sdist of {ENGINE}: its sha256 differs.")
    return path


def download(folder: Path) -> Path:
    """Fetch the engine's sdist from the configured package index."""
    wanted = folder / "engine.txt"
    wanted.write_text(f"{ENGINE} --hash=sha256:{ENGINE_SHA256}\n", encoding="ascii")
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:"]
    options = ["--require-hashes", "-q", "-r", str(wanted), "-d", str(folder)]
    done = subprocess.run([*pip, *options], capture_output=True, check=False)
    found = sorted(folder.glob("quickjs_ng-*.tar.gz"))
    if done.returncode or not found:
        text = done.stderr.decode(errors="replace")[-1000:]
        raise BuildError(
            f"The build needs the sdist of {ENGINE}, and pip could not fetch it. On a closed "
            f"network, set {SDIST_VARIABLE} to a copy of that file. pip said:\n{text}"
        )
    return found[0]


def unpack(sdist: Path, folder: Path) -> Path:
    """Unpack the sdist and return the folder of the engine's sources."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    for name, before, after in PATCHES:
        path = folder / ENGINE_FOLDER / name
        text = path.read_text(encoding="utf-8")
        if text.count(before) != 1:
            raise BuildError(f"{name} of {ENGINE} does not have one line {before!r}.")
        path.write_text(text.replace(before, after), encoding="utf-8")
    return folder / ENGINE_FOLDER


# ---- baking: run the start-up once, and keep the memory it leaves as the module's image


def bake(module: bytes) -> bytes:
    """Return the module with its start-up done: a new VM is then a copy-on-write mapping."""
    image, address = boot(module)
    sections = dict(read_sections(module))
    if IMPORTS in sections:
        raise BuildError("The guest has imports; it must have none.")
    check_globals(sections[6])
    pages = len(image) // PAGE
    sections[5] = b"\x01\x00" + unsigned(pages)
    sections[7] = exports(sections[7], {"memory", "step", "inbox"})
    sections[11] = segments(image)
    sections.pop(12, None)
    out = [b"\0asm\x01\0\0\0"]
    for number in [1, 3, 4, 5, 6, 7, 9, 10, 11]:
        if number in sections:
            out += [bytes([number]), unsigned(len(sections[number])), sections[number]]
    name = b"codespace.shared"
    body = unsigned(len(name)) + name + address.to_bytes(4, "little")
    return b"".join([*out, b"\0", unsigned(len(body)), body])


def boot(module: bytes) -> tuple[bytes, int]:
    """Run the start-up; return the memory after it, and where the shared struct is."""
    import wasmtime  # noqa: PLC0415 -- only a build that bakes needs it

    store = wasmtime.Store()
    instance = wasmtime.Instance(store, wasmtime.Module(store.engine, module), [])
    found, answers = instance.exports(store), list[object]()
    for name in ("_initialize", "boot", "shared_address"):
        function = found[name]
        if not isinstance(function, wasmtime.Func):
            raise BuildError(f"The guest has no function {name!r}.")
        answers.append(function(store))
    memory, address = found["memory"], answers[-1]
    if not isinstance(memory, wasmtime.Memory) or not isinstance(address, int):
        raise BuildError("The guest does not say where its memory is.")
    return bytes(memory.read(store)), address


def read_sections(module: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and body of each section but the custom ones."""
    at = 8
    while at < len(module):
        number = module[at]
        size, at = read_unsigned(module, at + 1)
        if number:
            yield number, module[at : at + size]
        at += size


def check_globals(section: bytes) -> None:
    """Refuse a guest whose state is not its memory alone: one mutable global, the stack pointer."""
    expected = b"\x7f\x01\x41" + signed(STACK_SIZE) + b"\x0b"
    mutable = section.count(b"\x7f\x01\x41")
    if mutable != 1 or not section[1:].startswith(expected):
        raise BuildError("The guest has mutable globals beside the stack pointer.")


def exports(section: bytes, kept: set[str]) -> bytes:
    """Return the export section with only the names in `kept`."""
    count, at = read_unsigned(section, 0)
    out: list[bytes] = []
    for _ in range(count):
        start = at
        size, at = read_unsigned(section, at)
        name = section[at : at + size].decode()
        _, at = read_unsigned(section, at + size + 1)
        if name in kept:
            out.append(section[start:at])
    return unsigned(len(out)) + b"".join(out)


def segments(image: bytes) -> bytes:
    """Return a data section that holds what is not zero in the memory."""
    out: list[bytes] = []
    step = 64
    at = 0
    zero = bytes(step)
    while at < len(image):
        if image[at : at + step] == zero:
            at += step
            continue
        start = at
        while at < len(image) and image[at : at + step * 4].strip(b"\0"):
            at += step
        body = image[start:at]
        out.append(b"\0\x41" + signed(start) + b"\x0b" + unsigned(len(body)) + body)
    return unsigned(len(out)) + b"".join(out)


def unsigned(value: int) -> bytes:
    """Return a number as unsigned LEB128."""
    out = bytearray()
    while True:
        value, low = value >> 7, value & 127
        out.append(low | (128 if value else 0))
        if not value:
            return bytes(out)


def signed(value: int) -> bytes:
    """Return a positive number as signed LEB128."""
    out = bytearray()
    while True:
        value, low = value >> 7, value & 127
        more = value or low & 64
        out.append(low | (128 if more else 0))
        if not more:
            return bytes(out)


def read_unsigned(data: bytes, at: int) -> tuple[int, int]:
    """Return the LEB128 number at `at`, and the place after it."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:  # noqa: PLR2004 -- the last byte has no high bit
            return value, at


if __name__ == "__main__":
    try:
        make(pin="--pin" in sys.argv[1:])
    except BuildError as problem:
        sys.exit(f"build_guest.py: {problem}")
