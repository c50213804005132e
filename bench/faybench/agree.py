"""Whether results of several runs agree: each mode's cost as a multiple of the untraced call, beside the others'. Of each run the quickest round counts, as of each round the
quickest slice does: what other work on the machine takes away is only ever added."""
from .questions import QUESTIONS
from .text import table

# So far may the runs lie apart: the largest ratio over the smallest, less one; or, where tracing costs next to nothing, the nanoseconds added, since where code lies makes as much. Further
# apart than that, runs still agree if the quartiles that each states have a cost in common: what varies within a run varies between runs.
WITHIN = 0.25
NEAR = 0.5


def ratios(section):
    """{mode: (traced call in untraced calls, ns added, lower and upper quartile of the ns added)}, and the modes that miscounted, whose cost is not that of tracing every call."""
    quickest = {}
    for mode in section["modes"]:
        way = QUESTIONS[mode["question"]][2]
        quickest[way] = min(mode["untraced"], quickest.get(way, mode["untraced"]))
    found, miscounted = {}, set()
    for mode in section["modes"]:
        untraced = quickest[QUESTIONS[mode["question"]][2]]
        found[mode["mode"]] = ((untraced + min(mode["rounds"])) / untraced, min(mode["rounds"]), mode["added"]["q1"], mode["added"]["q3"])
        if mode["missed"]:
            miscounted.add(mode["mode"])
    return found, miscounted


def compare(results, within=WITHIN):
    """{head, rows, summary, text, apart, partly}: a row a mode that all results have and that counted right; `apart` names those that lie further apart than that,
    `partly` those that some result lacks."""
    runs = [ratios(result["calls"]) for result in results]
    every = list(dict.fromkeys(name for found, _ in runs for name in found))
    wrong = [name for name in every if any(name in miscounted for _, miscounted in runs)]
    partly = [name for name in every if any(name not in found for found, _ in runs)]
    rows, apart, spreads = [], [], []
    for name in (n for n in every if n not in wrong and n not in partly):
        each, added, lower, upper = zip(*(found[name] for found, _ in runs))
        spreads.append(max(each) / min(each) - 1)
        if spreads[-1] > within and max(added) - min(added) > NEAR and max(lower) > min(upper):
            apart.append(name)
        rows.append((name, *(f"{ratio:,.2f}" if ratio < 100 else f"{ratio:,.0f}" for ratio in each), f"{spreads[-1]:.0%}"))
    middle = sorted(spreads)[len(spreads) // 2] if spreads else 0
    summary = (f"A traced call's cost as a multiple of the untraced one, in {len(results)} complete runs: {len(rows) - len(apart)} of {len(rows)} modes agree within {within:.0%}, {NEAR} ns or the quartiles that each run states, "
               f"half of them within {middle:.0%}." + "".join(f" {what}: {', '.join(names)}." for what, names in
                                                              (("Further apart", apart), ("Not compared, since they miscounted in some run", wrong), ("Not in all runs", partly)) if names))
    head = ("mode", *(f"run {i + 1}" for i in range(len(results))), "apart")
    return {"head": head, "rows": rows, "summary": summary, "apart": apart, "partly": partly, "text": summary + "\n\n" + table(head, rows)}
