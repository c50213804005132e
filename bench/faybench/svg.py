"""Inline SVG: dots on a logarithmic scale, bars on a plain one, and lines. Colours are the page's variables, so that light and dark need one drawing."""
import html
import math


class Scale:
    """Of a chart's rows: `ticks` are its lines, each [value, label]; logarithmic from its first to its last, or plain from 0."""

    def __init__(self, ticks, logarithmic):
        self.ticks, self.logarithmic = ticks, logarithmic
        self.low, self.high = ticks[0][0], ticks[-1][0]

    def at(self, value):
        """0 to 100"""
        if self.logarithmic:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return 100 * min(1.0, max(0.0, share))


def decades(low, high, label):
    """A logarithmic scale with a line at each power of ten."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return Scale([(10.0 ** n, label(10.0 ** n)) for n in range(first, last + 1)], True)


def mark(scale, spread, colour, said, bound=None):
    """A dot at the median, or a bar to it where the scale begins at nothing; a thin line from quartile to quartile, and a dashed one across at `bound`."""
    middle, low, high = (scale.at(spread[k]) for k in ("median", "q1", "q3"))
    grid = "".join(f'<path d="M{scale.at(value):.2f} 0V16" stroke="var(--line)" vector-effect="non-scaling-stroke"/>' for value, _ in scale.ticks)
    dashed = f'<path class="bound" d="M{scale.at(bound):.2f} 0V16" vector-effect="non-scaling-stroke"/>' if bound is not None else ""
    quartiles = f'<path d="M{low:.2f} 8H{high:.2f}" stroke="var(--ink)" stroke-width="1.5" vector-effect="non-scaling-stroke"/>'
    # a line without length is round, however the picture is stretched
    dot = f'<path class="dot" d="M{middle:.2f} 8h.001" stroke="var(--{colour})" vector-effect="non-scaling-stroke"/>'
    bar = f'<rect x="0" y="3" width="{max(middle, 0.6):.2f}" height="10" fill="var(--{colour})"/>'
    drawn = dashed + quartiles + dot if scale.logarithmic else bar + quartiles + dashed
    return f'<svg viewBox="0 0 100 16" preserveAspectRatio="none" role="img" aria-label="{html.escape(said, quote=True)}">{grid}{drawn}</svg>'


def ticks(scale, unit=""):
    """The scale below a chart's rows, and what it is a scale of."""
    labels = "".join(f'<span style="left:{scale.at(value):.2f}%">{html.escape(label)}</span>' for value, label in scale.ticks)
    return f'<div class="ticks"><div>{labels}</div><p class="unit">{html.escape(unit)}</p></div>'


WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 400, 250, 52, 84, 12, 36


def lines(scale, columns, series, axis):
    """Lines over named columns: series are [(name, colour, values)]; the last value of each carries its name."""
    across = WIDTH - LEFT - RIGHT
    x = [LEFT + across * i / max(1, len(columns) - 1) for i in range(len(columns))]

    def y(value):
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - scale.at(value) / 100)

    parts = [f'<path d="M{LEFT} {y(v):.1f}H{WIDTH - RIGHT}" stroke="var(--line)"/><text x="{LEFT - 6}" y="{y(v) + 4:.1f}" text-anchor="end">{html.escape(label)}</text>' for v, label in scale.ticks]
    parts += [f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{html.escape(str(name))}</text>' for at, name in zip(x, columns)]
    parts.append(f'<text x="{LEFT + across / 2:.1f}" y="{HEIGHT - 3}" text-anchor="middle">{html.escape(axis)}</text>')
    taken = []
    for name, colour, values in sorted(series, key=lambda s: y(s[2][-1])):
        points = " ".join(f"{at:.1f},{y(v):.1f}" for at, v in zip(x, values))
        beside = y(values[-1]) + 4
        beside = max([beside] + [t + 13 for t in taken if abs(t - beside) < 13])
        taken.append(beside)
        parts.append(f'<polyline points="{points}" fill="none" stroke="var(--{colour})" stroke-width="2"/>')
        parts += [f'<circle cx="{at:.1f}" cy="{y(v):.1f}" r="3" fill="var(--{colour})"/>' for at, v in zip(x, values)]
        parts.append(f'<text x="{WIDTH - RIGHT + 8}" y="{beside:.1f}" class="series">{html.escape(name)}</text>')
    said = "; ".join(f"{name}: " + ", ".join(f"{c}: {v:.2f}" for c, v in zip(columns, values)) for name, _, values in series)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(said, quote=True)}">{"".join(parts)}</svg>'
