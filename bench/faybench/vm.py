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
    "kretprobe": ("kretprobe event", "return"),
    "function tracer": ("ftrace function", "events"),
    "function graph": ("ftrace function_graph", "entry_return"),
    "tracepoint event": ("tracepoint event", "events"),
}


def parse(text):
    """The section `kernel` from what the test printed."""
    base = re.search(r"getppid untraced: (\d+)", text)
    added = re.search(r"^added: (.*)$", text, re.MULTILINE)
    if not base or not added:
        raise ValueError("no costs in what tests/vm/cost.sh printed")
    modes = []
    for name, number in re.findall(r"([a-z][a-z ]*?) (\d+)(?=[,;\s]|$)", added.group(1)):
        tool, question = WAYS.get(name, (name, "count"))
        modes.append({"mode": name, "tool": tool, "question": question, "added": int(number)})
    return {"unit": "instructions added to a getppid system call", "untraced": int(base.group(1)), "modes": modes, "machine": "QEMU, Debian's cloud kernel, one processor, -icount shift=0"}


def measure(root):
    done = subprocess.run([str(root / "tests" / "vm" / "cost.sh")], capture_output=True, text=True, timeout=900, env=dict(os.environ))
    if done.returncode == 77:
        return {"modes": [], "failed": (done.stdout + done.stderr).strip().splitlines()[-1]}
    if done.returncode:
        return {"modes": [], "failed": (done.stdout + done.stderr).strip()[-300:]}
    print("kernel: done", file=sys.stderr)
    return parse(done.stdout)
