"""A peer's longer trace (its word `watch`): calls of some functions counted by function, in one or more processes, from the start of its command to its end."""
import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

READY_SECONDS = 90
END_SECONDS = 90


def memory(pid, what):
    """Kilobytes of a process by a line of /proc/PID/status: VmRSS, VmHWM."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as lines:
            return next((int(line.split()[1]) for line in lines if line.startswith(what + ":")), 0)
    except OSError:
        return 0


def able(peer, environment):
    """Why a peer cannot watch here, or None."""
    done = subprocess.run([str(peer), "check", "count"], env=dict(environment, PEER_WORK=tempfile.gettempdir()), capture_output=True, text=True, timeout=60)
    return None if done.returncode == 0 else (done.stdout + done.stderr).strip()


class Watch:
    """Use as a context: it traces inside, and afterwards has ready_ms, end_ms and peak_kb of the tracer."""

    def __init__(self, peer, environment, pids, program, function):
        self.peer, self.work = peer, tempfile.mkdtemp(prefix=f"{peer.name}.", dir=environment["PEER_WORK"])
        self.environment = dict(environment, PEER_WORK=self.work, PEER_PIDS=" ".join(map(str, pids)), PEER_TARGET=program, PEER_FUNCTION=function)
        self.ready_ms = self.end_ms = self.peak_kb = None

    def said(self):
        return Path(self.work, "out").read_text(encoding="utf-8", errors="replace")

    def __enter__(self):
        told = subprocess.run([str(self.peer), "watch"], env=self.environment, capture_output=True, text=True, check=False)
        if told.returncode:
            raise RuntimeError((told.stdout + told.stderr).strip())
        first, *command = told.stdout.splitlines()
        pattern = re.compile(first, re.MULTILINE)
        with open(os.path.join(self.work, "out"), "wb") as out:
            begun = time.monotonic()
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        while not pattern.search(self.said()):
            if self.process.poll() is not None or time.monotonic() - begun > READY_SECONDS:
                self.process.kill()
                self.process.wait()
                raise RuntimeError(f"{self.peer.name}: " + (self.said().strip()[-300:] or f"not ready after {READY_SECONDS} s"))
            time.sleep(0.002)
        self.ready_ms = (time.monotonic() - begun) * 1e3
        return self

    def __exit__(self, *_):
        self.peak_kb = memory(self.process.pid, "VmHWM")
        begun = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.end_ms = (time.monotonic() - begun) * 1e3

    def calls(self):
        """(functions that were called, their calls together), as the tracer says; None where it does not."""
        said = subprocess.run([str(self.peer), "watched"], env=self.environment, capture_output=True, text=True, check=True).stdout.split()
        return tuple(int(n) if n.isdigit() else None for n in said)
