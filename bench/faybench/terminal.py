"""A result's calls as a Markdown table on standard output."""


def show(spread):
    return f"{spread['median']:.2f} [{spread['q1']:.2f}, {spread['q3']:.2f}]"


def said(value):
    return "not said" if value is None else str(value)


def print_calls(section, skipped):
    print("| mode | question | added ns a call | cycles | instructions | times its bound | calls missed |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name, bound in section["bounds"].items():
        if name != "untraced":
            print(f"| {name} | {bound['what']} | {show(bound['added'])} | {bound['added']['median'] * section['cycles_per_ns']:.1f} | {bound['instructions']} | | |")
    for mode in section["modes"]:
        ratio = f"{mode['of_bound']['median']:.2f} of {mode['bound']}" if "of_bound" in mode else ""
        steps = "" if mode["instructions"] is None else mode["instructions"]
        print(f"| {mode['mode']} | {mode['question']} | {show(mode['added'])} | {mode['added']['median'] * section['cycles_per_ns']:.1f} | {steps} | {ratio} | {said(mode['missed'])} |")
    for entry in skipped:
        print(f"\nnot run: {entry['mode']}: {entry['reason']}")
