# SPDX-License-Identifier: MIT
# A notebook of cells, as editors and Jupytext read it: what `du` asks malloc for. Runs as a program,
# too.

# %% Where its calls go, by size
import fay

command = ['du', '-s', '/usr/share/doc']
sizes = fay.trace('''from f in cluster.Function("libc!malloc") group f by f.Arg(0)/64*64 into g
                     orderby g.Count() descending
                     select new { bytes = g.Key, calls = g.Count() }''', command=command)

# %% As a table: pandas takes the rows as they are
try:
    import pandas
    print(pandas.DataFrame(sizes).head(10).to_string(index=False))
except ImportError:
    for row in sizes[:10]:
        print(f'{row["bytes"]:>8} {row["calls"]:>8}')

# %% How long calls take, by function: a histogram is a dict
times, = fay.trace('cluster.Return("libc!malloc").Histogram(r => r.Duration)', command=command)
most = max(times['Histogram'].values())
for bucket, calls in times['Histogram'].items():
    print(f'{bucket:>16} {calls:>8} {"#" * round(40 * calls / most)}')
