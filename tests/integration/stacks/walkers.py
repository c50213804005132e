"""Switches between coroutines whose stacks are copied, until its input ends, deep in Python's own calls and in those of sorted(). Says whether all was right.
With the argument `later` the module that copies is loaded only when a line comes."""
import select, sys

def ended():
    return select.select([sys.stdin], [], [], 0)[0] and not sys.stdin.readline()

def run(greenlet):
    def worker(n):
        def deep(k, v):
            if k == 0:
                return greenlet.getcurrent().parent.switch(v)
            return deep(k - 1, v) + 1
        while True:
            if n % 3:
                sorted([3, 1, 2], key=lambda x: deep(n % 20, x))
            else:
                deep(n, n)
    wrong = 0
    workers = [greenlet.greenlet(worker) for _ in range(12)]
    for i, w in enumerate(workers):
        w.switch(i)
    for _ in range(20):
        for w in workers:
            wrong += not isinstance(w.switch(1), int)
    open('/proc/self/stat').read()
    return wrong

def main():
    wrong = 0
    print('ready', flush=True)
    if sys.argv[1:] == ['later']:
        sys.stdin.readline()
    import greenlet
    print('loaded', flush=True)
    while not ended():
        wrong += run(greenlet)
    print('wrong', wrong)

main()
