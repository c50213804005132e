# SPDX-License-Identifier: MIT
"""Verdicts on probe images."""
from __future__ import annotations

import os
from dataclasses import dataclass
from typing import List, Optional, Union

from ._native import ffi, lib
from ._types import Usage, text, text_or_none


@dataclass(frozen=True)
class Probe:
    """What is proved of one probe: at most so many instructions and bytes of stack."""
    pattern: str
    kind: str
    instructions: int
    stack: int


@dataclass(frozen=True)
class Rejection:
    """Why an image is refused. counterexample: inputs that break the rule, if some were found."""
    rule: str
    function: Optional[str]
    what: str
    missing: Optional[str]
    counterexample: Optional[str]
    hint: Optional[str]


@dataclass(frozen=True)
class Verdict:
    outcome: str
    certified: bool
    probes: List[Probe]
    rejection: Optional[Rejection]

    @property
    def accepted(self) -> bool:
        return self.rejection is None


def _policy(path: Union[str, 'os.PathLike[str]', None]):
    policy = ffi.new('struct fay_policy *')
    message = ffi.new('char[1024]')
    lib.fay_policy_default(policy)
    if path is not None and lib.fay_policy_read(os.fsencode(path), policy, message, 1024):
        raise Usage(text(message))
    return policy


def image_bytes(image: Union[bytes, str, 'os.PathLike[str]']) -> bytes:
    """An image, given as bytes or as a file's name."""
    if isinstance(image, bytes):
        return image
    with open(image, 'rb') as file:
        return file.read(lib.FAY_IMAGE_MAX_FILE + 1)


def verify(image: Union[bytes, str, 'os.PathLike[str]'],
           policy: Union[str, 'os.PathLike[str]', None] = None) -> Verdict:
    """The verdict on an image, given as bytes or as a file's name. policy: a file
    (docs/policy.md)."""
    data = image_bytes(image)
    verdict = ffi.new('struct fay_verdict *')
    lib.fay_verify(ffi.from_buffer(data), len(data), _policy(policy), verdict)
    try:
        probes = [Probe(text(p.pattern), text(lib.fay_probe_kind_name(p.kind)),
                        p.worst_instructions, p.worst_stack)
                  for p in (verdict.probes[i] for i in range(verdict.probe_count))]
        outcome = text(lib.fay_outcome_name(verdict.outcome))
        if outcome == 'accepted':
            return Verdict(outcome, verdict.certified, probes, None)
        r = verdict.rejection
        return Verdict(outcome, False, [], Rejection(
            text(lib.fay_rule_id(r.rule)), text_or_none(r.function), text(r.what),
            text_or_none(r.missing), text_or_none(r.counterexample), text_or_none(r.hint)))
    finally:
        lib.fay_verdict_deinit(verdict)
