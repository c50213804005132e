"""The Markdown report of a result, and the tables of it that stand in other documents."""
import json
from pathlib import Path

from . import peers, questions, views

HERE = Path(__file__).resolve().parent.parent


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]) + "\n"


def spread(s, form="{:,.2f}"):
    return f"{form.format(s['median'])} [{form.format(s['q1'])}, {form.format(s['q3'])}]"


def lost(row):
    if row["lost"] is None:
        return "none to count" if row["question"] in questions.UNCOUNTED else "not said"
    return f"**{views.miscounted(row['lost'])}**" if row["lost"] else "none"


def call_cells(row):
    ratio = f"{row['of_bound']['median']:,.1f}" if row["of_bound"] else ""
    return (row["name"].replace("*", "\\*"), spread(row["added"]), f"{row['cycles']:,.1f}", "" if row["instructions"] is None else row["instructions"], ratio,
            "" if row["kind"] == "bound" else lost(row))


CALL_HEAD = ("tool", "added, ns", "cycles", "instructions", "times the bound", "calls lost")


def calls(result):
    """Every mode, by question."""
    parts = []
    for _, heading, asked, rows in views.by_question(result["calls"]):
        parts.append(f"**{heading}**: {asked}\n\n" + table(CALL_HEAD, map(call_cells, rows)))
    return "\n".join(parts)


SUMMARY = ("count", "histogram", "group", "entry_return", "duration", "events")


def summary(result):
    """The README's table: what each question costs with Fay, and with the cheapest of each other kind of tool."""
    rows = []
    for question, heading, asked, all_rows in views.by_question(result["calls"]):
        if question not in SUMMARY:
            continue
        cells = [f"{heading}: {asked}"]
        for kind in ("bound", "fay", "in_process", "kernel", "stops"):
            best = views.best(all_rows, kind)
            said = f"{best['name']}: " if best and kind not in ("fay", "bound") else ""
            cells.append((said + views.nanoseconds(best["added"]["median"])).replace("*", "\\*") if best else "")
        rows.append(cells)
    head = ("a call, added", "by hand", "Fay", "best other in the process", "best through the kernel", "best that stops the program")
    return table(head, rows) + f"\n{views.machine_line(result)}. \\* the program was compiled for it.\n"


def attach(result):
    rows = []
    for entry in sorted(result.get("attach", []), key=lambda e: (e["functions"], e["peer"] != "fay", e["peer"])):
        name = peers.tool(entry["peer"])
        if "failed" in entry:
            rows.append((f"{entry['functions']:,}", name, entry["failed"].replace("\n", " ")[:200], "", "", ""))
        else:
            rows.append((f"{entry['functions']:,}", name, spread(entry["ready_ms"], "{:,.0f}"), spread(entry["end_ms"], "{:,.0f}"),
                         f"{entry['tracer_kb']['median'] / 1024:,.1f}", f"{entry['target_kb']['median']:,.0f}"))
    return table(("functions", "tool", "command to traced, ms", "end, ms", "tracer's memory, MiB", "grown in the program, KiB"), rows)


def servers(result):
    rows = []
    for server in result.get("servers", []):
        for tracer in server["tracers"]:
            untraced = tracer.get("untraced", server["untraced"])
            rows.append((server["server"], f"`{server['function']}`", peers.tool(tracer["peer"]), f"{untraced['median']:,.0f} {server['unit']}", f"{tracer['rate']['median']:,.0f}",
                         spread(tracer["of_untraced"]), f"{tracer['calls_a_second']:,}"))
        rows += [(server["server"], "", failed["peer"], "not measured: " + failed["reason"].replace("\n", " ")[:160], "", "", "") for failed in server["failed"]]
    return table(("server", "function", "tool", "untraced", "traced", "of untraced", "calls counted a second"), rows)


