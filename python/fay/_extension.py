# SPDX-License-Identifier: MIT
"""Extensions: native code of others, checked by its certificate and called in this process."""
from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple, Union

from ._native import ffi, lib
from ._types import Usage, check, text
from ._verify import image_bytes

Buffer = Any  # bytes, bytearray, memoryview, array, numpy's: of contiguous bytes


@dataclass(frozen=True)
class Limits:
    """What a call takes at most: instructions, those of helpers included, and bytes of stack."""
    instructions: int
    stack: int


class Instance:
    """The local state of one instance, all zero at first. It is in one call at a time."""

    def __init__(self, extension: 'Extension') -> None:
        memory = lib.fay_loaded_instance(extension._loaded)
        if memory == ffi.NULL:
            raise MemoryError
        self._memory = ffi.gc(memory, lib.fay_instance_release)
        self._size = lib.fay_loaded_local_size(extension._loaded)
        self._busy = threading.Lock()

    @property
    def bytes(self) -> bytes:
        """A copy of the state."""
        return bytes(ffi.buffer(self._memory, self._size))


class Host:
    """A host of extensions: what its interface, a text or a file's name that ends in .host, lets
    them see and call (fay-host(5))."""

    def __init__(self, interface: Union[str, 'os.PathLike[str]']) -> None:
        if isinstance(interface, os.PathLike) or interface.endswith('.host'):
            with open(interface, encoding='utf-8') as file:
                interface = file.read()
        data, host, error = interface.encode(), ffi.new('struct fay_host **'), _error()
        check(lib.fay_host_open(data, len(data), host, error), error)
        self._host = ffi.gc(host[0], lib.fay_host_close)
        self._kept: List[Any] = []  # what was bound
        self._parameters: List[Any] = []
        parameter = ffi.new('struct fay_host_parameter *')
        while not lib.fay_host_parameter(self._host, len(self._parameters), parameter):
            self._parameters.append(parameter)
            parameter = ffi.new('struct fay_host_parameter *')
        lo, hi = ffi.new('int64_t *'), ffi.new('uint64_t *')
        none = lib.fay_host_result(self._host, lo, hi)
        self._result: Optional[Tuple[int, int]] = None if none else _range(lo[0], hi[0])

    def bind(self, helper: str, function: Any) -> None:
        """The C function that extensions call as `helper`: a function pointer of cffi or ctypes,
        or an address. It has to keep what the interface says of it."""
        address = function if isinstance(function, int) else _address(function)
        error = _error()
        check(lib.fay_host_bind(self._host, helper.encode(),
                                ffi.cast('fay_host_function', address), error), error)
        self._kept.append(function)

    def load(self, image: Union[bytes, str, 'os.PathLike[str]']) -> 'Extension':
        """An image with its certificate, as bytes or a file's name. Refused: the text begins with
        the rule."""
        return Extension(self, image_bytes(image))


class Extension:
    """Native code that was accepted. Its entries are called by their names."""

    def __init__(self, host: Host, image: bytes) -> None:
        loaded, error = ffi.new('struct fay_loaded **'), _error()
        check(lib.fay_host_load(host._host, image, len(image), loaded, error), error)
        self._loaded = ffi.gc(loaded[0], lib.fay_host_unload)
        self._host = host

    def limits(self, entry: str) -> Limits:
        instructions, stack = ffi.new('uint64_t *'), ffi.new('uint64_t *')
        if lib.fay_loaded_limits(self._loaded, entry.encode(), instructions, stack):
            raise Usage(f"there is no entry '{entry}'")
        return Limits(instructions[0], stack[0])

    def instance(self) -> Instance:
        return Instance(self)

    def call(self, entry: str, *arguments: Union[Buffer, int, Instance, None]) -> Optional[int]:
        """Calls an entry with what the interface's parameters take, in their order: bytes or
        another buffer for a region, which says its size, too; a number; for local state an
        Instance of this extension, or None for a new one. The result is that of the entry."""
        function = lib.fay_loaded_entry(self._loaded, entry.encode())
        if function == ffi.NULL:
            raise Usage(f"there is no entry '{entry}'")
        with _Call(self, arguments) as words:
            word = lib.fay_python_call(function, words)
        if self._host._result is None:
            return None
        return word - 2**64 if self._host._result[0] < 0 and word >= 2**63 else word


