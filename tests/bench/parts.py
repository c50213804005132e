#!/usr/bin/env python3
"""What the benchmark's Python parts compute, and one short run of it: the untraced target, its bounds, and one peer that is made up here."""
import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from faybench import agree, calls, mode, page, peers, questions, svg, text, views, vm  # noqa: E402

SPREAD = {"median": 700.0, "q1": 690.0, "q3": 710.0}


def result(added, missed=0):
    """A result of one mode, bpftrace/count."""
    mode = {"mode": "bpftrace/count", "peer": "bpftrace", "label": "count", "question": "count", "calls": 5000, "added": {k: v * added / 700 for k, v in SPREAD.items()}, "rounds": [added],
            "untraced": 1.4, "missed": missed, "instructions": None, "bound": "bound_inlined", "of_bound": SPREAD}
    bounds = {"untraced": {"median": 1.4, "q1": 1.4, "q3": 1.4}, "bound_inlined": {"what": "a count in place", "added": {"median": 0.5, "q1": 0.5, "q3": 0.6}, "instructions": 3}}
    return {"format": 2, "date": "2026-01-02", "commit": "abc", "machine": {"cpu": "X <1>", "processors": 2, "virtual": True, "kernel": "6", "system": "Debian", "load_at_start": 1.0},
            "calls": {"rounds": 1, "slices": 150, "cycles_per_ns": 2.5, "bounds": bounds, "modes": [mode]}, "skipped": [{"mode": "x/y", "question": "count", "reason": "no <x> | here"}]}


class Views(unittest.TestCase):
    def test_calls_that_a_question_makes(self):
        self.assertEqual(questions.calls_made("count", 1000, 150), 150000)
        self.assertEqual(questions.calls_made("threads_4", 1000, 150), 600000)
        self.assertEqual(questions.calls_made("nested_20", 1000, 10), 10 * 51 * 20)

    def test_lost_calls_are_shown(self):
        lossy = result(700, missed=75000)
        self.assertEqual(views.lost_share(lossy["calls"], lossy["calls"]["modes"][0]), 0.1)
        self.assertIn("**lost 10% of the calls**", text.report(lossy))
        self.assertIn("lost 10% of the calls", page.report(lossy))
        self.assertNotIn("lost", views.by_question(result(700)["calls"])[0][3][1]["name"])

    def test_miscounts_in_words(self):
        self.assertEqual([views.miscounted(share) for share in (None, 0, 0.5, 0.0002, -0.03)], ["", "", "lost 50% of the calls", "lost 0.02% of the calls", "counted 3% too many"])

    def test_a_tool_that_lost_calls_is_not_the_best(self):
        fine, lossy = result(700), result(600, missed=75000)
        self.assertIn("bpftrace: 700 ns", text.summary(fine))
        self.assertNotIn("bpftrace", text.summary(lossy).split("\n")[2])

    def test_what_is_said_of_calls_that_were_not_counted(self):
        silent = result(700, missed=None)
        self.assertIn("does not say how many it counted", page.report(silent))
        self.assertIn("| not said |", text.report(silent))
        silent["calls"]["modes"][0]["question"] = "filtered"
        self.assertNotIn("does not say how many it counted", page.report(silent))
        self.assertIn("| none to count |", text.report(silent))

    def test_a_bound_is_a_line_across_its_chart(self):
        self.assertEqual(page.report(result(700)).count('path class="bound"'), 2)  # its own row, and bpftrace's

    def test_numbers_in_words(self):
        self.assertEqual([views.nanoseconds(v) for v in (0.812, 26.3, 724, 1370, 152375)], ["0.81 ns", "26 ns", "724 ns", "1.4 µs", "152 µs"])

    def test_what_is_foreign_is_escaped(self):
        made = page.report(result(700))
        self.assertIn("X &lt;1&gt;", made)
        self.assertIn("no &lt;x&gt; | here", made)
        self.assertNotIn("<x>", made)

    def test_scale(self):
        scale = svg.decades(0.1, 1000, str)
        self.assertEqual([round(scale.at(v)) for v in (0.01, 0.1, 10, 1000, 5000)], [0, 0, 50, 100, 100])


