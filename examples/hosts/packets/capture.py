#!/usr/bin/python3
"""capture.py [PACKETS [SEED]] >FILE: a capture of made-up packets, of the kinds that the filters
tell apart, some of them damaged or cut off."""
import random, struct, sys

packets = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
chance = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
names = ["example.org", "www.example.org", "badexample.org", "example.com", "a.b.example.net"]


def question():
    labels = b"".join(bytes([len(part)]) + part.encode() for part in
                      chance.choice(names).split(".")) + b"\0"
    return struct.pack(">6H", 7, chance.choice([0x100, 0x100, 0x8180]), 1, 0, 0, 0) + labels + \
        struct.pack(">2H", chance.choice([1, 28, 15, 65]), 1)


def hello():
    name = chance.choice(names).encode()
    server = struct.pack(">HBH", len(name) + 3, 0, len(name)) + name
    kinds = [(0, server), (10, bytes(4)), (43, bytes(chance.randrange(9))), (16, bytes(14))]
    chance.shuffle(kinds)
    if chance.random() < .2:
        kinds = [kind for kind in kinds if kind[0]]
    more = b"".join(struct.pack(">2H", kind, len(body)) + body for kind, body in kinds)
    ciphers = bytes(2 * chance.randrange(1, 20))
    body = b"\3\3" + bytes(32) + b"\x20" + bytes(32) + struct.pack(">H", len(ciphers)) + ciphers + \
        b"\1\0" + struct.pack(">H", len(more)) + more
    body = b"\1" + len(body).to_bytes(3, "big") + body
    return b"\x16\3\1" + struct.pack(">H", len(body)) + body


def segment(source, target, data):
    options = bytes(4 * chance.randrange(3))
    return struct.pack(">2H2I2B3H", source, target, 1, 1, (20 + len(options)) // 4 << 4, 0x18, 512,
                       0, 0) + options + data


def datagram(source, target, data):
    return struct.pack(">4H", source, target, 8 + len(data), 0) + data


def in_ip(protocol, data):
    if chance.random() < .3: # IPv6, now and then with hop-by-hop options
        more = bytes([protocol, 0]) + bytes(6) if chance.random() < .3 else b""
        return 0x86dd, struct.pack(">IHBB", 6 << 28, len(more + data), 0 if more else protocol,
                                   64) + bytes(15) + b"\1" + bytes(15) + b"\2" + more + data
    options = bytes([1]) * (4 * chance.choice([0, 0, 0, 1, 10]))
    source = 10 << 24 | min(int(chance.expovariate(.3)), 200)
    return 0x800, struct.pack(">2B3H2BH2I", 0x45 + len(options) // 4, 0,
                              20 + len(options + data), 0, 0x2001 if chance.random() < .05 else 0,
                              64, protocol, 0, source, 10 << 24 | 1) + options + data


def frame():
    kind = chance.random()
    if kind < .25:
        kind, data = in_ip(17, datagram(chance.randrange(1024, 65536), 53, question()))
    elif kind < .5:
        kind, data = in_ip(6, segment(chance.randrange(1024, 65536), 443, hello()))
    elif kind < .7:
        kind, data = in_ip(17, datagram(123, chance.choice([123, 514, 5353]), bytes(48)))
    elif kind < .95:
        kind, data = in_ip(6, segment(443, chance.choice([22, 80, 8080]), bytes(
            chance.randrange(1400))))
    else:
        kind, data = 0x806, bytes(28)
    tags = b"".join(struct.pack(">2H", chance.choice([0x8100, 0x88a8]), chance.randrange(1, 5))
                    for _ in range(chance.choice([0, 0, 0, 1, 2])))
    return bytes(12) + tags + struct.pack(">H", kind) + data


sys.stdout.buffer.write(struct.pack("<I2H4I", 0xa1b2c3d4, 2, 4, 0, 0, 262144, 1))
for number in range(packets):
    whole = bytearray(frame())
    if chance.random() < .1:
        whole[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
    cut = whole[:chance.randrange(len(whole) + 1)] if chance.random() < .1 else whole
    sys.stdout.buffer.write(struct.pack("<4I", number, 0, len(cut), len(whole)) + cut)