def kernel(result):
    section = result.get("kernel", {"modes": []})
    if not section["modes"]:
        return f"Not measured: {section.get('failed', 'not asked for')}\n"
    rows = [(heading, views.kernel_name(mode), f"{mode['added']:,}") for heading, _, modes in views.kernel_by_question(section) for mode in modes]
    return table(("question", "tool", f"instructions added to getppid, which takes {section['untraced']:,}"), rows)


def rows_of(name):
    """The rows of a committed result that has one JSON object a line."""
    return [json.loads(line) for line in (HERE / "results" / name).read_text(encoding="utf-8").splitlines()]


def overheads():
    """{what: time with it to time without}, of other committed results: by kernel what guards cost, what an agent costs the programs that it traces, and all functions of the kernel in words."""
    guarded = [row for row in rows_of("overhead.json") if row.get("build") == "guarded"]
    found = {row["kernel"]: row["to_plain"] for row in guarded} | {f"{row['kernel']} without vectors": row["to_scalar"] for row in guarded}
    cluster = rows_of("cluster_overhead.json")
    agents = [row["steady"]["median"] for row in cluster if row["what"] == "by thread"]
    found.update({row["what"]: row["steady"]["median"] for row in cluster if row["what"] != "machine"})
    sent = next(row for row in cluster if row["what"] == "each event sent")
    found["events lost"] = f"{sent['lost']:,} of {sent['allocations']:,} events lost"
    return {**found, "agent, mean": sum(agents) / len(agents), "agent, most": max(agents), "all kernel functions": all_kernel_functions()}


def all_kernel_functions():
    every = rows_of("kernel_every.json")[0]
    return (f"Fay {every['fay'] / every['untraced']:.1f}, ftrace's function tracer {every['ftrace'] / every['untraced']:.1f}; {every['functions']:,} functions, in instructions, in the virtual machine "
            f"({every['date']})")


def published_rows(result):
    figures = json.loads((HERE / "published.json").read_text(encoding="utf-8"))
    return views.published(result, figures, overheads())


def published(result):
    rows = []
    for what, unit, ours, others in published_rows(result):
        rows.append((what, unit, ours, "; ".join(f"{whose} {figure}" for whose, figure, _ in others), "; ".join(dict.fromkeys(source for *_, source in others))))
    return table(("what", "unit", "measured here", "published", "where"), rows)


def skipped(result):
    return table(("mode", "why it did not run"), [(entry["mode"], entry["reason"].replace("|", "/")) for entry in result.get("skipped", [])])


def agreement(agreed):
    """What bench/agree found: see faybench/agree.py."""
    if not agreed:
        return ""
    return f"\n## The runs beside each other\n\n{agreed['text']}\n"


def report(result, agreed=None):
    section = result.get("calls")
    parts = [f"# What tracing costs\n\n{views.machine_line(result)}. {views.modes_run(result)} ways of tracing a call ran, {len(result.get('skipped', []))} could not.\n"]
    parts.append("Made by `bench/report`; [benchmarking.md](benchmarking.md) says how it is measured and how to run it.\n")
    if section:
        parts.append(f"## A traced call\n\nNanoseconds added to a call that takes {section['bounds']['untraced']['median']:.2f} ns in its loop, median [quartiles] of {section['rounds']} interleaved rounds; "
                     f"cycles are those of the time stamp counter. \\* the program was compiled for it. {views.since(result)}".strip() + "\n\n" + calls(result))
    if result.get("attach"):
        parts.append("## Attaching and letting go\n\nOf a busy program, from the start of the tracer's command.\n\n" + attach(result))
    if result.get("servers"):
        parts.append("## Servers while they are traced\n\nOne hot function counted; load on the same two processors. More is better; above 1 is noise.\n\n" + servers(result))
    if result.get("kernel"):
        parts.append("## In the kernel\n\n" + kernel(result))
    parts.append("## Beside published figures\n\nThe published ones are from other machines and years, and were not measured here.\n\n" + published(result))
    parts.append("## What could not run here\n\n" + skipped(result))
    return "\n".join(parts) + agreement(agreed)