class Agreement(unittest.TestCase):
    def test_near_and_apart(self):
        self.assertEqual(agree.compare([result(700), result(800), result(750)])["apart"], [])
        found = agree.compare([result(700), result(1400)])
        self.assertEqual(found["apart"], ["bpftrace/count"])
        self.assertIn("Further apart: bpftrace/count", found["summary"])
        # 0.3 and 0.7 ns added to 1.4: 24 % apart; 0.3 and 0.75 are further, but within half a nanosecond; 0.3 and 0.9 are not.
        self.assertEqual([agree.compare([result(0.3), result(other)])["apart"] for other in (0.7, 0.75, 0.9)], [[], [], ["bpftrace/count"]])

    def test_overlapping_quartiles(self):
        apart, wide = [result(700), result(1400)], [result(700), result(1400)]
        wide[0]["calls"]["modes"][0]["added"]["q3"] = 1381.0 # the other's lower quartile is 1,380
        self.assertEqual([agree.compare(runs)["apart"] for runs in (apart, wide)], [["bpftrace/count"], []])

    def test_modes_that_miscounted_are_not_compared(self):
        found = agree.compare([result(700, missed=5), result(1400)])
        self.assertEqual((found["rows"], found["apart"]), ([], []))
        self.assertIn("miscounted in some run: bpftrace/count", found["summary"])

    def test_a_mode_that_one_run_lacks_is_named(self):
        short = result(700)
        short["calls"]["modes"] = []
        self.assertIn("Not in all runs: bpftrace/count", agree.compare([result(700), short])["summary"])


class Kernel(unittest.TestCase):
    def test_costs_of_the_virtual_machine(self):
        said = "getppid untraced: 339, at the end 339\nadded: fay entry count 34, by pid 118, return with duration 402; kprobe 809, function tracer 5480\nall fine\n"
        said += "added through BPF: fay entry count 160, return with duration 1366\nfunction_graph 1331\nperf record, tracepoint 1796\nSystemTap, entry count -3\n"
        said += "bpftrace, kfunc (fentry) count 228\nbpftrace, kfunc and kretfunc with duration 1537\n"
        section = vm.parse(said)
        self.assertEqual(section["untraced"], 339)
        self.assertEqual([(m["tool"], m["question"], m["added"]) for m in section["modes"]],
                         [("fay", "count", 34), ("fay", "group", 118), ("fay", "duration", 402), ("kprobe event", "events", 809), ("ftrace function", "events", 5480),
                          ("fay, BPF", "count", 160), ("fay, BPF", "duration", 1366), ("function_graph", "entry_return", 1331), ("perf record", "events", 1796), ("bpftrace", "count", 228),
                          ("bpftrace", "duration", 1537)])
        self.assertRaises(ValueError, vm.parse, "it did not boot")
        shown = [(heading, [views.kernel_name(m) for m in modes]) for heading, _, modes in views.kernel_by_question(section)]
        self.assertEqual(shown, [("Count", ["Fay", "Fay, through BPF", "bpftrace, kfunc (fentry) count"]), ("Group by", ["Fay"]),
                                 ("Latency", ["Fay", "Fay, through BPF", "bpftrace, kfunc and kretfunc with duration"]),
                                 ("Every call recorded", ["kprobe event", "perf record, tracepoint", "ftrace function"]), ("Entry and return", ["function_graph"])])


class Tables(unittest.TestCase):
    def test_documents_have_what_other_results_give(self):
        documented = set((ROOT / "docs" / "performance.md").read_text(encoding="utf-8").splitlines())
        for script, file in (("stream/stream_table.sh", "stream.json"), ("stream/stream_table.sh", "stream_early.json"), ("overhead/overhead_table.sh", "overhead.json"), ("cluster/cluster_overhead_table.sh", "cluster_overhead.json")):
            made = subprocess.run([str(ROOT / "bench" / script), str(ROOT / "bench" / "results" / file)], capture_output=True, text=True, check=True).stdout.splitlines()
            self.assertGreater(len(made), 5, file)
            self.assertEqual([line for line in made if line.startswith("|") and line not in documented], [], file)


class Peers(unittest.TestCase):
    def test_what_they_say_of_themselves(self):
        for name, about in peers.every().items():
            self.assertLessEqual(set(about["modes"]), {line.split()[0] for line in peers.said(name, "modes").splitlines()}, name)
        self.assertEqual((peers.kind("bpftrace"), peers.name("lttng", "flight"), peers.name("gdb", "other")), ("kernel", "LTTng-UST, flight recorder*", "gdb"))
        self.assertEqual((peers.kind("gone"), peers.name("gone", "count")), ("in_process", "gone"))

    def test_what_is_not_understood(self):
        self.assertRaises(ValueError, peers.parse, "made_up", "kind astral")
        self.assertRaises(ValueError, peers.parse, "made_up", "colour blue")


PEER = """#!/bin/sh
case $1 in
modes) printf '%s\\n' 'right count 100 bound_inlined' 'short count 100 -' 'absent count 100 -' 'failing count 100 -' ;;
check) [ "$2" != absent ] || { echo 'it is not there'; exit 1; } ;;
start) [ "$2" != failing ] || { echo 'it fell over' >&2; exit 1; } ;;
answer) [ "$2" = right ] && echo 300 || echo 200 ;;
esac
"""


