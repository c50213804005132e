"""The HTML page of a result: one file, no script, nothing fetched; plots are inline SVG."""
import html
from pathlib import Path

from . import svg, text, views

NANOSECONDS = svg.decades(0.1, 1e6, lambda v: {0.1: "0.1", 1.0: "1 ns", 10.0: "10", 100.0: "100", 1e3: "1 µs", 1e4: "10", 1e5: "100", 1e6: "1 ms"}[v])
MILLISECONDS = svg.decades(1, 1e5, lambda v: {1.0: "1 ms", 10.0: "10", 100.0: "100", 1e3: "1 s", 1e4: "10", 1e5: "100 s"}[v])
INSTRUCTIONS = svg.decades(1, 1e4, lambda v: f"{v:,.0f}")
SHARE = svg.Scale([(0, "0"), (0.25, ""), (0.5, "half"), (0.75, ""), (1.0, "untraced")], False)
TRACERS = {"fay": ("Fay", "fay"), "bpf": ("BPF uprobe.multi", "kernel"), "bpftrace": ("bpftrace", "kernel")}


def e(value):
    return html.escape(str(value))


def row(scale, name, note, kind, spread, value):
    return (f'<div class="row {kind}"><span class="name">{e(name)}{note}</span>{svg.bar(scale, spread, kind, f"{name}: {value}")}<span class="value">{e(value)}</span></div>')


def chart(heading, asked, rows, scale):
    return f'<section class="chart"><h3>{e(heading)}</h3><p class="asked">{e(asked)}</p>{"".join(rows)}{svg.ticks(scale)}</section>'


def lost_note(share):
    return f'<span class="lost">{views.miscounted(share)}</span>' if share else ""


def name_and_note(r):
    name, _, how = r["name"].partition(": ") if r["kind"] == "bound" else (r["name"].replace("*", " *"), "", "")
    return name, f'<span class="how">{e(how)}</span>' if how else lost_note(r["lost"])


def call_charts(section):
    charts = []
    for question, heading, asked, rows in views.by_question(section):
        if question.startswith("threads_"):
            continue
        bars = [row(NANOSECONDS, *name_and_note(r), r["kind"], r["added"], views.nanoseconds(r["added"]["median"])) for r in rows]
        charts.append(chart(heading, asked, bars, NANOSECONDS))
    return f'<div class="charts">{"".join(charts)}{thread_lines(section)}</div>'


def legend():
    items = "".join(f'<li><i style="background:var(--{kind})"></i>{e(said)}</li>' for kind, said in views.KINDS.items())
    return f'<ul class="legend">{items}<li>* the program was compiled for it</li></ul>'


def thread_lines(section):
    series = {}
    for mode in section["modes"]:
        if mode["question"].startswith("threads_"):
            series.setdefault(mode["peer"], {})[int(mode["question"].removeprefix("threads_"))] = mode["added"]["median"]
    counts = sorted({n for values in series.values() for n in values})
    drawn = [(TRACERS.get(peer, (peer, "in_process"))[0].replace("uprobe.", ""), TRACERS.get(peer, (peer, "in_process"))[1], [values[n] for n in counts])
             for peer, values in series.items() if all(n in values for n in counts)]
    if not drawn:
        return ""
    scale = svg.decades(0.1, 1e4, lambda v: {0.1: "0.1 ns", 1.0: "1 ns", 10.0: "10 ns", 100.0: "100 ns", 1e3: "1 µs", 1e4: "10 µs"}[v])
    return ('<section class="chart lines"><h3>Threads</h3><p class="asked">a count, added to each thread\'s own processor time a call; flat means that threads do not disturb one another</p>'
            + svg.lines(scale, counts, drawn, "threads that call at once") + "</section>")


def tile(value, said):
    return f'<div class="tile"><b>{e(value)}</b><span>{e(said)}</span></div>'


def tiles(result):
    """What to remember."""
    section, found = result.get("calls"), []
    for question, of in (("count", "to count a call"), ("duration", "for a histogram of latencies"), ("events", "to record a call")):
        rows = next((rows for q, _, _, rows in views.by_question(section) if q == question), []) if section else []
        ours = next((r for r in rows if r["kind"] == "fay"), None)
        other = next((r for r in rows if r["mode"] == f"bpftrace/{question}"), None)
        if ours:
            beside = f"; bpftrace {views.nanoseconds(other['added']['median'])}" if other else ""
            found.append(tile(views.nanoseconds(ours["added"]["median"]), of + beside))
    most = max((a for a in result.get("attach", []) if a["peer"] == "fay" and "failed" not in a), key=lambda a: a["functions"], default=None)
    if most:
        found.append(tile(f"{most['ready_ms']['median'] / 1000:.1f} s", f"from the command to {most['functions']:,} functions traced"))
    return f'<div class="tiles">{"".join(found)}</div>'


def attach_charts(result):
    charts = []
    for functions in sorted({entry["functions"] for entry in result["attach"]}):
        rows = []
        for entry in (a for a in result["attach"] if a["functions"] == functions):
            name, kind = TRACERS.get(entry["peer"], (entry["peer"], "in_process"))
            if "failed" in entry:
                rows.append(f'<div class="row"><span class="name">{e(name)}<span class="lost">not measured</span></span><span></span><span class="value"></span></div><p class="asked">{e(entry["failed"][:240])}</p>')
            else:
                rows.append(row(MILLISECONDS, name, "", kind, entry["ready_ms"], f"{entry['ready_ms']['median']:,.0f} ms"))
        charts.append(chart(f"{functions:,} function{'s' if functions > 1 else ''}", "until it traces", rows, MILLISECONDS))
    return f'<div class="charts">{"".join(charts)}</div>'


