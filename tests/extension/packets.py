"""packets.py FUNCTION CAPTURE OUT: what examples/hosts/packets says of each packet, found another
way: packets are cut into parts, and whatever is not there ends the packet's class as 0."""
import collections, struct, sys


class Missing(Exception):
    pass


class Bytes:
    def __init__(self, data):
        self.data = data

    def take(self, count):
        if count > len(self.data):
            raise Missing
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def number(self, count):
        return int.from_bytes(self.take(count), "big")


def link(packet):
    packet.take(12)
    kind, tags = packet.number(2), []
    while kind in (0x8100, 0x88a8) and len(tags) < 4:
        tags.append(packet.number(2) & 4095)
        kind = packet.number(2)
    return kind, tags


def network(packet):
    """The transport's protocol, and the packet from there on, which may be nothing."""
    kind, _ = link(packet)
    if kind == 0x800:
        header = packet.take(20)
        if header[0] >> 4 != 4 or header[0] & 15 < 5 or \
                struct.unpack(">H", header[6:8])[0] & 0x1fff:
            raise Missing
        packet.data = packet.data[(header[0] & 15) * 4 - 20:]
        return header[9]
    if kind != 0x86dd:
        raise Missing
    header = packet.take(40)
    if header[0] >> 4 != 6:
        raise Missing
    protocol = header[6]
    for _ in range(8):
        if protocol not in (0, 43, 44, 51, 60):
            break
        more = packet.data[:8]
        if len(more) < 8 or protocol == 44 and struct.unpack(">H", more[2:4])[0] & 0xfff8:
            raise Missing
        size = {44: 8, 51: (more[1] + 2) * 4}.get(protocol, (more[1] + 1) * 8)
        protocol, packet.data = more[0], packet.data[size:]
    return protocol


def port(packet, wanted):
    if network(packet) != wanted:
        raise Missing
    packet.take(2)
    return packet.number(2)


def dns(packet):
    if network(packet) != 17:
        raise Missing
    header, message = packet.take(8), packet.take(12)
    if header[2:4] != b"\0\x35" or message[2] & 0x80 or message[4:6] == b"\0\0":
        raise Missing
    for _ in range(128):
        size = packet.number(1)
        if size >= 64:
            raise Missing
        if not size:
            return packet.number(2)
        packet.data = packet.data[size:]
    raise Missing


def tls(packet):
    if network(packet) != 6:
        raise Missing
    header = packet.take(20)
    packet.data = header[:0] + (header + packet.data)[(header[12] >> 4) * 4:]
    start = packet.take(43)
    if start[:2] != b"\x16\3" or start[5] != 1:
        raise Missing
    try:
        for width in 1, 2, 1:
            size = packet.number(width)
            packet.data = packet.data[size:]
        packet.data = packet.data[2:]
        for _ in range(64):
            if len(packet.data) < 9:
                break
            kind, size = struct.unpack(">2H", packet.data[:4])
            if kind == 0 and packet.data[6] == 0:
                name = packet.data[9:9 + struct.unpack(">H", packet.data[7:9])[0]]
                whole = len(name) == struct.unpack(">H", packet.data[7:9])[0]
                return 2 if whole and (b"." + name).endswith(b".example.org") else 1
            packet.data = packet.data[4 + size:]
    except Missing:
        pass
    return 1


heard = collections.Counter()
rooms = {}


def talkers(packet):
    kind, _ = link(packet)
    if kind != 0x800:
        raise Missing
    source = int.from_bytes(packet.take(20)[12:16], "big")
    for i in range(4):
        room = ((source * 0x9e3779b1 % 2 ** 32 >> 20) + i) % 4096
        if rooms.setdefault(room, source) == source:
            heard[source] += 1
            return int(heard[source] > 100)
    raise Missing


def vlan(packet):
    _, tags = link(packet)
    return tags[0] + 1 if tags else 0


functions = {"tcp_port": lambda packet: port(packet, 6), "udp_port": lambda packet: port(packet, 17),
             "vlan": vlan, "dns": dns, "tls": tls, "talkers": talkers}
capture = open(sys.argv[2], "rb").read()
packets, lengths, at = collections.Counter(), collections.Counter(), 24
with open(sys.argv[3], "wb") as out:
    out.write(capture[:24])
    while at < len(capture):
        _, _, size, length = struct.unpack("<4I", capture[at:at + 16])
        try:
            number = functions[sys.argv[1]](Bytes(capture[at + 16:at + 16 + size]))
        except Missing:
            number = 0
        packets[number] += 1
        lengths[number] += length
        if number:
            out.write(capture[at:at + 16 + size])
        at += 16 + size
for number in packets:
    print(f"{number}: {packets[number]} packets, {lengths[number]} bytes")
