#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_module.py TARGET IMAGE EXTENSIONS   the Python module `fay` as its users see it"""
import array
import ctypes
import os
import subprocess
import sys
import threading
import time
import unittest
import zlib

import fay

target, image, extensions = sys.argv[1:4]
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


class Extension(unittest.TestCase):
    def host(self):
        return fay.Host(f'{extensions}/packets.host')

    def load(self, name):
        return self.host().load(f'{extensions}/{name}.fay')

    def test_call(self):
        sums = self.load('checksum')
        for data in (b'', b'Wikipedia', bytes(range(256)) * 256):
            for given in (data, bytearray(data), memoryview(data)):
                self.assertEqual(sums.call('adler32', given, None), zlib.adler32(data))
        self.assertEqual(sums.call('adler32', array.array('I', [1, 2]), None),
                         zlib.adler32(array.array('I', [1, 2]).tobytes()))
        self.assertGreater(sums.limits('adler32').instructions, 10)

    def test_instance(self):
        classes = self.load('classes')
        one, other = classes.instance(), classes.instance()
        for _ in range(3):
            classes.call('classes', b'ab1 ', one)
        self.assertEqual(one.bytes, b''.join(n.to_bytes(8, 'little') for n in (3, 6, 3, 0)))
        self.assertEqual(other.bytes, bytes(32))
        self.assertEqual(classes.call('classes', b'ab', None), 2)

    def test_refused(self):
        sums = self.load('checksum')
        for arguments, what in ((((b'', None, 1)), '2 arguments are wanted: packet, state'),
                                ((7, None), 'packet: a buffer'),
                                ((bytes(65537), None), 'packet: 65536 bytes at most'),
                                ((b'', b''), 'state: an instance'),
                                ((b'', self.load('classes').instance()), 'state: an instance')):
            with self.assertRaisesRegex(fay.Usage, what):
                sums.call('adler32', *arguments)
        with self.assertRaisesRegex(fay.Usage, "no entry 'adler'"):
            sums.call('adler', b'', None)
        with self.assertRaisesRegex(fay.Usage, "no entry ''"):
            sums.limits('')
        with self.assertRaisesRegex(fay.Refused, '^IMG-ELF'):
            self.host().load(b'no image')
        with self.assertRaisesRegex(fay.Refused, '^IMG-TABLE'):
            self.host().load(f'{extensions}/checksum.so')
        with self.assertRaisesRegex(fay.Usage, '^1:1: '):
            fay.Host('nonsense')
        with self.assertRaisesRegex(fay.Usage, "no helper 'log'"):
            self.host().bind('log', 1)

    def test_written(self):
        host = fay.Host(f'{extensions}/twice.host')
        calls = []
        note = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)(lambda n: calls.append(n) or 1)
        host.bind('note', note)
        twice = host.load(f'{extensions}/twice.fay')
        data = array.array('Q', range(8))
        self.assertEqual(twice.call('twice', data, -5, bytes(64)), -10)
        self.assertEqual(twice.call('twice', data, 10, b'\1'), 21)
        self.assertEqual(list(data), [4 * n for n in range(8)])
        self.assertEqual(calls, [64, 1])
        ones = bytearray(b'\1' * 80)  # copied to where it is aligned
        for offset in range(16):
            self.assertEqual(twice.call('twice', data, 0, memoryview(ones)[offset:offset + 64]), 1)
        for arguments, what in (((bytes(64), 0, b''), 'words: it is written'),
                                ((bytearray(63), 0, b''), 'words: 64 bytes are wanted, not 63'),
                                ((data, 11, b''), 'n: a number from -10 to 10'),
                                ((data, 'a', b''), 'n: a number'),
                                ((memoryview(bytearray(72))[1:65], 0, b''), 'multiple of 8'),
                                ((data, 0, bytes(65)), 'again: 64 bytes at most')):
            with self.assertRaisesRegex(fay.Usage, what):
                twice.call('twice', *arguments)

    def test_overlap(self):
        host = fay.Host(f'{extensions}/again.host')
        nested = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)(lambda n: 0)
        host.bind('nested', nested)
        again = host.load(f'{extensions}/again.fay')
        both = bytearray(100)
        again.call('again', bytes(range(50)), memoryview(both)[50:], None)
        self.assertEqual(both, bytes(50) + bytes(range(50)))
        for begin, end in ((0, 51), (49, 50), (50, 100), (99, 100)):
            with self.assertRaisesRegex(fay.Usage, "copy: overlaps the region 'text'"):
                again.call('again', memoryview(both)[begin:end], memoryview(both)[49:], None)

    def test_threads(self):
        classes = self.load('classes')
        instance = classes.instance()
        busy, ended = [], []

        def often():
            for _ in range(2000):
                try:
                    classes.call('classes', b'a' * 1000, instance)
                    ended.append(1)
                except fay.Usage as error:
                    busy.append(str(error))

        threads = [threading.Thread(target=often) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(int.from_bytes(instance.bytes[8:16], 'little'), 1000 * len(ended))
        self.assertEqual(set(busy) - {'the instance is in a call'}, set())


unittest.main(argv=sys.argv[:1])