class _Call:
    """The words of a call, and the memory that they lead to."""

    def __init__(self, extension: Extension, arguments: Tuple[Any, ...]) -> None:
        self._extension = extension
        self._kept: List[Any] = []
        self._locks: List[Any] = []
        self._regions: Dict[str, Tuple[int, int, bool]] = {}  # start, size, written
        self._words = ffi.new('uint64_t[6]')
        self._fill(list(arguments))

    def _fill(self, arguments: List[Any]) -> None:
        parameters = self._extension._host._parameters
        taken = [p for p in parameters if p.kind != lib.FAY_HOST_SIZE]
        first: Dict[str, Any] = {}  # two parameters may be the start of one region
        names = [text(p.name) for p in taken]
        if len(arguments) != len(taken):
            raise Usage(f'{len(taken)} arguments are wanted: {", ".join(names)}')
        for p, name in zip(taken, names):
            argument = arguments.pop(0)
            index = parameters.index(p)
            if p.kind == lib.FAY_HOST_NUMBER:
                self._words[index] = _number(name, argument, _range(p.lo, p.hi))
            elif first.setdefault(text(p.region), argument) is not argument:
                raise Usage(f'{name}: the region is another argument, too')
            elif text(p.region) not in self._regions:
                self._region(name, p, argument)
            if p.kind != lib.FAY_HOST_NUMBER:
                self._words[index] = self._regions[text(p.region)][0]
        for index, p in enumerate(parameters):
            if p.kind == lib.FAY_HOST_SIZE:
                size = self._regions.get(text(p.region), (0, 0, False))[1]
                self._words[index] = _number(text(p.name), size, _range(p.lo, p.hi))

    def _region(self, name: str, p: Any, argument: Any) -> None:
        if not p.bytes:
            start, size = self._local(name, argument), 0
        else:
            start, size = self._memory(name, p, argument)
        for other, (begin, length, written) in self._regions.items():
            if (written or p.written) and start < begin + length and begin < start + size:
                raise Usage(f"{name}: overlaps the region '{other}'")
        self._regions[text(p.region)] = start, size, p.written

    def _local(self, name: str, argument: Any) -> int:
        extension = self._extension
        instance = extension.instance() if argument is None else argument
        if not isinstance(instance, Instance) or \
           instance._size != lib.fay_loaded_local_size(extension._loaded):
            raise Usage(f'{name}: an instance of this extension is wanted, or None')
        self._kept.append(instance)
        self._locks.append(instance._busy)
        return int(ffi.cast('uintptr_t', instance._memory))

    def _memory(self, name: str, p: Any, argument: Any) -> Tuple[int, int]:
        """Where the buffer is. What must not change is copied unless it is bytes, and what lies at
        no such multiple, too."""
        try:
            view = memoryview(argument).cast('B')
        except TypeError:
            raise Usage(f'{name}: a buffer of contiguous bytes is wanted') from None
        if view.nbytes > p.bytes or (not p.passed and view.nbytes < p.bytes):
            raise Usage(f'{name}: {p.bytes} bytes {"at most " if p.passed else ""}are wanted, not '
                        f'{view.nbytes}')
        if p.written and view.readonly:
            raise Usage(f'{name}: it is written, and this buffer cannot be')
        memory = ffi.from_buffer('uint8_t[]', view, require_writable=p.written)
        start = int(ffi.cast('uintptr_t', memory))
        aligned = start % p.alignment == 0
        if p.written and not aligned:
            raise Usage(f'{name}: it has to begin at a multiple of {p.alignment}')
        if not aligned or (p.constant and not isinstance(argument, bytes)):
            memory = ffi.new('uint8_t[]', view.nbytes + p.alignment)
            start = int(ffi.cast('uintptr_t', memory))
            start += -start % p.alignment
            ffi.memmove(ffi.cast('void *', start), view, view.nbytes)
        self._kept += [view, memory]
        return start, view.nbytes

    def __enter__(self) -> Any:
        for i, lock in enumerate(self._locks):
            if not lock.acquire(blocking=False):
                self._locks = self._locks[:i]
                self.__exit__()
                raise Usage('the instance is in a call')
        return self._words

    def __exit__(self, *_: Any) -> None:
        for lock in self._locks:
            lock.release()


def _error() -> Any:
    return ffi.new('struct fay_error *')


def _range(lo: int, hi: int) -> Tuple[int, int]:
    return (lo, hi - 2**64 if hi >= 2**63 else hi) if lo < 0 else (lo, hi)


def _number(name: str, n: Any, limits: Tuple[int, int]) -> int:
    if not isinstance(n, int) or not limits[0] <= n <= limits[1]:
        raise Usage(f'{name}: a number from {limits[0]} to {limits[1]} is wanted')
    return n % 2**64


def _address(function: Any) -> int:
    if isinstance(function, ffi.CData):
        return int(ffi.cast('uintptr_t', function))
    import ctypes
    return ctypes.cast(function, ctypes.c_void_p).value or 0
