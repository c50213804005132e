#!/usr/bin/env bash
# The tables of docs/performance.md from what bench/extensions/extensions.sh wrote:
# extensions_table.sh [FILE.json]
set -euo pipefail
python3 - "${1:-bench/results/extensions.json}" <<'END'
import json
import math
import sys

rows = [json.loads(line) for line in open(sys.argv[1])]
kernels = list(dict.fromkeys(r['kernel'] for r in rows if 'kernel' in r))
builds = list(dict.fromkeys(r['build'] for r in rows if 'kernel' in r))
of = {(r['kernel'], r['build']): r for r in rows if 'kernel' in r}


def cell(kernel, build):
    r = of.get((kernel, build))
    return f'{r["of_base"]:.2f} [{r["of_base_q1"]:.2f}, {r["of_base_q3"]:.2f}]' if r else 'refused'


def mean(build):
    have = [of[k, build]['of_base'] for k in kernels if (k, build) in of]
    return f'{math.exp(sum(map(math.log, have)) / len(have)):.2f}' + (
        '' if len(have) == len(kernels) else f' of {len(have)}')


others = [b for b in builds if b != 'native']
print('| kernel | native, µs |', ' | '.join(others), '|')
print('| --- | --- |', ' | '.join('---' for _ in others), '|')
for k in kernels:
    cells = ' | '.join(cell(k, b) for b in others)
    print(f'| {k} | {of[k, "native"]["ns"] / 1000:.1f} | {cells} |')
print('| geometric mean | |', ' | '.join(map(mean, others)), '|')
for r in rows:
    if 'image' in r:
        print('\n| | median | quartiles |\n| --- | --- | --- |')
        for name, unit in (('direct', 'ns'), ('above', 'ns'), ('load', 'us'),
                           ('process', 'us')):
            key = f'{name}_{unit}'
            print(f'| {key} | {r[key]:.2f} | {r[key + "_q1"]:.2f}, {r[key + "_q3"]:.2f} |')
        print(f'\nan instance: {r["instance_bytes"]:.0f} bytes, {r["local_bytes"]} of them its own')
END
