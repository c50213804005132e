# SPDX-License-Identifier: MIT
"""Errors, and texts of the libraries."""
from __future__ import annotations

from typing import Any, Optional

from ._native import ffi, lib


class Error(Exception):
    """Something failed; the text says what."""


class Usage(Error):
    """A query, a name or an option means nothing."""


class Refused(Error):
    """It cannot run here, or the verifier refuses it."""


class Limit(Error):
    """A named limit was hit: time, memory, size."""


class Internal(Error):
    """What should not happen: a system call or a library failed."""


def text(pointer: Any) -> str:
    """Bytes that are no UTF-8 are kept, as os.fsdecode() does."""
    return ffi.string(pointer).decode('utf-8', 'surrogateescape')


def text_or_none(pointer: Any) -> Optional[str]:
    return text(pointer) if pointer else None


def check(code: int, error: Any) -> None:
    """Raises what the error says, if there is one."""
    kinds = {lib.FAY_E_USAGE: Usage, lib.FAY_E_REFUSED: Refused, lib.FAY_E_LIMIT: Limit}
    if code:
        raise kinds.get(code, Internal)(text(error.message))
