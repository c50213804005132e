#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""inputs.py KERNEL FILE   what a kernel is measured with, always the same"""
import random
import struct
import sys

kernel, path = sys.argv[1], sys.argv[2]
number = random.Random(26)


def text():
    """Characters of one to four bytes."""
    alphabet = 'abcdefghijklmnop qrstuvwxyz  éüßøñ漢字かな😀'
    return ''.join(number.choice(alphabet) for _ in range(40000)).encode()


def dates():
    words = (f'{number.randrange(1900, 2100)}-{number.randrange(10, 13)}-{number.randrange(10, 29)}'
             if number.randrange(3) else f'{number.randrange(1 << 20)}x-y' for _ in range(6000))
    return ' '.join(words).encode()


def records():
    """Objects of four fields, some with escapes."""
    return '\n'.join(f'{{"name":"n{i}","path":"/a\\"b/{number.randrange(1000)}",'
                     f'"size":{number.randrange(100000)},"age":{i % 90}}}'
                     for i in range(1000)).encode()


def lz4():
    """Sequences of literals and matches, as of text that is compressed to a third."""
    out, size = bytearray(), 0
    for _ in range(4000):
        literals, match = number.randrange(1, 15), number.randrange(4, 19)
        out.append(literals << 4 | match - 4)
        out += number.randbytes(literals)
        size += literals
        out += struct.pack('<H', number.randrange(1, min(size, 60000) + 1))
        size += match
    return bytes(out)


def packets():
    out = bytearray()
    for _ in range(1000):
        body = number.randbytes(number.randrange(60, 120))
        tag = b'\x81\x00\x00\x07' if number.randrange(4) == 0 else b''
        kind = number.choice((b'\x08\x00', b'\x08\x00', b'\x08\x06', b'\x86\xdd'))
        ip = bytes([0x45, 0]) + number.randbytes(7) + bytes([number.choice(b'\x01\x06\x11\x11')])
        port = number.choice((53, 443, 5353)).to_bytes(2, 'big')
        frame = number.randbytes(12) + tag + kind + ip + number.randbytes(12) + port + body
        out += struct.pack('>H', len(frame)) + frame
    return bytes(out)


make = {'utf8': text, 'dfa': dates, 'json': records, 'lz4': lz4, 'packet': packets,
        'sort': lambda: number.randbytes(16384)}
with open(path, 'wb') as file:
    file.write(make.get(kernel, lambda: number.randbytes(65536))())
