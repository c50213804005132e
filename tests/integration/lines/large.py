# large.py FAY DIRECTORY MEGABYTES: debug information of so many megabytes: the unit of a program
# over and over, each saying that the same code is its own; the same cut off, with units that claim
# to be the whole of it, and with nothing but zeros behind the first. A program with 100,000
# functions, and one with 100,000 places at which one line begins. Fay answers, or says what is too
# much; the programs do what they did.
import os, resource, shutil, struct, subprocess, sys

fay, work, megabytes = os.path.realpath(sys.argv[1]), sys.argv[2], int(sys.argv[3])
os.chdir(work)


def shell(command):
    subprocess.run(command, shell=True, check=True)


def ask(what, want, says, *question):
    done = subprocess.run([fay, *question], capture_output=True, text=True, timeout=300)
    if done.returncode not in want or says not in done.stdout + done.stderr:
        sys.exit(f"{what}: {question} ends with {done.returncode}: {done.stdout[-500:]}"
                 f"{done.stderr[-500:]}")
    print(f"ok: {what}: {(done.stderr.strip() or done.stdout.strip()).splitlines()[-1][:150]}")


open("large.c", "w").write("""
#include <stdio.h>
static inline int twice(int n) { return 2 * n + (n & 1); }
int __attribute__((noipa)) total(int start)
{
	return start + twice(start + 1);
}
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 10; i++)
		sum = total(sum) % 1000;
	printf("sum %d\\n", sum);
	return 0;
}
""")
shell("gcc -O2 -g -gno-as-loc-support -o large large.c && "
      "objcopy -O binary -j .debug_info --set-section-flags .debug_info=alloc large unit")
shutil.copy("large", "plain")
unit = open("unit", "rb").read()
per_chunk = max(1, (1 << 20) // len(unit))
whole = struct.pack("<I", min(megabytes * per_chunk * len(unit) - 4, 0xffffff00)) + unit[4:]


def enlarge(chunk, first=b""):
    """The program, whose debug information is the chunk as often as it takes."""
    with open("units", "wb") as out:
        out.write(first)
        for _ in range(megabytes):
            out.write(chunk)
    shell("objcopy --update-section .debug_info=units plain large && rm units")


def ask_all(what):
    for question, name in questions:
        ask(f"{megabytes} megabytes{what}, {name}", (0, 1, 2, 3), "", *question)


questions = (
    (["list", "--lines", "large", "large!large.c:6"], "a line"),
    (["list", "--inlined", "large", "large!twice"], "copies"),
    (["trace", 'cluster.Line("large!large.c:6").Sum(l => l.start)', "--", "./large"], "a variable"),
    (["trace", 'cluster.Function("large!total").Sum(f => f.start)', "--", "./large"],
     "an argument"))
enlarge(unit * per_chunk)
ask_all("")
size = os.path.getsize("large")
with open("large", "r+b") as file: # in the section; its table of sections is whole
    headers = struct.unpack("<Q", file.read(48)[40:])[0]
    file.seek(size // 3)
    at = file.tell()
    while at < headers - (1 << 20):
        at += file.write(bytes(1 << 20))
ask_all(", zeros from a third on")
os.truncate("large", size * 2 // 3)
ask_all(", cut off")
enlarge(whole * per_chunk)
ask_all(", each unit the whole")
enlarge(bytes(1 << 20), unit)
ask_all(", one unit and zeros")
os.remove("large")

# --- 100,000 functions
with open("many.s", "w") as out:
    out.write(".text\n")
    for i in range(100000):
        out.write(f".globl many_{i}\n.type many_{i},@function\n.p2align 4\nmany_{i}:\n"
                  f"nopl 0(%rax)\nnop\nret\n.size many_{i},.-many_{i}\n")
open("main.c", "w").write('#include <stdio.h>\nvoid many_7(void);\nvoid many_99999(void);\n'
                          'int main(void)\n{\n\tfor (int i = 0; i < 5; i++)\n\t\tmany_7();\n'
                          '\tmany_99999();\n\tputs("done");\n\treturn 0;\n}\n')
shell("gcc -g -o many main.c many.s")
ask("100,000 functions, listed", (0,), "many_99999", "list", "many", "many!many_*")
ask("100,000 functions, traced", (0, 3), "", "trace",
    'cluster.Function("many!many_*").Count()', "--", "./many")
ask("no such one", (2,), "did you mean", "list", "many", "many!mani_99999")

# --- a line with 100,000 places
with open("places.c", "w") as out:
    out.write("volatile int n;\nint main(void)\n{\n")
    for i in range(100000):
        out.write("#line 5\n{ int a = n; n = a + 1; }\n")
    out.write("#line 7\nreturn n != 100000;\n}\n")
shell("gcc -g -o places places.c")
ask("100,000 places, listed", (3,), "has too much", "list", "--lines", "places",
    "places!places.c:5")
ask("100,000 places, traced", (3,), "has too much", "trace",
    'cluster.Line("places!places.c:5").Count()', "--", "./places")
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
print(f"at most {most} megabytes of memory")
if most > 3 * megabytes + 2000:
    sys.exit("too much")
