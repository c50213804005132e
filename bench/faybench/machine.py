"""What the figures depend on: the machine, the tools' versions, the source's commit."""
import os
import platform
import subprocess


def first(path, key, separator=":"):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith(key):
                return line.split(separator, 1)[1].strip().strip('"')
    return None


def machine():
    return {"cpu": first("/proc/cpuinfo", "model name"), "processors": os.cpu_count(), "virtual": "hypervisor" in (first("/proc/cpuinfo", "flags") or ""),
            "memory": first("/proc/meminfo", "MemTotal"), "kernel": platform.release(), "system": first("/etc/os-release", "PRETTY_NAME", "=") or platform.system(),
            "load_at_start": round(os.getloadavg()[0], 2)}


def said(*command):
    """The first line that a command prints, or None."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else None


MEASURED = ("aggregator", "dispatcher", "include", "loader", "query", "verifier", "xfi-compiler")


def commit(root):
    """The last commit that changed Fay's own code, with a mark if the code was changed since; None outside a git checkout."""
    last = said("git", "-C", str(root), "log", "-1", "--format=%h", "--", *MEASURED)
    changed = said("git", "-C", str(root), "status", "--porcelain", "--", *MEASURED)
    return last and last + ("-dirty" if changed else "")
