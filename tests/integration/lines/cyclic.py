# cyclic.py FAY DIRECTORY: debug information whose references go in circles or to where nothing is.
# Each reference of a program's debug information (types, siblings, origins) is led in turn to the
# entry itself and behind the end. Fay answers or refuses, soon, and the program does what it did.
import os, re, subprocess, sys

fay, work = os.path.realpath(sys.argv[1]), sys.argv[2]
os.chdir(work)
open("circle.c", "w").write("""
#include <stdio.h>
typedef int number;
enum colour { RED, GREEN };
struct list { struct list *next; number value; enum colour colour; };
static inline number twice(number n)
{
	return 2 * n + (n & 1);
}
number __attribute__((noipa)) total(struct list *l, number start, enum colour c)
{
	for (; l; l = l->next)
		start += twice(l->value) + c;
	return start;
}
int main(void)
{
	struct list two = { 0, 2, RED }, one = { &two, 1, GREEN };
	number sum = 0;
	for (number i = 0; i < 10; i++)
		sum = total(&one, sum, GREEN);
	printf("%d\\n", sum);
	return 0;
}
""")
subprocess.run("gcc -O2 -g -dA -S circle.c && gcc -o circle circle.s", shell=True, check=True)
want = subprocess.run("./circle", capture_output=True).stdout
whole = open("circle.s").read().split("\n")
entries = []
references = []
for at, line in enumerate(whole):
    if found := re.search(r"\(DIE \((0x[0-9a-f]+)\)", line):
        entries.append(found[1])
    elif re.search(r"\.long\t0x[0-9a-f]+\t# DW_AT_(type|sibling|abstract_origin)$", line):
        references.append((at, entries[-1]))
questions = [
    ["list", "--lines", "circle", "circle!circle.c:13"],
    ["list", "--inlined", "circle", "circle!twice"],
    ["trace", 'from l in cluster.Line("circle!circle.c:13") select new { l.start, l.l->next->value,'
     ' k = l.Known("start"), l.c }', "--", "./circle"],
    ["trace", 'from f in cluster.Function("circle!total") group f by new { f.start, f.l->colour } '
     'into g select new { g.Key, n = g.Count() }', "--", "./circle"],
    ["trace", 'from f in cluster.Function("circle!twice") group f by new { f.Inlined, f.n } into g '
     'select new { g.Key, times = g.Count() }', "--", "./circle"],
]


def ask(what):
    codes = []
    for question in questions:
        output = "--json" if question[0] == "list" else "-otable"
        done = subprocess.run([fay, question[0], output, *question[1:]], capture_output=True,
                              timeout=60)
        codes.append(done.returncode)
        if done.returncode not in (0, 1, 2, 3):
            sys.exit(f"{what}: {question} ends with {done.returncode}: {done.stderr}")
        if done.returncode == 0 and question[0] == "trace" and want not in done.stdout:
            sys.exit(f"{what}: {question} has changed the program: {done.stdout}")
    return codes


if ask("unchanged") != [0] * len(questions):
    sys.exit("the unchanged program")
refused = asked = 0
for at, entry in references:
    name = whole[at].split("DW_AT_")[1]
    for target in entry, "0xfffff":
        changed = list(whole)
        changed[at] = f"\t.long\t{target}"
        open("changed.s", "w").write("\n".join(changed))
        subprocess.run(["gcc", "-o", "circle", "changed.s"], check=True)
        codes = ask(f"{name} of {entry} to {target}")
        asked += len(codes)
        refused += sum(code != 0 for code in codes)
print(f"{len(references)} references, {asked} questions, {refused} refused")
