"""What a traced call costs: every mode in each round, interleaved with the untraced loop and with patches written by hand (the bounds)."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from . import mode as modes_of
from .statistic import spread
from .target import SLICES, Target

# bound: what it is
BOUNDS = {
    "bound_inlined": "a count in place",
    "bound_called": "nine registers saved, a C function counts",
    "bound_return": "counts before and after, in place",
    "bound_return_called": "the same by two C functions",
    "bound_return_timed": "two time stamps, a histogram",
}
BOUND_CALLS = 200000
STEPPED_CALLS = 100
# What costs less than this (ns) is attached and measured so many times in a round: a store that the next call's load waits for takes five cycles more in some attachments than in others, on the
# same code at the same address, so that a few say little of what is usual.
CHEAP = 200
CHEAP_TIMES = 4


class Measured:
    """What the rounds gave for one mode."""

    def __init__(self, mode):
        self.mode, self.base, self.added, self.missed, self.instructions = mode, [], [], [], None

    def result(self, bounds):
        mode = self.mode
        result = {"mode": mode.name, "peer": mode.peer.name, "label": mode.label, "question": mode.question, "calls": mode.calls,
                  "added": spread(self.added), "rounds": self.added, "untraced": spread(self.base)["median"],
                  "missed": None if None in self.missed else sum(self.missed), "instructions": self.instructions}
        bound = spread(bounds[mode.bound])["median"] if mode.bound else 0
        if bound > 0:
            result.update(bound=mode.bound, of_bound=spread([traced / bound for traced in self.added]))
        return result


def measure_once(target, measured, bounds, slices, steps):
    """One mode in one round; before it, at the same moment, the untraced loop and the bound."""
    mode = measured.mode
    base = target.answer(mode.question, BOUND_CALLS, slices)
    if mode.bound:
        bounds[mode.bound].append(target.least(mode.bound, BOUND_CALLS, slices) - target.least("work", BOUND_CALLS, slices))
    untraced_steps = target.instructions("work", STEPPED_CALLS) if steps else 0
    cost, missed, instructions = mode.measure(target, slices, steps)
    measured.base.append(base)
    measured.added.append(cost - base)
    measured.missed.append(missed)
    if instructions is not None:
        measured.instructions = round(instructions - untraced_steps)


def measure_bounds(target, bounds, slices):
    base = target.least("work", BOUND_CALLS, slices)
    bounds.setdefault("untraced", []).append(base)
    for bound in BOUNDS:
        bounds.setdefault(bound, []).append(target.least(bound, BOUND_CALLS, slices) - base)


def measure_in_round(target, measured, bounds, slices, steps):
    measure_once(target, measured, bounds, slices, steps)
    if measured.added[-1] < CHEAP:
        for _ in range(CHEAP_TIMES - 1):
            measure_once(target, measured, bounds, slices, False)


def one_round(target, running, bounds, skipped, slices, first):
    measure_bounds(target, bounds, slices)
    for measured in list(running):
        mode = measured.mode
        try:
            measure_in_round(target, measured, bounds, slices, first and "steps" in mode.flags)
        except (RuntimeError, subprocess.TimeoutExpired, OSError, ValueError) as error:
            running.remove(measured)
            skipped.append({"mode": mode.name, "question": mode.question, "reason": "it failed while it was measured: " + str(error).strip().replace("\n", "; ")})


def when(measured):
    return f"{measured['date']}, commit {measured['commit']}, load {measured['machine']['load_at_start']}"


def head_of(earlier, begun, chosen):
    """An earlier result onto which the sections `chosen` are measured. Date, commit and machine are those of the calls: `other_times` says when sections were measured that were not with them."""
    if not earlier.get("calls"):
        return {**earlier, **begun}
    others = [section for section in ("attach", "servers", "kernel") if section in earlier or section in chosen]
    if "calls" in chosen:
        times = {section: earlier.get("other_times", {}).get(section, when(earlier)) for section in others if section not in chosen}
        return {**earlier, **begun, "other_times": times}
    return {**begun, **earlier, "other_times": {**earlier.get("other_times", {}), **{section: when(begun) for section in others if section in chosen}}}


def put_into(earlier, measured):
    """Into an earlier result, what was measured of some modes since: they replace what it says of them, its bounds and all else stay. `measured` is a result, too."""
    names = {mode["mode"] for mode in measured["calls"]["modes"]} | {entry["mode"] for entry in measured["skipped"]}
    since = [dict(mode, since=when(measured)) for mode in measured["calls"]["modes"]]
    earlier["calls"]["modes"] = [mode for mode in earlier["calls"]["modes"] if mode["mode"] not in names] + since
    earlier["skipped"] = [entry for entry in earlier["skipped"] if entry["mode"] not in names] + measured["skipped"]


def bounds_result(target, bounds):
    base = target.instructions("work", STEPPED_CALLS)
    of = {name: {"what": BOUNDS[name], "added": spread(bounds[name]), "instructions": round(target.instructions(name, STEPPED_CALLS) - base)} for name in BOUNDS}
    return {"untraced": spread(bounds["untraced"]), **of}


def environment_of(binaries, peers, work, cpu):
    program = str(binaries / "fay_bench_target")
    return dict(os.environ, PEER_TARGET=program, PEER_CPU=cpu, PEER_MODULE="fay_bench_target", PEER_BIN=str(binaries), PEER_WORK=work, PEER_CONTEXT=str(peers.parent))


def measure(binaries, peers, rounds, cpu="1", slices=SLICES, only_peers=None, only_modes=None,
            builds=None):
    """The section `calls` of a result, and the list of what could not run."""
    with tempfile.TemporaryDirectory() as work:
        target = Target([str(Path(binaries) / "fay_bench_target"), cpu])
        environment = dict(environment_of(Path(binaries), Path(peers), work, cpu), PEER_PID=str(target.process.pid))
        try:
            modes, skipped = modes_of.find_modes(Path(peers), environment, only_peers, only_modes,
                                                 builds)
            running, bounds = [Measured(mode) for mode in modes], {}
            target.least("work", BOUND_CALLS)  # warm
            for number in range(rounds):
                one_round(target, running, bounds, skipped, slices, number == 0)
                print(f"calls: round {number + 1} of {rounds} done, {len(running)} modes", file=sys.stderr)
            section = {"unit": "ns added a call", "rounds": rounds, "slices": slices, "cycles_per_ns": target.cycles_per_ns,
                       "bounds": bounds_result(target, bounds), "modes": [measured.result(bounds) for measured in running]}
        finally:
            target.end()
    return section, skipped
