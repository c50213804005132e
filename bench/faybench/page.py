"""The HTML page of a result: one file, no script, nothing fetched; plots are inline SVG."""
import html
from pathlib import Path

from . import peers, questions, svg, text, views

NANOSECONDS = svg.decades(0.1, 1e6, lambda v: {0.1: "0.1", 1.0: "1 ns", 10.0: "10", 100.0: "100", 1e3: "1 µs", 1e4: "10", 1e5: "100", 1e6: "1 ms"}[v])
MILLISECONDS = svg.decades(1, 1e5, lambda v: {1.0: "1 ms", 10.0: "10", 100.0: "100", 1e3: "1 s", 1e4: "10", 1e5: "100 s"}[v])
INSTRUCTIONS = svg.decades(1, 1e4, lambda v: f"{v:,.0f}")
SHARE = svg.Scale([(0, "0"), (0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (1.0, "100 %")], False)


class Html(str):
    """What is HTML already."""


def e(value):
    return value if isinstance(value, Html) else html.escape(str(value))


def linked(name, home):
    return f'<a href="{e(home)}">{e(name)}</a>' if home else e(name)


def row(scale, name, note, kind, spread, value, bound=None, home=None):
    return (f'<div class="row {kind}"><span class="name">{linked(name, home)}{note}</span>{svg.mark(scale, spread, kind, f"{name}: {value}", bound)}<span class="value">{e(value)}</span></div>')


def chart(heading, asked, rows, scale, unit=""):
    return f'<section class="chart"><h3>{e(heading)}</h3><p class="asked">{e(asked)}</p>{"".join(rows)}{svg.ticks(scale, unit)}</section>'


def how(said):
    return f'<span class="how">{e(said)}</span>'


def counted_note(r):
    """What is to be known of a tool's own count."""
    if r["lost"]:
        return f'<span class="lost">{views.miscounted(r["lost"])}</span>'
    return how("does not say how many it counted") if r["lost"] is None and r["question"] not in questions.UNCOUNTED else ""


def name_and_note(r):
    if r["kind"] == "bound":
        name, _, said = r["name"].partition(": ")
        return name, how(said)
    return r["name"].replace("*", " *"), counted_note(r)


def call_charts(section):
    charts = []
    for question, heading, asked, rows in views.by_question(section):
        if question.startswith("threads_"):
            continue
        bound = next((r["added"]["median"] for r in rows if r["kind"] == "bound"), None)
        bars = [row(NANOSECONDS, *name_and_note(r), r["kind"], r["added"], views.nanoseconds(r["added"]["median"]), bound, r.get("home")) for r in rows]
        charts.append(chart(heading, asked, bars, NANOSECONDS, "time added to a call, logarithmic"))
    return f'<div class="charts">{"".join(charts)}{thread_lines(section)}</div>'


def legend():
    items = "".join(f'<li><i style="background:var(--{kind})"></i>{e(said)}</li>' for kind, said in views.KINDS.items())
    return f'<ul class="legend">{items}<li><i class="bound"></i>as much as by hand</li><li>* the program was compiled for it</li></ul>'


def thread_lines(section):
    series = {}
    for mode in section["modes"]:
        if mode["question"].startswith("threads_"):
            series.setdefault(mode["peer"], {})[int(mode["question"].removeprefix("threads_"))] = mode["added"]["median"]
    counts = sorted({n for values in series.values() for n in values})
    drawn = [(peers.tool(peer).replace("uprobe.", ""), peers.kind(peer), [values[n] for n in counts])
             for peer, values in series.items() if all(n in values for n in counts)]
    if not drawn:
        return ""
    scale = svg.decades(0.1, 1e4, lambda v: {0.1: "0.1 ns", 1.0: "1 ns", 10.0: "10 ns", 100.0: "100 ns", 1e3: "1 µs", 1e4: "10 µs"}[v])
    return ('<section class="chart lines"><h3>Threads</h3><p class="asked">a count, added to each thread\'s own processor time a call; flat means that threads do not disturb one another</p>'
            + svg.lines(scale, counts, drawn, "threads that call at once") + "</section>")


def tile(value, said, others):
    """A figure of Fay's, what it is, and the same of others."""
    return f'<div class="tile"><b>{e(value)}</b><span class="of">{e(said)}</span><span>{e(others)}</span></div>'


def others_said(rows):
    """The cheapest other tools for the same question."""
    found = [best for best in (views.best(rows, kind) for kind in ("in_process", "kernel")) if best]
    return "; ".join(f"{best['name']} {views.nanoseconds(best['added']['median'])}" for best in found)


def tiles(result):
    """What to remember."""
    section, found = result.get("calls"), []
    asked = {question: rows for question, _, _, rows in views.by_question(section)} if section else {}
    for question, of in (("count", "to count a call"), ("duration", "for a histogram of latencies"), ("events", "to record a call")):
        ours = views.best(asked.get(question, ()), "fay")
        if ours:
            found.append(tile(views.nanoseconds(ours["added"]["median"]), of, others_said(asked[question])))
    most = max((a for a in result.get("attach", []) if a["peer"] == "fay" and "failed" not in a), key=lambda a: a["functions"], default=None)
    if most:
        others = [a for a in result["attach"] if a["functions"] == most["functions"] and a["peer"] != "fay" and "failed" not in a]
        said = "; ".join(f"{peers.tool(a['peer'])} {a['ready_ms']['median'] / 1000:.1f} s" for a in others)
        found.append(tile(f"{most['ready_ms']['median'] / 1000:.1f} s", f"from the command to {most['functions']:,} functions traced", said))
    return f'<div class="tiles">{"".join(found)}</div>'


def attach_row(entry):
    name = peers.tool(entry["peer"])
    if "failed" in entry:
        return (f'<div class="row"><span class="name">{e(name)}<span class="lost">not measured</span></span><span></span><span class="value"></span></div>'
                f'<p class="asked">{e(entry["failed"][:240])}</p>')
    note = how(f"ends in {entry['end_ms']['median']:,.0f} ms, {entry['tracer_kb']['median'] / 1024:,.0f} MiB")
    return row(MILLISECONDS, name, note, peers.kind(entry["peer"]), entry["ready_ms"], f"{entry['ready_ms']['median']:,.0f} ms", home=peers.home(entry["peer"]))


def attach_charts(result):
    charts = []
    for functions in sorted({entry["functions"] for entry in result["attach"]}):
        entries = [entry for entry in result["attach"] if entry["functions"] == functions]
        rows = [attach_row(entry) for entry in sorted(entries, key=lambda a: a["ready_ms"]["median"] if "failed" not in a else float("inf"))]
        charts.append(chart(f"{functions:,} function{'s' if functions > 1 else ''}", "until it traces; below the name until it has let go, and the tracer's own memory", rows, MILLISECONDS, "logarithmic"))
    return f'<div class="charts">{"".join(charts)}</div>'


def server_charts(result):
    charts = []
    for server in result["servers"]:
        tracers = sorted(server["tracers"], key=lambda t: -t["of_untraced"]["median"])
        rows = [row(SHARE, peers.tool(t["peer"]), how(f"{t['calls_a_second']:,} calls/s"), peers.kind(t["peer"]), t["of_untraced"], f"{t['of_untraced']['median']:.0%}", home=peers.home(t["peer"]))
                for t in tracers]
        rows += [f'<p class="asked">{e(f["peer"])}: not measured: {e(f["reason"][:200])}</p>' for f in server["failed"]]
        asked = f"throughput left while each call of {server['function']} is counted" if tracers else ""
        charts.append(chart(server["server"], asked, rows, SHARE, f"untraced: {server['untraced']['median']:,.0f} {server['unit']}" if tracers else ""))
    return f'<div class="charts">{"".join(charts)}</div>'


def kernel_charts(section):
    charts = []
    for heading, asked, modes in views.kernel_by_question(section):
        bars = [row(INSTRUCTIONS, views.kernel_name(m), "", "fay" if m["tool"].startswith("fay") else "kernel", {k: m["added"] for k in ("median", "q1", "q3")}, f"{m['added']:,}", home=views.KERNEL_HOMES.get(m["tool"])) for m in modes]
        charts.append(chart(heading, asked, bars, INSTRUCTIONS, f"instructions added to a system call of {section['untraced']:,}, logarithmic"))
    return f'<div class="charts">{"".join(charts)}</div>'


def html_table(head, rows, numbers=()):
    cells = "".join(f'<th{" class=number" if i in numbers else ""}>{e(h)}</th>' for i, h in enumerate(head))
    body = "".join("<tr>" + "".join(f'<td{" class=number" if i in numbers else ""}>{e(c)}</td>' for i, c in enumerate(r)) + "</tr>" for r in rows)
    return f'<div class="wide"><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>'


def every_figure(section):
    rows = [(heading, *[str(c).replace("\\*", "*").replace("**", "") for c in text.call_cells(r)]) for _, heading, _, all_rows in views.by_question(section) for r in all_rows]
    return folded("Every figure, with quartiles, cycles, instructions and lost calls", html_table(("question", *text.CALL_HEAD), rows, (2, 3, 4, 5)))


def published(result):
    """The figures of papers beside this result's, and below them where they are from."""
    all_rows, sources = text.published_rows(result), {}
    rows = []
    for what, unit, ours, others in all_rows:
        figures = "<br>".join(f"{e(whose)}: {e(figure)} <sup>{sources.setdefault(source, len(sources) + 1)}</sup>" for whose, figure, source in others)
        rows.append(f'<tr><td>{e(what)}<span class="how">{e(unit)}</span></td><td>{e(ours)}</td><td><span class="mark">published</span> {figures}</td></tr>')
    from_where = "".join(f"<li>{e(source)}</li>" for source in sources)
    return (f'<div class="wide published"><table><thead><tr><th>what</th><th>measured here</th><th>published, on other machines</th></tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
            f'<ol class="soft">{from_where}</ol>')


def folded(said, inside):
    return f"<details><summary>{e(said)}</summary>{inside}</details>"


def calls_section(result):
    section, later = result["calls"], views.since(result)
    return (f"<p><strong>Added</strong> is the time of a traced call less that of the same call untraced, {section['bounds']['untraced']['median']:.2f} ns in its loop, measured in turns. A dot is the median of "
            f"{section['rounds']} rounds; the thin line goes from quartile to quartile. The scale is logarithmic: each step is ten times as much.</p>"
            "<p>The dashed line is a patch written by hand for the same question. Code happens to lie half a nanosecond better or worse, so what ends left of that line is as cheap as by hand, not cheaper.</p>"
            + (f'<p class="soft">{e(later)}</p>' if later else "") + legend() + call_charts(section) + every_figure(section))


def tools_of(result):
    """What one needs to know to measure the same again."""
    machine = result["machine"]
    rows = [("machine", f"{machine['cpu']}, {machine['processors']} processors, {machine.get('memory', '')}{', virtual' if machine['virtual'] else ''}"), ("system", f"{machine['system']}, Linux {machine['kernel']}"),
            ("measured", f"{result['date']}, load {machine['load_at_start']} at the start"), ("Fay", f"commit {result['commit']}"), *result.get("tools", {}).items()]
    return folded("Machine and versions", html_table(("", ""), rows))


def run_it():
    return '<pre>scripts/bench --install-peers --out result.json</pre>'


def sections(result, agreed):
    """[(name for links, heading, inside)] of what there is."""
    if result.get("calls"):
        yield "calls", "What a traced call costs", calls_section(result)
    if result.get("servers"):
        yield ("servers", "Servers while they are traced",
               "<p>Debian's servers under load on the same two processors, one hot function counted. Longer is better; more than untraced is noise. A share is the median over the rounds, each to "
               "the load just before it.</p>" + server_charts(result))
    if result.get("attach"):
        yield ("attaching", "Attaching", "<p>Time from the start of the tracer's command until it traces so many functions of a program that calls 10,000 without a pause. Fay's has compiling and verifying in it.</p>"
               + attach_charts(result))
    if result.get("kernel", {}).get("modes"):
        yield ("kernel", "In the kernel", f"<p>Instructions executed for a getppid, by a virtual machine in which each takes one tick: {e(result['kernel']['machine'])}. They are no times.</p>"
               + kernel_charts(result["kernel"]))
    yield ("published", "Beside published figures", "<p>What papers and projects published, from other machines and other years; not measured here. What is <em>measured here</em> is Fay for Linux unless another name "
           "stands beside it.</p>" + published(result))
    if agreed:
        yield "runs", "Do several runs agree?", "<p>" + e(agreed["summary"]) + "</p>" + folded("Every mode in each run", html_table(agreed["head"], agreed["rows"], range(1, len(agreed["head"]))))
    if result.get("skipped"):
        yield "missing", "What could not run here", html_table(("mode", "reason"), [(Html(linked(s["mode"], peers.home(*s["mode"].split("/", 1)))), s["reason"]) for s in result["skipped"]])
    yield "again", "Run it", run_it() + '<p class="soft">docs/benchmarking.md says how it is measured, what the pitfalls are, and how another tool is added in one file.</p>'


def report(result, agreed=None):
    style = (Path(__file__).resolve().parent / "page.css").read_text(encoding="utf-8")
    parts = list(sections(result, agreed))
    links = "".join(f'<a href="#{name}">{e(heading)}</a>' for name, heading, _ in parts)
    body = "\n".join(f'<h2 id="{name}">{e(heading)}</h2>{inside}' for name, heading, inside in parts)
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
            f'<link rel="icon" href="data:,"><title>What tracing costs</title><style>\n{style}</style></head>\n<body><main><h1>What tracing costs</h1>'
            f'<p>What each tracer adds to a call of a function in a program that runs: Fay, the others, and patches written by hand, in turns in one run. {views.modes_run(result)} ways of tracing ran, '
            f'{len(result.get("skipped", []))} could not.</p><p class="soft">{e(views.machine_line(result))}.</p>{tools_of(result)}{tiles(result)}<nav>{links}</nav>\n{body}</main></body></html>\n')
