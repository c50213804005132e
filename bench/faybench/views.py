"""A result as a person reads it: rows by question, names, words for numbers. The Markdown report, the page and the tables in the documents are made from these."""
from . import peers, questions
from .calls import BOUNDS

# How a tool gets at a call; it decides the order of magnitude.
KINDS = {
    "fay": "Fay: code in the process",
    "in_process": "code in the process",
    "kernel": "a trap into the kernel",
    "stops": "the program stops",
    "bound": "patch written by hand",
}


def nanoseconds(value):
    """0.81 ns, 724 ns, 1.37 µs, 152 µs"""
    if abs(value) < 10:
        return f"{value:.2f} ns"
    if abs(value) < 1000:
        return f"{value:.0f} ns"
    return f"{value / 1000:.1f} µs" if value < 100000 else f"{value / 1000:.0f} µs"


def lost_share(section, mode):
    """Which part of the calls the tool did not count; None where it does not say."""
    if mode["missed"] is None:
        return None
    return mode["missed"] / (questions.calls_made(mode["question"], mode["calls"], section["slices"]) * len(mode["rounds"]))


def percent(share):
    """3%, and 0.02% where that would be 0%"""
    return f"{share:.0%}" if share >= 0.01 else f"{share:.2%}"


def miscounted(share):
    """What is to be said of the calls that a tool lost, or counted and were not there; empty if it counted right, or does not say."""
    if not share:
        return ""
    return f"lost {percent(share)} of the calls" if share > 0 else f"counted {percent(-share)} too many"


def row_of(section, mode):
    return {"question": mode["question"], "name": peers.name(mode["peer"], mode["label"]), "mode": mode["mode"], "kind": peers.kind(mode["peer"]), "added": mode["added"], "home": peers.home(mode["peer"], mode["label"]),
            "cycles": mode["added"]["median"] * section["cycles_per_ns"], "instructions": mode["instructions"], "lost": lost_share(section, mode),
            "bound": mode.get("bound"), "of_bound": mode.get("of_bound")}


def bound_row(section, name):
    bound = section["bounds"][name]
    return {"question": None, "name": "by hand: " + BOUNDS[name], "mode": name, "kind": "bound", "added": bound["added"], "cycles": bound["added"]["median"] * section["cycles_per_ns"],
            "instructions": bound["instructions"], "lost": None, "bound": None, "of_bound": None}


def by_question(section):
    """[(question, heading, what is asked, rows from cheap to dear)]; each with the bound of the cheapest mode that has one."""
    answered = []
    for question, (heading, asked, _, _) in questions.QUESTIONS.items():
        rows = sorted((row_of(section, m) for m in section["modes"] if m["question"] == question), key=lambda row: row["added"]["median"])
        bound = next((row["bound"] for row in rows if row["bound"]), None)
        if rows:
            answered.append((question, heading, asked, ([bound_row(section, bound)] if bound else []) + rows))
    return answered


def best(rows, kind):
    """The cheapest tool of a kind that lost nothing, as far as it says; None if there is none."""
    return next((row for row in rows if row["kind"] == kind and not row["lost"]), None)


def kernel_name(mode):
    """Of a mode in the kernel: Fay's by what carries the probe, since the heading says the question; others by all that they say of themselves."""
    if mode["tool"].startswith("fay"):
        return "Fay" if mode["tool"] == "fay" else "Fay, through BPF"
    return mode["mode"] if mode["mode"].startswith(mode["tool"]) else mode["tool"]


KERNEL_HOMES = {
    "SystemTap": "https://sourceware.org/systemtap/",
    "bpftrace": "https://bpftrace.org/",
    "ftrace function": "https://docs.kernel.org/trace/ftrace.html",
    "function_graph": "https://docs.kernel.org/trace/ftrace.html",
    "kprobe event": "https://docs.kernel.org/trace/kprobetrace.html",
    "kretprobe event": "https://docs.kernel.org/trace/kprobetrace.html",
    "libbpf": "https://docs.kernel.org/bpf/libbpf/",
    "perf record": "https://perf.wiki.kernel.org/",
    "perf stat": "https://perf.wiki.kernel.org/",
    "tracepoint event": "https://docs.kernel.org/trace/events.html",
}


def kernel_by_question(section):
    """[(heading, what is asked, modes from cheap to dear)]"""
    answered = []
    for question, asked in questions.ASKED_IN_KERNEL.items():
        modes = sorted((mode for mode in section["modes"] if mode["question"] == question), key=lambda mode: mode["added"])
        if modes:
            answered.append((questions.QUESTIONS[question][0], asked, modes))
    return answered


def find(section, mode):
    return next((m for m in section["modes"] if m["mode"] == mode), None)


def machine_line(result):
    machine = result["machine"]
    return (f"{machine['cpu']}, {machine['processors']} processors{', virtual machine' if machine['virtual'] else ''}, Linux {machine['kernel']}, {machine['system']}; "
            f"{result['date']}, commit {result['commit']}, load {machine['load_at_start']} at the start")


def since(result):
    """What was measured at other times than the calls, in sentences; empty if nothing was."""
    later = {}
    for mode in result["calls"]["modes"]:
        if "since" in mode:
            later.setdefault(mode["since"], []).append(mode["mode"])
    calls = [f"Measured later ({when}), beside the untraced call of that moment: {', '.join(names)}." for when, names in later.items()]
    return " ".join(calls + [f"The section {section} was measured at another time ({when})." for section, when in result.get("other_times", {}).items()])


def modes_run(result):
    section = result.get("calls", {"modes": [], "bounds": {}})
    return len(section["modes"]) + len([b for b in section["bounds"] if b != "untraced"])


def published(result, figures, overhead):
    """[(what, [(whose, figure, note)])]: published figures, and this result's beside them. `figures` is bench/published.json, `overhead` what text.overheads gives."""
    rows = []
    for entry in figures["figures"]:
        ours = measured_beside(result, entry.get("ours", {}), overhead)
        rows.append((entry["what"], entry["unit"], ours, [(p["whose"], p["figure"], figures["sources"][p["source"]]) for p in entry["published"]]))
    return rows


def measured_beside(result, ours, overhead):
    """What this project measured for a published figure, as text; empty if nothing was. `elsewhere` is text as it stands."""
    calls, kernel = result.get("calls"), result.get("kernel")
    parts = []
    for label, mode in ours.get("cycles_of", {}).items():
        found = find(calls, mode) if calls else None
        if found:
            parts.append(f"{label}{found['added']['median'] * calls['cycles_per_ns']:.1f}")
    for label, mode in ours.get("nanoseconds_of", {}).items():
        found = find(calls, mode) if calls else None
        if found:
            parts.append(f"{label}{found['added']['median']:.1f}")
    for label, mode in ours.get("kernel_of", {}).items():
        found = next((m for m in kernel["modes"] if m["mode"] == mode), None) if kernel else None
        if found:
            parts.append(f"{label}{found['added']} instructions (virtual machine)")
    for label, what in ours.get("overhead_of", {}).items():
        parts.append(f"{label}{(overhead[what] - 1) * 100:+.1f} %")
    if "said_of" in ours:
        parts.append(overhead[ours["said_of"]])
    if "elsewhere" in ours:
        parts.append(ours["elsewhere"])
    return ", ".join(parts)
