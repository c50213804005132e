"""What tracing adds inside the kernel: instructions, from the test of the virtual machine (tests/vm/cost.sh), in which one instruction is one tick of the time stamp counter."""
import os
import re
import subprocess
import sys

# What the test calls a way of tracing: (whose, the question, heading)
WAYS = {
    "fay entry count": ("fay", "count"),
    "by pid": ("fay", "group"),
    "return count": ("fay", "return"),
    "return with duration": ("fay", "duration"),
    "kprobe": ("kprobe event", "events"),
    "kretprobe": ("kretprobe event", "events"),
    "function tracer": ("ftrace function", "events"),
    "function graph": ("ftrace function_graph", "entry_return"),
    "tracepoint event": ("tracepoint event", "events"),
}


# Words of tests/vm/peers/peers.sh that tell the question, the first that fits.
QUESTIONS = (("duration", "duration"), ("function_graph", "entry_return"), ("record", "events"), ("ret", "return"), ("leave", "return"), ("", "count"))


def listed(line):
    """[(name, number)] of a line `added...: name number, name number; name number`."""
    return [(name, int(number)) for name, number in re.findall(r"([a-z][a-z ]*?) (\d+)(?=[,;\s]|$)", line)]


def one_boot(text):
    """What tests/vm/cost.sh itself measures: fay natively and through BPF, and the kernel's own tracers."""
    for name, number in listed(re.search(r"^added: (.*)$", text, re.MULTILINE).group(1)):
        tool, question = WAYS.get(name, (name, "count"))
        yield {"mode": name, "tool": tool, "question": question, "added": number}
    through_bpf = re.search(r"^added through BPF: (.*)$", text, re.MULTILINE)
    for name, number in listed(through_bpf.group(1)) if through_bpf else ():
        yield {"mode": name + " through BPF", "tool": "fay, BPF", "question": WAYS[name][1], "added": number}


def peers(text):
    """The lines of tests/vm/peers/peers.sh: `tool, what it does NUMBER`. A tool that did not run printed a number below zero or none."""
    for name, number in re.findall(r"^([A-Za-z_]+(?:,? [A-Za-z_(),-]+)*) (\d+)$", text, re.MULTILINE):
        question = next(question for word, question in QUESTIONS if word in name)
        yield {"mode": name, "tool": name.partition(",")[0], "question": question, "added": int(number)}


def parse(text):
    """The section `kernel` from what the test printed."""
    base = re.search(r"getppid untraced: (\d+)", text)
    if not base or not re.search(r"^added: ", text, re.MULTILINE):
        raise ValueError("no costs in what tests/vm/cost.sh printed")
    modes = [*one_boot(text), *peers(text)]
    return {"unit": "instructions added to a getppid system call", "untraced": int(base.group(1)), "modes": modes, "machine": "QEMU, Debian's cloud kernel, one processor, -icount shift=0"}


def measure(root):
    environment = dict(os.environ, FAY_VM_PEERS="1", BUILD=os.environ.get("BUILD", str(root / "build")))
    done = subprocess.run([str(root / "tests" / "vm" / "cost.sh")], capture_output=True, text=True, timeout=3600, env=environment)
    if done.returncode == 77:
        return {"modes": [], "failed": (done.stdout + done.stderr).strip().splitlines()[-1]}
    if done.returncode:
        return {"modes": [], "failed": (done.stdout + done.stderr).strip()[-300:]}
    print("kernel: done", file=sys.stderr)
    return parse(done.stdout)
