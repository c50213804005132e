"""A peer is one executable file in bench/peers; a mode is one way in which it answers one question. docs/benchmarking.md has the contract."""
import copy
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from . import questions
from .target import Target

STEPS = 100  # single-stepped calls
FLAGS = {"own", "steps", "threads", "nested"}


class Mode:
    """One line that a peer prints for `modes`: LABEL QUESTION CALLS BOUND [FLAG...]."""

    def __init__(self, peer, line, environment):
        self.peer, fields = peer, line.split()
        self.label, self.question, self.calls = fields[0], fields[1], int(fields[2])
        self.bound = fields[3] if fields[3] != "-" else None
        self.flags = set(fields[4:])
        if self.question not in questions.QUESTIONS or not self.flags <= FLAGS:
            raise ValueError(f"{peer.name}: not understood: {line}")
        self.name = f"{peer.name}/{self.label}"
        self.environment = dict(environment, PEER_WORK=tempfile.mkdtemp(prefix=f"{peer.name}.", dir=environment["PEER_WORK"]))
        self.trace(questions.QUESTIONS[self.question][3])

    def trace(self, function):
        self.environment["PEER_FUNCTION"] = f"{self.environment['PEER_MODULE']}!{function}"

    def asked(self, question):
        """The same program for another question: more threads, or deeper calls."""
        other = copy.copy(self)
        other.question, other.bound, other.flags = question, None, self.flags & {"own"}
        other.name = f"{self.name}_{question.removeprefix('entry_return_')}"
        other.environment = dict(self.environment, PEER_WORK=tempfile.mkdtemp(prefix=f"{self.peer.name}.", dir=os.path.dirname(self.environment["PEER_WORK"])))
        other.trace(questions.QUESTIONS[question][3])
        return other

    def derived(self):
        """The modes that the flags `threads` and `nested` ask for."""
        more = [f"threads_{n}" for n in (1, 2, 4, 8)] if "threads" in self.flags else []
        if "nested" in self.flags:
            more.append("nested_20" if self.question == "count" else "entry_return_nested_20")
        return [self.asked(question) for question in more]

    def do(self, what, timeout=180):
        return subprocess.run([str(self.peer), what, self.label], env=self.environment, capture_output=True, text=True, timeout=timeout)

    def unavailable(self):
        done = self.do("check")
        return None if done.returncode == 0 else (done.stdout + done.stderr).strip().replace("\n", "; ") or "its check failed"

    def start(self):
        begun = self.do("start")
        if begun.returncode:
            self.do("stop")
            raise RuntimeError(begun.stderr.strip()[-300:] or "start failed")

    def target(self, shared):
        """The program that this mode traces: the one that all share, or one that was built or is started for it."""
        if "own" not in self.flags:
            return shared
        command = self.do("command")
        if command.returncode:
            raise RuntimeError(command.stderr.strip()[-300:] or "no command")
        target = Target(command.stdout.split(), self.environment)
        self.environment["PEER_PID"] = str(target.process.pid)
        target.least("bound_inlined", 1, 1)  # it is up
        return target

    def measure(self, shared, slices, steps=False):
        """Traced: nanoseconds a call, how many calls were missed (None: it does not say), instructions a call (None: not asked for)."""
        target, instructions = self.target(shared), None
        try:
            self.start()
            try:
                cost = target.answer(self.question, self.calls, slices)
                instructions = target.instructions("work", STEPS) if steps else None
            finally:
                if "own" not in self.flags:
                    self.do("stop")
        finally:
            if target is not shared:
                target.end()
                self.do("stop")
        made = questions.calls_made(self.question, self.calls, slices) + (STEPS if steps else 0)
        answer = self.do("answer").stdout.strip()
        return cost, made - int(answer) if answer.isdigit() else None, instructions


def peers_of(peers, environment, builds):
    """(file, environment) of each peer. `builds`: other builds of Fay, {name: absolute folder}."""
    found = [(peer, environment) for peer in sorted(peers.iterdir()) if os.access(peer, os.X_OK)]
    for name, binaries in builds.items():
        link = Path(environment["PEER_WORK"]) / name
        link.symlink_to(peers / "fay")
        found.append((link, dict(environment, PEER_BIN=binaries)))
    return found


def find_modes(peers, environment, only_peers=None, only_modes=None, builds=None):
    """(the modes that can run, [{mode, question, reason}] of those that cannot)"""
    modes, skipped = [], []
    for peer, environment in peers_of(peers, environment, builds or {}):
        if only_peers and peer.name not in only_peers:
            continue
        lines = subprocess.run([str(peer), "modes"], env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
        for mode in (Mode(peer, line, environment) for line in lines if line.strip()):
            family = [m for m in [mode, *mode.derived()] if not only_modes or m.name in only_modes]
            reason = mode.unavailable() if family else None
            if reason:
                skipped += [{"mode": m.name, "question": m.question, "reason": reason} for m in family]
            else:
                modes += family
    if not modes and not skipped:
        sys.exit(f"no peer or mode is called {' or '.join((only_modes or only_peers or []))}; "
                 "fay bench --list names them")
    return modes, skipped
