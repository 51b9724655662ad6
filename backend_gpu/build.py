"""Kernels to cubins through NVRTC, with or without a driver or CuPy; results are kept in memory and on disk."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

from backend_gpu.bind import Bound
from backend_gpu.detect import find_nvrtc
from cusim.errors import CusimError

#: Where cubins are kept, if set; else under the user's cache folder.
CACHE_VARIABLE = "CUSIM_CACHE_DIR"
_SCHEMA = "cusim.cubin/1"
_OPTIONS = ("-std=c++17", "--ptxas-options=-v")


class BuildError(CusimError):
    """A kernel that did not compile: the message holds the compiler's log."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What the assembler says of one kernel: registers a thread, spilled and stack bytes, static shared memory."""

    registers: int
    spill_bytes: int
    stack_bytes: int
    shared_bytes: int


@dataclass(frozen=True, slots=True)
class Built:
    """A module for *arch*: its cubin, the resources of each kernel by name, and the compiler's *log*."""

    arch: str
    cubin: bytes
    resources: Mapping[str, Resources]
    log: str
    compiler: str


class Compiler(Protocol):
    """NVRTC by either route."""

    @property
    def version(self) -> str:
        """Such as ``13.0``."""

    def compile(self, source: str, headers: Mapping[str, str], options: Sequence[str]) -> tuple[bytes | None, str]:
        """The cubin (None: refused) and the log."""


def build(bound: Bound) -> Built:
    """The module of a bound kernel, for its architecture."""
    return compile_source(bound.source, bound.arch)


def build_launchers(arch: str) -> Built:
    """The module of the small kernels: ``cusim_next_epoch``, ``cusim_wait_started``, ``cusim_busy``."""
    return compile_source(kernel_sources()["launch.cu"], arch)


def compile_source(source: str, arch: str) -> Built:
    """Compiles CUDA C++ that may include the files of ``kernels/``; BuildError with the log where it does not compile.

    BuildError too where no NVRTC is found.
    """
    return _compiled(source, arch)


@lru_cache(maxsize=256)
def _compiled(source: str, arch: str) -> Built:
    compiler = find_compiler()
    options = (f"-arch={arch}", *_OPTIONS)
    digest = _digest(source, options, compiler.version)
    kept = _read_kept(digest)
    if kept is not None:
        return kept
    cubin, log = compiler.compile(source, kernel_sources(), options)
    if cubin is None:
        raise BuildError(f"the kernel does not compile for {arch} (NVRTC {compiler.version}):\n{log}")
    built = Built(arch, cubin, parse_resources(log), log, f"NVRTC {compiler.version}")
    _keep(digest, built)
    return built


@lru_cache(maxsize=1)
def kernel_sources() -> Mapping[str, str]:
    """Every file of ``kernels/`` by name."""
    folder = resources.files("backend_gpu") / "kernels"
    files = [entry for entry in folder.iterdir() if entry.name.endswith((".cu", ".cuh"))]
    return {entry.name: entry.read_text(encoding="utf-8") for entry in sorted(files, key=lambda entry: entry.name)}


def parse_resources(log: str) -> dict[str, Resources]:
    """The assembler's report, kernel by kernel."""
    found = {}
    parts = re.split(r"Compiling entry function '([^']+)'", log)
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        shared = _number(r"(\d+) bytes smem", text)
        spilled = _number(r"(\d+) bytes spill stores", text) + _number(r"(\d+) bytes spill loads", text)
        found[name] = Resources(
            _number(r"Used (\d+) registers", text), spilled, _number(r"(\d+) bytes stack frame", text), shared
        )
    return found


def find_compiler() -> Compiler:
    """CuPy's binding where CuPy is installed, else the NVRTC library itself."""
    try:
        return _CupyCompiler()
    except ImportError:
        pass
    part = find_nvrtc(None)
    if part.where is None:
        raise BuildError(f"NVRTC: {part.problem}; {part.fix}, or the extra nvrtc to compile only")
    return _LibraryCompiler(part.where)


