"""The questions that tools are asked, so that only like is compared with like. A peer's mode names its question; the question says how the target calls."""

# question: (heading, what is asked, what the target does: its command before the numbers, and the function that is traced)
QUESTIONS = {
    "count": ("Count", "how often is it called?", "least work", "work"),
    "empty": ("Nothing", "a probe that does nothing", "least work", "work"),
    "empty_called": ("Nothing, called", "a probe that does nothing and is called, not inlined", "least work", "work"),
    "called": ("Count, called", "the same by a probe that is called, not inlined", "least work", "work"),
    "filtered": ("Filter that rejects", "a filter on an argument that never holds", "least work", "work"),
    "untraced_thread": ("A thread left out", "another thread is traced, this one pays", "least work", "work"),
    "histogram": ("Histogram", "how is an argument distributed?", "least work", "work"),
    "group": ("Group by", "how many calls for each argument / 1024?", "least work", "work"),
    "caller": ("By caller", "who calls it, and how often?", "least work", "work"),
    "stack": ("By stack", "which 8 functions were under way, and how often?", "nest 20", "nested"),
    "name": ("By thread name", "how many calls for each thread name?", "least work", "work"),
    "return": ("Return", "how often does it return?", "least work", "work"),
    "entry_return": ("Entry and return", "how often is it entered, how often left?", "least work", "work"),
    "entry_return_called": ("Entry and return, called", "the same by two probes that are called", "least work", "work"),
    "return_argument": ("Return, by argument", "how many calls that had this argument have returned?", "least work", "work"),
    "duration": ("Latency", "how long do calls take? (histogram)", "least work", "work"),
    "events": ("Every call recorded", "each call is written to a trace", "least work", "work"),
    "marker": ("Static marker", "a USDT marker in the program, counted", "least work", "work"),
    "marker_off": ("Marker, switched off", "a tracepoint in the program that nobody has enabled", "least work", "work"),
    "nested_20": ("20 calls deep", "count, of a function that calls itself 20 deep", "nest 20", "nested"),
    "entry_return_nested_20": ("20 calls deep, with returns", "entries and returns, 20 deep", "nest 20", "nested"),
    "threads_1": ("1 thread", "count, by a thread's own processor time", "threads 1", "work"),
    "threads_2": ("2 threads", "count, two threads at once", "threads 2", "work"),
    "threads_4": ("4 threads", "count, four threads at once", "threads 4", "work"),
    "threads_8": ("8 threads", "count, eight threads at once", "threads 8", "work"),
}

# Of these no call is to be counted: a tool that says nothing of calls has said what was asked.
UNCOUNTED = {"empty", "empty_called", "filtered", "untraced_thread", "marker_off"}
# In the kernel's section a system call is traced, and groups are by process.
ASKED_IN_KERNEL = {"count": "how often is it called?", "return": "how often does it return?", "group": "how many calls does each process make?", "duration": "how long do calls take? (sum)",
                   "events": "each call, or each return, is written to a trace", "entry_return": "entry and return of each call are written to a trace"}


def calls_made(question, calls, slices):
    """How many calls of the traced function the target makes for one measurement."""
    kind, _, number = QUESTIONS[question][2].partition(" ")
    if kind == "nest":
        depth = int(number)
        return (calls // depth + 1) * depth * slices
    return calls * slices * (int(number) if kind == "threads" else 1)
