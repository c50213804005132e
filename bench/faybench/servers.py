"""Throughput of Debian's redis, nginx, PostgreSQL and MariaDB while one hot function of each is counted, by each tracer that can watch it, interleaved with the same load untraced."""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import watch
from .statistic import spread

PEERS = ("fay", "bpf", "bpftrace")
SECONDS = 2.0
USER = "postgres"


class Server:
    """One server in a folder of its own. begin() is serve(), then load(); they raise RuntimeError where it cannot run here. done() counts what it has done so far."""

    name = program = function = unit = ""
    needs = ()

    def __init__(self, folder):
        self.folder, self.processes = folder, []

    def begin(self):
        self.serve()
        self.load()

    def spawn(self, command, as_user=False, **options):
        if as_user:
            command = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *command]
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options}
        process = subprocess.Popen(command, start_new_session=True, **options)
        self.processes.append(process)
        return process

    def end(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def wait_for(self, works, what):
        for _ in range(300):
            if works():
                return
            time.sleep(0.1)
        raise RuntimeError(f"{self.name}: {what} did not come up")

    def pids(self):
        return [self.processes[0].pid]


def used(pids):
    """Seconds in user mode, and of all processor time: proc(5), clock_getcpuclockid(3)."""
    ticks = sum(int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[11]) for pid in pids)
    return ticks / os.sysconf("SC_CLK_TCK"), sum(time.clock_gettime(~pid << 3 | 2) for pid in pids)


def per_operation(server, pids, seconds):
    """Of these, for one."""
    first, begun = server.done(), used(pids)
    time.sleep(seconds)
    last, ended = server.done(), used(pids)
    if last <= first:
        raise RuntimeError(f"{server.name} does nothing")
    return [(end - begin) / (last - first) for begin, end in zip(begun, ended)]


def output(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Redis(Server):
    name, program, function, unit = "redis", "/usr/bin/redis-server", "dictFind", "commands"
    needs = ("redis-server", "redis-benchmark", "redis-cli")

    def serve(self):
        self.port = str(free_port())
        self.spawn([self.program, "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", self.folder])
        self.wait_for(lambda: "PONG" in output(["redis-cli", "-p", self.port, "ping"]), "the server")

    def load(self):
        self.spawn(["redis-benchmark", "-p", self.port, "-c", "4", "-P", "8", "-l", "-t", "get", "-q"])

    def done(self):
        return int(next(line for line in output(["redis-cli", "-p", self.port, "info", "stats"]).split("\n") if line.startswith("total_commands_processed")).split(":")[1])


class Nginx(Server):
    name, program, function, unit = "nginx", "/usr/sbin/nginx", "ngx_palloc", "requests"
    needs = ("nginx", "ab")

    def serve(self):
        port = free_port()
        self.address = f"http://127.0.0.1:{port}/"
        Path(self.folder, "index.html").write_text("x" * 600, encoding="ascii")
        Path(self.folder, "nginx.conf").write_text(
            f"daemon off; master_process off; pid {self.folder}/pid; error_log {self.folder}/error;\nevents {{}}\nhttp {{ access_log off; keepalive_requests 100000000;\n"
            f"client_body_temp_path {self.folder}/a; proxy_temp_path {self.folder}/b; fastcgi_temp_path {self.folder}/c; uwsgi_temp_path {self.folder}/d; scgi_temp_path {self.folder}/e;\n"
            f"server {{ listen 127.0.0.1:{port}; root {self.folder}; location /status {{ stub_status; }} }} }}\n", encoding="ascii")
        self.spawn([self.program, "-c", f"{self.folder}/nginx.conf"])
        self.wait_for(lambda: output(["curl", "-s", self.address + "status"]), "the server")

    def load(self):
        self.spawn(["sh", "-c", f"while ab -q -k -c 4 -n 1000000 {self.address}; do :; done"])

    def done(self):
        return int(output(["curl", "-s", self.address + "status"]).splitlines()[2].split()[2])

    def end(self):
        os.killpg(self.processes[-1].pid, 15)  # the loop and what it runs
        super().end()


class Postgres(Server):
    name, function, unit, needs = "PostgreSQL", "palloc", "transactions", ("pgbench",)
    clients = 4

    def serve(self):
        binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        self.program = str(binaries / "postgres")
        shutil.chown(self.folder, USER)
        data = f"{self.folder}/data"
        self.spawn([str(binaries / "initdb"), "-D", data, "-A", "trust", "-N"], as_user=True).wait()
        self.processes.clear()
        self.spawn([self.program, "-D", data, "-k", self.folder, "-c", "listen_addresses=", "-c", "fsync=off"], as_user=True)
        self.wait_for(lambda: self.query("select 1") == "1", "the server")

    def load(self):
        self.spawn(["pgbench", "-h", self.folder, "-i", "-s", "2", "-q", "postgres"], as_user=True).wait()
        self.processes.pop()
        self.run("-S")

    def run(self, *options):
        self.spawn(["pgbench", "-h", self.folder, "-c", str(self.clients), "-T", "100000", "-n", *options, "postgres"], as_user=True)
        self.wait_for(lambda: len(self.pids()) == self.clients, "the load")

    def query(self, text):
        return output(["psql", "-X", "-q", "-A", "-t", "-h", self.folder, "-U", USER, "-c", text, "postgres"]).strip()

    def pids(self):
        return [int(pid) for pid in self.query("select pid from pg_stat_activity where application_name = 'pgbench'").split()]

    def done(self):
        return int(self.query("select xact_commit from pg_stat_database where datname = 'postgres'"))


class CountedPostgres(Postgres):
    """Counts its transactions by a sequence: the server's own statistics are late by up to a second."""

    def run(self, *_):
        self.query("create sequence done cache 100")
        script = Path(self.folder, "script.sql")
        script.write_text("\\set aid random(1, 200000)\nselect abalance from pgbench_accounts where aid = :aid;\nselect nextval('done');\n", encoding="ascii")
        super().run("-f", str(script))

    def done(self):
        return int(self.query("select last_value from done"))


class Mariadb(Server):
    name, program, function, unit = "MariaDB", "/usr/sbin/mariadbd", "alloc_root", "queries"
    needs = ("mariadbd", "mariadb", "mariadb-install-db")

    def serve(self):
        data, self.socket = f"{self.folder}/data", f"{self.folder}/socket"
        made = subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root", "--auth-root-authentication-method=normal"], capture_output=True, text=True,
                              check=False, timeout=120)
        if made.returncode:
            raise RuntimeError("mariadb-install-db: " + next((line for line in (made.stdout + made.stderr).splitlines() if "ERROR" in line), "failed"))
        self.spawn([self.program, "--no-defaults", f"--datadir={data}", f"--socket={self.socket}", "--skip-networking", "--user=root"])
        self.wait_for(lambda: self.query("select 1") == "1", "the server")

    def load(self):
        self.query("create database b; create table b.t (id int primary key, v bigint); insert into b.t select seq, 0 from b.seq_1_to_1000; "
                   "insert into b.t with recursive s(n) as (select 1 union all select n + 1 from s where n < 1000) select n, 0 from s")
        for _ in range(4):
            self.spawn(["sh", "-c", f"while :; do seq 1000 | sed 's/.*/select v from t where id = &;/'; done | mariadb --no-defaults --socket={self.socket} -uroot b"])

    def query(self, text):
        return output(["mariadb", "--no-defaults", f"--socket={self.socket}", "-uroot", "-N", "-B", "--force", "-e", text]).strip()

    def done(self):
        return int(self.query("show global status like 'Questions'").split()[1])

    def end(self):
        for process in self.processes[1:]:
            os.killpg(process.pid, 15)
        super().end()


