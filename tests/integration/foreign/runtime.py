# SPDX-License-Identifier: MIT
"""CPython, with greenlets where there are, and PyPy:
exceptions, generators, switched stacks."""
import os, sys
try:
    import greenlet
except ImportError:
    greenlet = None

def fails(n):
    if n % 2:
        raise ValueError(n)
    return n

def caught(n):
    try:
        return fails(n)
    except ValueError as e:
        return -e.args[0]

def switched(n):
    if not greenlet:
        return n
    def body(x):
        main = greenlet.getcurrent().parent
        return sorted([3, 1, 2], key=lambda k: main.switch(k) or k)[0] + x
    g, total, value = greenlet.greenlet(body), 0, None
    value = g.switch(n)
    while not g.dead:
        total += value
        value = g.switch(0)
    return total + value

def turn():
    total = sum(n * caught(n) for n in range(100))
    return total + sum(switched(n) for n in range(50)) + len(repr([str(n) for n in range(500)]))

def main():
    print("ready", flush=True)
    sys.stdin.readline()
    total, n = turn(), 1
    while not os.path.exists(sys.argv[2]) if sys.argv[1:2] == ["loop"] else n < 20:
        if turn() != total:
            print("wrong", flush=True)
            os._exit(70)
        n += 1
    print("sum", total)

main()