def server_charts(result):
    charts = []
    for server in result["servers"]:
        rows = [row(SHARE, TRACERS[t["peer"]][0], "", TRACERS[t["peer"]][1], t["of_untraced"], f"{t['of_untraced']['median']:.0%}") for t in server["tracers"]]
        rows += [f'<p class="asked">{e(f["peer"])}: not measured: {e(f["reason"][:200])}</p>' for f in server["failed"]]
        calls = next((t["calls_a_second"] for t in server["tracers"] if t["peer"] == "fay"), None)
        asked = f"throughput left while {server['function']} is counted" + (f", {calls:,} calls a second with Fay" if calls else "") if server["tracers"] else ""
        charts.append(chart(server["server"], asked, rows, SHARE))
    return f'<div class="charts">{"".join(charts)}</div>'


def kernel_label(mode):
    if mode["tool"].startswith("fay"):
        return "Fay: " + mode["mode"].removeprefix("fay ")
    return mode["mode"] if mode["mode"].startswith(mode["tool"]) else mode["tool"]


def kernel_chart(result):
    section = result["kernel"]
    bars = [row(INSTRUCTIONS, kernel_label(m), "", "fay" if m["tool"].startswith("fay") else "kernel", {k: m["added"] for k in ("median", "q1", "q3")}, f"{m['added']:,}")
            for m in sorted(section["modes"], key=lambda m: m["added"])]
    return chart("getppid, traced in the kernel", f"instructions added to a system call of {section['untraced']:,}; events, the tracers and perf record write a record each, the rest count in place",
                 bars, INSTRUCTIONS)


def html_table(head, rows, numbers=()):
    cells = "".join(f'<th{" class=number" if i in numbers else ""}>{e(h)}</th>' for i, h in enumerate(head))
    body = "".join("<tr>" + "".join(f'<td{" class=number" if i in numbers else ""}>{e(c)}</td>' for i, c in enumerate(r)) + "</tr>" for r in rows)
    return f'<div class="wide"><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>'


def every_figure(section):
    rows = [(heading, *[str(c).replace("\\*", "*").replace("**", "") for c in text.call_cells(r)]) for _, heading, _, all_rows in views.by_question(section) for r in all_rows]
    return f'<details><summary>Every figure, with quartiles, cycles, instructions and lost calls</summary>{html_table(("question", *text.CALL_HEAD), rows, (2, 3, 4, 5, 6))}</details>'


def published(result):
    rows = "".join(f"<tr><td>{e(what)}<br><span class=soft>{e(unit)}</span></td><td>{e(ours)}</td><td>"
                   + "<br>".join(f'{e(whose)}: {e(figure)} <span class="mark" title="{html.escape(source, quote=True)}">published</span>' for whose, figure, source in others) + "</td></tr>"
                   for what, unit, ours, others in text.published_rows(result))
    return f'<div class="wide"><table><thead><tr><th></th><th>measured here</th><th>published, on other machines</th></tr></thead><tbody>{rows}</tbody></table></div>'


def sections(result, agreed):
    section = result.get("calls")
    if section:
        yield (f"<h2>What a traced call costs</h2><p>Nanoseconds added to a call that takes {section['bounds']['untraced']['median']:.2f} ns in its loop. The scale is logarithmic: each line is ten times "
               f"the one before. The thin dark line is the spread (quartiles of {section['rounds']} rounds); half a nanosecond more or less comes from where code happens to lie.</p>" + legend() + call_charts(section) + every_figure(section))
    if result.get("servers"):
        yield "<h2>Servers while they are traced</h2><p>Debian's servers under load on the same two processors, one hot function counted; longer is better, and more than untraced is noise.</p>" + server_charts(result)
    if result.get("attach"):
        yield "<h2>Attaching</h2><p>Time from the start of the tracer's command until it traces so many functions of a program that calls 10,000 without a pause.</p>" + attach_charts(result)
    if result.get("kernel", {}).get("modes"):
        yield "<h2>In the kernel</h2><p>" + e(result["kernel"]["machine"]) + ".</p>" + kernel_chart(result)
    yield '<h2>Beside published figures</h2><p>What papers and projects published, from other machines and other years; not measured here.</p>' + published(result)
    if agreed:
        yield "<h2>The runs beside each other</h2><p>" + e(agreed["summary"]) + "</p>" + html_table(agreed["head"], agreed["rows"], range(1, len(agreed["head"])))
    if result.get("skipped"):
        yield "<h2>What could not run here</h2>" + html_table(("mode", "reason"), [(s["mode"], s["reason"]) for s in result["skipped"]])
    yield '<h2>Run it</h2><pre>scripts/bench --install-peers --out result.json</pre><p class="soft">docs/benchmarking.md says how it is measured, what the pitfalls are, and how another tool is added in one file.</p>'


def report(result, agreed=None):
    style = (Path(__file__).resolve().parent / "page.css").read_text(encoding="utf-8")
    body = "".join(sections(result, agreed))
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
            f'<link rel="icon" href="data:,"><title>What tracing costs</title><style>\n{style}</style></head>\n<body><main><h1>What tracing costs</h1>'
            f'<p class="soft">{e(views.machine_line(result))}. {views.modes_run(result)} ways of tracing a call ran, {len(result.get("skipped", []))} could not.</p>{tiles(result)}\n{body}</main></body></html>\n')