def rate(server):
    """What it does in a second."""
    first, begun = server.done(), time.monotonic()
    time.sleep(SECONDS)
    last, ended = server.done(), time.monotonic()
    return (last - first) / (ended - begun)


def one_round(server, peers, environment, taken, failed):
    """Untraced before each tracer, so that a ratio is of one moment."""
    for peer in peers:
        if peer.name in failed:
            continue
        untraced = rate(server)
        try:
            begun = time.monotonic()
            with watch.Watch(peer, environment, server.pids(), server.program, f"{Path(server.program).name}!{server.function}") as traced:
                taken_rate = rate(server)
            seconds = time.monotonic() - begun
            taken.setdefault(peer.name, []).append((untraced, taken_rate, traced.calls()[1], seconds))
        except (RuntimeError, OSError, subprocess.SubprocessError, ValueError) as error:
            failed[peer.name] = str(error)


def measure_server(server, peers, environment, rounds):
    taken, failed = {}, {}
    for _ in range(rounds):
        one_round(server, peers, environment, taken, failed)
    every = [untraced for all_of in taken.values() for untraced, *_ in all_of]
    tracers = [{"peer": name, "untraced": spread([u for u, *_ in all_of]), "rate": spread([t for _, t, *_ in all_of]), "of_untraced": spread([t / u for u, t, *_ in all_of]),
                "calls_a_second": round(all_of[-1][2] / all_of[-1][3])} for name, all_of in taken.items() if name not in failed]
    return {"server": server.name, "unit": f"{server.unit} a second", "function": server.function, "untraced": spread(every) if every else None, "tracers": tracers,
            "failed": [{"peer": name, "reason": why} for name, why in failed.items()]}


def measure(binaries, peers, rounds):
    results = []
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        environment = {**os.environ, "PEER_CONTEXT": str(Path(peers).parent), "PEER_BIN": str(binaries), "PEER_WORK": work}
        reasons = {name: watch.able(Path(peers) / name, environment) for name in PEERS}
        for kind in (Redis, Nginx, Postgres, Mariadb):
            missing = [tool for tool in kind.needs if not shutil.which(tool)]
            if missing:
                results.append({"server": kind.name, "tracers": [], "failed": [{"peer": "all", "reason": f"{', '.join(missing)} not installed"}]})
                continue
            server = kind(tempfile.mkdtemp(dir=work))
            try:
                server.begin()
                time.sleep(1)
                done = measure_server(server, [Path(peers) / n for n in PEERS if not reasons[n]], environment, rounds)
                done["failed"] += [{"peer": name, "reason": why} for name, why in reasons.items() if why]
                results.append(done)
            except (RuntimeError, IndexError, OSError, subprocess.SubprocessError) as error:
                results.append({"server": kind.name, "tracers": [], "failed": [{"peer": "all", "reason": str(error)}]})
            finally:
                server.end()
            print(f"servers: {kind.name} done", file=sys.stderr)
    return results
