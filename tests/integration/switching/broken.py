# SPDX-License-Identifier: MIT
# broken.py FROM TO SEED: the program with unwind tables of which a few bytes, or all, are others.
import random
import subprocess
import sys

source, target, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
listed = subprocess.run(["readelf", "-SW", source], stdout=subprocess.PIPE, check=True, text=True)
parts = []
for line in listed.stdout.splitlines():
    words = line.replace("[ ", "[").split()
    if len(words) > 5 and words[1] in (".eh_frame", ".eh_frame_hdr"):
        parts.append((int(words[4], 16), int(words[5], 16)))
chosen = random.Random(seed)
with open(source, "rb") as file:
    data = bytearray(file.read())
at, size = parts[seed % len(parts)]
if seed % 10 == 9:
    data[at : at + size] = bytes(chosen.randrange(256) for _ in range(size))
else:
    for _ in range(1 << seed % 7):
        place = at + chosen.randrange(size)
        data[place] = chosen.choice([0, 0xFF, 0x80, 0x7F, chosen.randrange(256)])
with open(target, "wb") as file:
    file.write(data)