class Onto(unittest.TestCase):
    def test_modes_that_are_measured_again(self):
        earlier, again = result(700, missed=75000), result(650)
        earlier["calls"]["modes"].append(dict(earlier["calls"]["modes"][0], mode="bpftrace/other"))
        again["skipped"] = [{"mode": "a/b", "question": "count", "reason": "gone"}]
        calls.put_into(earlier, again)
        self.assertEqual([(m["mode"], m["missed"], m.get("since")) for m in earlier["calls"]["modes"]], [("bpftrace/other", 75000, None), ("bpftrace/count", 0, "2026-01-02, commit abc, load 1.0")])
        self.assertEqual([entry["mode"] for entry in earlier["skipped"]], ["x/y", "a/b"])
        for made in (text.report(earlier), page.report(earlier)):
            self.assertIn("Measured later (2026-01-02, commit abc, load 1.0), beside the untraced call of that moment: bpftrace/count.", made)

    def test_sections_measured_onto_an_earlier_result(self):
        earlier, begun = dict(result(700), kernel={}, date="2026-01-01"), {"date": "2026-01-03", "commit": "def", "machine": dict(result(1)["machine"], load_at_start=9.0)}
        head = calls.head_of(earlier, begun, ["kernel"])
        self.assertEqual((head["date"], head["commit"], head["other_times"]), ("2026-01-01", "abc", {"kernel": "2026-01-03, commit def, load 9.0"}))
        self.assertIn("The section kernel was measured at another time (2026-01-03, commit def, load 9.0).", text.report(dict(head, kernel={})))
        head = calls.head_of(earlier, begun, ["calls", "attach"])
        self.assertEqual((head["date"], head["other_times"]), ("2026-01-03", {"kernel": "2026-01-01, commit abc, load 1.0"}))
        self.assertEqual(calls.head_of({}, begun, ["kernel"]), begun)


class Run(unittest.TestCase):
    def test_another_build_as_a_peer(self):
        environment = {"PEER_WORK": "", "PEER_BIN": "/this"}
        with tempfile.TemporaryDirectory() as environment["PEER_WORK"]:
            found = mode.peers_of(ROOT / "bench" / "peers", environment, {"before": "/that"})
            binaries = {peer.name: of["PEER_BIN"] for peer, of in found}
            said = subprocess.run([str(found[-1][0]), "about"], capture_output=True, text=True, check=True,
                                  env=dict(os.environ, PEER_CONTEXT=str(ROOT / "bench"), PEER_FUNCTION=""))
        self.assertEqual((binaries["fay"], binaries["before"]), ("/this", "/that"))
        self.assertIn("kind fay", said.stdout)

    def test_a_run_with_a_peer_of_its_own(self):
        binaries = Path(os.environ.get("BIN", ROOT / "build" / "bin"))
        if not (binaries / "fay_bench_target").exists():
            self.skipTest("fay_bench_target is not built")
        with tempfile.TemporaryDirectory() as folder:
            peer = Path(folder, "peers", "made_up")
            peer.parent.mkdir()
            peer.write_text(PEER, encoding="ascii")
            peer.chmod(peer.stat().st_mode | stat.S_IXUSR)
            section, skipped = calls.measure(binaries, peer.parent, 1, "0", 3)
        self.assertEqual([(m["mode"], m["missed"] / len(m["rounds"])) for m in section["modes"]], [("made_up/right", 0), ("made_up/short", 100)])
        self.assertEqual([(s["mode"], s["reason"]) for s in skipped], [("made_up/absent", "it is not there"), ("made_up/failing", "it failed while it was measured: it fell over")])
        self.assertEqual(section["bounds"]["bound_inlined"]["instructions"], 3)

    def test_a_budget_beside_the_truth(self):
        done = subprocess.run([str(ROOT / "bench" / "budget"), "--rounds", "1", "--calls", "3000000", "--cpu", "0"], capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split("|") for line in done.stdout.splitlines() if line.startswith("| ")][2:]
        self.assertEqual([row[1].strip() for row in rows], ["count", "histogram", "group by", "return", "duration"])
        for estimate in (row[3].split()[0] for row in rows):
            self.assertTrue(estimate == "-" or float(estimate) > 0, done.stdout)

    def test_commands_say_what_is_wrong(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"format": 1}, file)
            file.flush()
            done = subprocess.run([str(ROOT / "bench" / "agree"), file.name, file.name], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no benchmark result of format 2", done.stderr)


if __name__ == "__main__":
    unittest.main()
