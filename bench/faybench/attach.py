"""How long a tracer takes, from the start of its command until it traces 1, 100 or 10,000 functions of a busy process, and until it has let go; and what memory."""
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import watch
from .statistic import spread

# functions: by a glob on the program's names f10000 to f19999
PATTERNS = {1: "f10000", 100: "f100*", 10000: "f1*"}
PEERS = ("fay", "bpf", "bpftrace")
SETTLE_SECONDS = 0.5


def one(peer, environment, process, program, functions):
    before = watch.memory(process.pid, "VmRSS")
    with watch.Watch(peer, dict(environment, PEER_FUNCTIONS=str(functions)), [process.pid], program, f"many_target!{PATTERNS[functions]}") as traced:
        time.sleep(SETTLE_SECONDS)
        grown = watch.memory(process.pid, "VmRSS") - before
    called, _ = traced.calls()
    if called not in (None, functions):
        raise RuntimeError(f"{peer.name}: {called} functions had calls, {functions} were asked for")
    return {"ready_ms": traced.ready_ms, "end_ms": traced.end_ms, "tracer_kb": traced.peak_kb, "target_kb": max(0, grown)}


def measure(binaries, peers, rounds):
    """[{peer, functions, ready_ms, end_ms, tracer_kb, target_kb}] with medians and quartiles, or {peer, functions, failed}."""
    program, taken, failed = str(Path(binaries) / "many_target"), {}, {}
    with tempfile.TemporaryDirectory() as work:
        environment = {**os.environ, "PEER_CONTEXT": str(Path(peers).parent), "PEER_BIN": str(binaries), "PEER_WORK": work}
        process = subprocess.Popen([program, "busy"], stdout=subprocess.DEVNULL)
        try:
            for number in range(rounds):
                for name in PEERS:
                    for functions in PATTERNS:
                        key = (name, functions)
                        if key in failed:
                            continue
                        try:
                            taken.setdefault(key, []).append(one(Path(peers) / name, environment, process, program, functions))
                        except (RuntimeError, OSError, subprocess.SubprocessError, ValueError) as error:
                            failed[key] = str(error)
                print(f"attach: round {number + 1} of {rounds} done", file=sys.stderr)
        finally:
            process.kill()
            process.wait()
    done = [{"peer": name, "functions": n, **{what: spread([m[what] for m in all_of]) for what in all_of[0]}} for (name, n), all_of in taken.items() if (name, n) not in failed]
    return done + [{"peer": name, "functions": n, "failed": why} for (name, n), why in failed.items()]
