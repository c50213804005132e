"""The traced program: one line in, one line out."""
import subprocess

from . import questions

SLICES = 150  # runs of which the quickest counts


class Target:
    def __init__(self, command, environment=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        bufsize=1, env=environment)
        self.cycles_per_ns = 0.0  # of the time stamp counter

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        while True:
            answer = self.process.stdout.readline()
            if not answer:
                raise RuntimeError("the target ended")
            fields = answer.split()
            if fields and fields[0] in (line.split()[1], "nested", "threads"):  # a tracer may write between
                break
        nanoseconds = float(fields[1])
        if len(fields) > 2 and nanoseconds > 0 and float(fields[2]) > 0:
            self.cycles_per_ns = float(fields[2]) / nanoseconds
        return nanoseconds

    def least(self, function, calls, slices=SLICES):
        """Nanoseconds a call, of the quickest slice."""
        return self.ask(f"least {function} {calls} {slices}")

    def answer(self, question, calls, slices=SLICES):
        """Nanoseconds a call in the way that a question asks for."""
        return self.ask(f"{questions.QUESTIONS[question][2]} {calls} {slices}")

    def instructions(self, function, calls):
        """Instructions that a call and its loop execute in user mode."""
        return self.ask(f"step {function} {calls}")

    def end(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