class _CupyCompiler:
    def __init__(self) -> None:
        from cupy_backends.cuda.libs import nvrtc

        self._nvrtc: Any = nvrtc
        self.version = ".".join(map(str, nvrtc.getVersion()))

    def compile(self, source: str, headers: Mapping[str, str], options: Sequence[str]) -> tuple[bytes | None, str]:
        texts, names = (tuple(text.encode() for text in given) for given in (headers.values(), headers))
        program = self._nvrtc.createProgram(source, "cusim.cu", texts, names)
        try:
            self._nvrtc.compileProgram(program, tuple(options))
            return self._nvrtc.getCUBIN(program), self._nvrtc.getProgramLog(program)
        except self._nvrtc.NVRTCError as error:
            return None, self._nvrtc.getProgramLog(program) or str(error)
        finally:
            self._nvrtc.destroyProgram(program)


class _LibraryCompiler:
    def __init__(self, path: str) -> None:
        for beside in sorted(Path(path).parent.glob("libnvrtc-builtins.so.*")):
            ctypes.CDLL(str(beside), mode=ctypes.RTLD_GLOBAL)  # older ones do not look beside themselves
        self._library = ctypes.CDLL(path)
        major, minor = ctypes.c_int(0), ctypes.c_int(0)
        self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"

    def compile(self, source: str, headers: Mapping[str, str], options: Sequence[str]) -> tuple[bytes | None, str]:
        program = ctypes.c_void_p()
        texts = (ctypes.c_char_p * len(headers))(*(text.encode() for text in headers.values()))
        names = (ctypes.c_char_p * len(headers))(*(name.encode() for name in headers))
        status = self._library.nvrtcCreateProgram(
            ctypes.byref(program), source.encode(), b"cusim.cu", len(headers), texts, names
        )
        if status != 0:
            return None, f"nvrtcCreateProgram: error {status}"
        try:
            given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            status = self._library.nvrtcCompileProgram(program, len(options), given)
            log = self._text(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
            return (self._text(program, "CUBIN") if status == 0 else None), log
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _text(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t(0)
        getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        held = ctypes.create_string_buffer(size.value)
        getattr(self._library, f"nvrtcGet{what}")(program, held)
        return held.raw


def _number(pattern: str, text: str) -> int:
    match = re.search(pattern, text)
    return int(match.group(1)) if match else 0


def _digest(source: str, options: Sequence[str], version: str) -> str:
    """Everything a cubin depends on."""
    held = json.dumps([_SCHEMA, version, list(options), source, dict(kernel_sources())])
    return hashlib.sha256(held.encode()).hexdigest()


def _cache_folder() -> Path:
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "cusim"


def _read_kept(digest: str) -> Built | None:
    """What was kept under a digest; None for nothing, and for what cannot be read."""
    try:
        folder = _cache_folder()
        held = json.loads((folder / f"{digest}.json").read_text(encoding="utf-8"))
        cubin = (folder / f"{digest}.cubin").read_bytes()
        if hashlib.sha256(cubin).hexdigest() != held["cubin"]:
            return None
        found = {name: Resources(**values) for name, values in held["resources"].items()}
        return Built(held["arch"], cubin, found, held["log"], held["compiler"])
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):
        return None


def _keep(digest: str, built: Built) -> None:
    """Keeps a module; a folder that cannot be written costs a compilation next time and nothing else."""
    held = {
        "cubin": hashlib.sha256(built.cubin).hexdigest(),
        "arch": built.arch,
        "log": built.log,
        "compiler": built.compiler,
        "resources": {name: asdict(values) for name, values in built.resources.items()},
    }
    try:
        folder = _cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / f"{digest}.cubin", built.cubin)
        _write(folder / f"{digest}.json", json.dumps(held).encode())
    except (OSError, RuntimeError):
        return


def _write(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.replace(name, path)
