#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_module.py TARGET IMAGE   the Python module `fay` as its users see it"""
import os
import subprocess
import sys
import threading
import time
import unittest

import fay

target, image = sys.argv[1:3]
COUNT = 'cluster.Function("tracer_target!add_up").Count()'


class Verify(unittest.TestCase):
    def test_accepted(self):
        with open(image, 'rb') as file:
            for given in (image, file.read()):
                verdict = fay.verify(given)
                self.assertTrue(verdict.accepted)
                self.assertIsNone(verdict.rejection)
                self.assertGreater(verdict.probes[0].instructions, 0)
                self.assertEqual(verdict.probes[0].kind, 'entry')

    def test_refused(self):
        verdict = fay.verify(b'no image')
        self.assertEqual((verdict.accepted, verdict.outcome), (False, 'malformed'))
        self.assertEqual(verdict.rejection.rule, 'IMG-ELF')
        self.assertTrue(verdict.rejection.what)
        self.assertEqual(verdict.probes, [])

    def test_policy(self):
        with self.assertRaises(fay.Usage):
            fay.verify(image, policy='/no/such/policy')
        with self.assertRaises(FileNotFoundError):
            fay.verify('/no/such/image')


class Trace(unittest.TestCase):
    def test_count(self):
        self.assertEqual(fay.trace(COUNT, command=[target, '4000']), [{'Count': 4000}])

    def test_values(self):
        rows = fay.trace("""from f in cluster.Function("tracer_target!add_up")
            group f by new { f.kind, f.word } into g orderby g.Key.kind
            select new { kind = g.Key.kind, word = g.Key.word, n = g.Count(),
                         mean = g.Average(f => f.kind) }""", command=[target, '8'])
        even = 'even, and longer than fifteen bytes'
        self.assertEqual([list(row.values()) for row in rows],
                         [[0, even, 2, 0.0], [1, 'odd', 2, 1.0], [2, even, 2, 2.0],
                          [3, 'odd', 2, 3.0]])
        self.assertIs(type(rows[0]['mean']), float)

    def test_lists(self):
        histogram, = fay.trace('cluster.Function("tracer_target!add_up").Histogram(f => f.kind)',
                               command=[target, '8'])
        self.assertEqual(histogram['Histogram'], {'<= 0': 2, '1': 2, '2..3': 4})
        stack, = fay.trace("""from f in cluster.Function("tracer_target!add_up")
            group f by f.Stack(1) into g select new { s = g.Key, n = g.Count() }""",
                           command=[target, '8'])
        self.assertEqual(stack, {'s': ['tracer_target!add_up'], 'n': 8})

    def test_events(self):
        before = time.time_ns()
        rows = fay.trace("""from f in cluster.Function("tracer_target!add_up")
            select new { f.time, two = f.kind == 2 }""", command=[target, '8'])
        self.assertEqual([row['two'] for row in rows], [False, False, True, False] * 2)
        self.assertTrue(all(before - 10**9 < row['time'] < time.time_ns() + 10**9
                            for row in rows))

    def test_live(self):
        process = subprocess.Popen([target])
        try:
            time.sleep(0.2)
            with fay.Tracer(COUNT, pid=process.pid, every=0.05) as tracer:
                self.assertGreaterEqual(os.fstat(tracer.fileno()).st_mode, 0)
                threading.Timer(0.5, tracer.stop).start()
                rows = list(tracer)
                self.assertEqual(tracer.over, 'interrupted')
                self.assertEqual(tracer.statistics.lost_full, 0)
            self.assertGreater(rows[-1].picture, 2)
            self.assertTrue(rows[-1].final)
            self.assertGreater(rows[-1]['Count'], rows[0]['Count'])
            self.assertTrue(any('tracing 1 function' in text for text in tracer.messages))
            self.assertIsNone(process.poll())
            with self.assertRaises(fay.Usage):
                tracer.step()
        finally:
            process.kill()
            process.wait()

    def test_command(self):
        with fay.Tracer(COUNT, command=[target]) as tracer:
            tracer.step()
            process = tracer.process
        os.kill(process, 9)
        self.assertEqual(os.waitpid(process, 0)[0], process)

    def test_refused(self):
        for kind, options in ((fay.Usage, {}), (fay.Refused, {'comm': 'no such name'}),
                              (fay.Usage, {'command': ['/no/such/program']}),
                              (fay.Usage, {'command': []}), (fay.Usage, {'budget': 2.0})):
            with self.assertRaises(kind) as raised:
                fay.trace(COUNT, **options)
            self.assertIsInstance(raised.exception, fay.Error)
            self.assertTrue(str(raised.exception))
        with self.assertRaisesRegex(fay.Usage, 'Nonsense'):
            fay.trace('cluster.Nonsense()', command=[target, '8'])


unittest.main(argv=sys.argv[:1])
