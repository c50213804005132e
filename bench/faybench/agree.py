"""Whether results of several runs agree: each mode's cost as a multiple of the untraced call, beside the others'."""
from .text import table

# What a traced call costs, in untraced calls: so far may the runs lie apart, as the largest over the smallest, less one.
WITHIN = 0.35


def times_untraced(mode):
    return (mode["untraced"] + mode["added"]["median"]) / mode["untraced"]


def compare(results, within=WITHIN):
    """{head, rows, summary, text, apart}: a row a mode that all results have; `apart` names those that lie further apart than `within`."""
    by_mode = [{m["mode"]: m for m in result["calls"]["modes"]} for result in results]
    rows, apart = [], []
    for name in (n for n in by_mode[0] if all(n in modes for modes in by_mode)):
        ratios = [times_untraced(modes[name]) for modes in by_mode]
        spread = max(ratios) / min(ratios) - 1
        if spread > within:
            apart.append(name)
        rows.append((name, *(f"{ratio:,.2f}" if ratio < 100 else f"{ratio:,.0f}" for ratio in ratios), f"{spread:.0%}"))
    only_some = sorted(set().union(*by_mode) - {row[0] for row in rows})
    spreads = sorted(float(row[-1].rstrip("%")) for row in rows)
    summary = (f"A traced call's cost as a multiple of the untraced one, in {len(results)} complete runs ({', '.join(r['date'] for r in results)}): {len(rows) - len(apart)} of {len(rows)} modes agree within "
               f"{within:.0%}; the median mode within {spreads[len(spreads) // 2] if spreads else 0:.0f}%." + (f" Further apart: {', '.join(apart)}." if apart else "")
               + (f" Not in all runs: {', '.join(only_some)}." if only_some else ""))
    head = ("mode", *(f"run {i + 1}" for i in range(len(results))), "apart")
    return {"head": head, "rows": rows, "summary": summary, "apart": apart, "text": summary + "\n\n" + table(head, rows)}
