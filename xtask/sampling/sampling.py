"""Measures the kernel's samples of real .NET programs against clocks that are not dipc's, and prints tables.

usage: sampling.py DIPC RUNTIMES WORKLOADS OUTPUT SECONDS [PART ...]

DIPC is the program, RUNTIMES the folder of `cargo xtask runtimes`, WORKLOADS testdata/workload and OUTPUT a
folder for recordings. SECONDS is the time of the part churn, which runs only if it is named. A part that cannot run here is named with the reason. Nothing is judged: the figures
depend on the machine.
"""

import contextlib
import csv
import datetime
import http.server
import io
import json
import lzma
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

DIPC, RUNTIMES, WORKLOADS, OUTPUT = sys.argv[1], *(pathlib.Path(path) for path in sys.argv[2:5])
CHURN_SECONDS = float(sys.argv[5])
PARTS = sys.argv[6:]
# Of perf record. The shares have an error of sqrt(p * (1 - p) / samples).
PERF_SECONDS = "20"
# csv refuses long stacks otherwise.
csv.field_size_limit(1 << 24)


def dotnet(version, assembly):
    program = RUNTIMES / version / "dotnet"
    return [str(program), str(WORKLOADS / assembly)] if program.exists() else None


def native():
    program = OUTPUT / "workload-native"
    if not program.exists():
        program.write_bytes(lzma.open(WORKLOADS / "nativeaot/workload-9.xz").read())
        program.chmod(0o755)
    return [str(program)]


def sampled(version):
    return dotnet(version, "sampled/sampled.dll")


def workload(version):
    if version == "NativeAOT":
        return native()
    return dotnet(version, "netstandard2.1/workload.dll" if version.startswith("3") else "net8.0/workload.dll")


class Program:
    """A program that takes commands, one a line, and answers each with a line."""

    def __init__(self, command):
        # Server collections would have a thread for each processor.
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline().startswith("ready")
        self.pid = self.process.pid

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self):
        return self.process.stdout.readline().split()

    def run(self, line):
        self.send(line)
        return self.answer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def schedule(pid):
    """Nanoseconds on a processor and in a run queue, by thread."""
    times = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            ran, queued, _ = open(f"/proc/{pid}/task/{task}/schedstat").read().split()
            times[int(task)] = (int(ran), int(queued))
        except OSError:
            pass
    return times


def process_ns(pid):
    """The processor time of a process with its ended threads, in ticks of 10 ms."""
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 10_000_000


def names(pid, into):
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            into[int(task)] = open(f"/proc/{pid}/task/{task}/comm").read().strip()
        except OSError:
            pass


class Recording:
    """dipc trace of a process, from its first sample on until it is stopped."""

    def __init__(self, program, file, *flags):
        self.file = OUTPUT / file
        self.file.unlink(missing_ok=True)
        command = [DIPC, "trace", "-p", str(program.pid), "-o", str(self.file), *flags]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.text = ""
        # What is printed once the session runs.
        for line in self.process.stderr:
            self.text += line
            if line.startswith("Output File"):
                break
        self.start = time.monotonic()

    def stop(self):
        self.seconds = time.monotonic() - self.start
        self.process.send_signal(signal.SIGINT)
        self.text += self.process.stderr.read()
        _, status, self.usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        assert self.process.returncode == 0, self.text
        return self

    def rows(self, *flags):
        report = subprocess.run([DIPC, "report", str(self.file), "topN", "-n", "100000", "--format", "json", *flags], capture_output=True, text=True)
        return json.loads(report.stdout)

    def samples(self, by="cpu"):
        """Thread and frames, root first, of each sample."""
        text = subprocess.run([DIPC, "convert", str(self.file), "-f", "csv", "--by", by, "-o", "-"], capture_output=True, text=True).stdout
        for row in csv.DictReader(io.StringIO(text)):
            yield int(row["tid"]), row["stack"].split(";"), row


def share(report, name, which="exclusive_percent"):
    return sum(row[which] for row in report["rows"] if name in row["csharp"])


def heading(title, *columns):
    print(f"\n## {title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def split():
    """Two methods of the same code, of 7 and 3 parts; EventPipe's sampler beside it."""
    heading("Share of a method in two, percent", "runtime", "program's clock", "dipc --cpu (samples)", "program's clock", "EventPipe's sampler", "its caller alone: --cpu", "EventPipe")
    for version in ("3.1.23", "9.0.1"):
        if not (command := sampled(version)):
            print(f"{version} is not set up")
            continue
        results = []
        for flags in (["--cpu"], []):
            with Program(command) as program:
                program.run("split 1500")
                program.send("split 13000")
                time.sleep(1)
                recording = Recording(program, f"split-{version}.nettrace", *flags)
                time.sleep(10)
                recording.stop()
                report = recording.rows("--by", "cpu" if flags else "wall")
                seven, three = (share(report, f"Program.{name}(") for name in ("Seven", "Three"))
                results += [program.answer()[2], f"{100 * seven / (seven + three):.2f} ({report['samples']})" if flags else f"{100 * seven / (seven + three):.2f}"]
                results.append(f"{share(report, 'Program.Run('):.1f} %")
        row(version, results[0], results[1], results[3], results[4], results[2], results[5])


def account():
    """Samples times period against the kernel's account."""
    heading("Samples × period against the kernel's account", "program", "kernel's account, ms", "samples, ms", "ratio")
    programs = [(version, workload(version), "spin 8000", 4) for version in ("3.1.23", "9.0.1", "NativeAOT")]
    programs += [("9.0.1, 4,000 threads of 1 ms", sampled("9.0.1"), "short 4000", 3)]
    for title, command, line, seconds in programs:
        if not command:
            print(f"{title} is not set up")
            continue
        with Program(command) as program:
            program.run("spin 300" if "spin" in line else "short 10")
            program.send(line)
            time.sleep(0.5)
            recording = Recording(program, "account.nettrace", "--cpu")
            whole = "short" in line
            before = process_ns(program.pid) if whole else sum(ran for ran, _ in schedule(program.pid).values())
            first = time.time_ns()
            time.sleep(seconds)
            after = process_ns(program.pid) if whole else sum(ran for ran, _ in schedule(program.pid).values())
            last = time.time_ns()
            recording.stop()
            # The samples between the two readings: the recording's times are those of the same clock since its start.
            origin = clock_origin(recording)
            weight = sum(1 for _, _, data in recording.samples() if first <= origin + int(data["time_ns"]) <= last)
            row(title, f"{(after - before) / 1e6:.0f}", weight, f"{weight * 1e6 / (after - before):.3f}")


def clock_origin(recording):
    """The time of day at time 0 of a recording, in nanoseconds, to the millisecond."""
    stat = subprocess.run([DIPC, "stat", str(recording.file), "--format", "json"], capture_output=True, text=True)
    return int(datetime.datetime.fromisoformat(json.loads(stat.stdout)["start"]).timestamp() * 1e3) * 1_000_000


# The first frame of a program or thread; functions of the C library that are not exported have no names.
ROOTS = re.compile(r"^(.*!_start|workload-native!.*|(libc|ld|libpthread)[-.].*!(\?|clone3?|start_thread))$")


def chains():
    """Stacks that reach the root of the thread, by kind of thread."""
    heading("Stacks that reach the thread's root", "runtime", "work", "thread", "samples", "reach the root", "with managed code", "other ends")
    work = [("loop", "spin 60000"), ("allocation", "alloc 100000"), ("exceptions", "throw 10000000"), ("forced collections", "gc 2 1000000"), ("locks", "contend 1000000"), ("JIT, tasks", "tasks 100000000")]
    for version in ("3.1.23", "9.0.1", "NativeAOT"):
        if not (command := workload(version)):
            print(f"{version} is not set up")
            continue
        for title, line in work:
            chain_row(version, title, Program(command), line)
        if version != "NativeAOT" and (command := sampled(version)):
            chain_row(version, "P/Invoke", Program(command), "copy 60000")
            chain_row(version, "two threads, one lock", Program(command), "lock 60000")
    server()


def chain_row(version, title, program, line):
    with program:
        if line:
            program.send(line)
        time.sleep(1)
        print_chains(version, title, program)


def print_chains(version, title, program):
    threads = {}
    recording = Recording(program, "chains.nettrace", "--cpu", "--off-cpu")
    end = time.monotonic() + 3
    while time.monotonic() < end:
        names(program.pid, threads)
        time.sleep(0.05)
    recording.stop()
    rows = recording.rows("--by", "wall", "--idle")["rows"]
    managed_names = {entry[form] for entry in rows if entry["kind"] == "managed" for form in ("frame", "csharp")}
    for by in ("cpu", "off-cpu"):
        found = {}
        for tid, stack, _ in recording.samples(by):
            # A thread that begins or ends in the kernel has no frames of the program.
            # Some switches have times and no stack.
            if not stack or stack[0].startswith("vmlinux!") or stack[0] in ("BLOCKED_TIME", "READY_TIME"):
                continue
            name = "main" if tid == program.pid else threads.get(tid, "?")
            name = re.sub(r"[-_ ]?\d+$", "", name)
            counts = found.setdefault(name, [0, 0, 0, {}])
            has_managed = any(frame in managed_names for frame in stack)
            # The names of NativeAOT's methods are in a file of its own: all of its program is one module.
            has_managed |= version == "NativeAOT" and any(frame.startswith("workload") for frame in stack)
            is_rooted = bool(ROOTS.match(stack[0]))
            counts[0] += 1
            counts[1] += has_managed
            counts[2] += is_rooted
            if not is_rooted:
                end = stack[0] if stack[0] not in managed_names else "a method"
                counts[3][end] = counts[3].get(end, 0) + 1
        for name, (count, managed, rooted, ends) in sorted(found.items(), key=lambda item: -item[1][0]):
            if count >= 20:
                others = ", ".join(f"{end} {count}" for end, count in sorted(ends.items(), key=lambda item: -item[1])[:2])
                row(version, f"{title}{', off' if by == 'off-cpu' else ''}", name, count, f"{rooted} ({100 * rooted / count:.1f} %)", managed, others)


class Server:
    """The program of .NET 10, which takes requests on standard input."""

    def __init__(self):
        command = [str(RUNTIMES / "10.0.5/azmcp"), "server", "start"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.pid = self.process.pid
        start = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "sampling", "version": "1"}}}
        self.ask(start)
        self.is_over = False
        self.asker = threading.Thread(target=self.load)
        self.asker.start()

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def load(self):
        number = 1
        while not self.is_over and self.ask({"jsonrpc": "2.0", "id": number, "method": "tools/list"}):
            number += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.asker.join(5)
        self.process.kill()
        self.process.wait()


def server():
    if not (RUNTIMES / "10.0.5/azmcp").exists():
        print("10.0.5 is not set up")
        return
    with Server() as program:
        time.sleep(2)
        print_chains("10.0.5", "JSON requests", program)


def waits():
    """Time off the processors against the kernel's account and the program's own clock."""
    heading("Time off the processors", "program", "expected, ms", "by", "dipc --off-cpu, ms", "ratio")
    for version in ("3.1.23", "9.0.1"):
        if not (command := sampled(version)):
            print(f"{version} is not set up")
            continue
        with Program(command) as program:
            program.run("sleep 1800")
            recording = Recording(program, "waits.nettrace", "--cpu", "--off-cpu")
            slept = float(program.run("sleep 3000")[2])
            recording.stop()
            off = [entry["inclusive"] for entry in recording.rows("--by", "off-cpu")["rows"] if "Program.Sleeper(" in entry["csharp"]]
            row(version, slept, "its clock, in Sleeper", f"{sum(off) / 1e6:.1f}", f"{sum(off) / 1e6 / slept:.3f}")
        with Program(command) as program:
            program.send("lock 8000")
            time.sleep(1)
            recording = Recording(program, "waits.nettrace", "--cpu", "--off-cpu")
            before, first = schedule(program.pid), time.time_ns()
            time.sleep(3)
            after, last = schedule(program.pid), time.time_ns()
            recording.stop()
            origin, off = clock_origin(recording), {}
            for tid, _, data in recording.samples("off-cpu"):
                # The row has the begin of the interval.
                start = origin + int(data["time_ns"])
                inside = min(start + int(data["duration_ns"]), last) - max(start, first)
                off[tid] = off.get(tid, 0) + max(inside, 0)
            busiest = sorted(after, key=lambda tid: before.get(tid, (0, 0))[0] - after[tid][0])[:2]
            for tid in busiest:
                expected = last - first - (after[tid][0] - before[tid][0])
                row(f"{version}, thread in a contended lock", f"{expected / 1e6:.0f}", "time less schedstat", f"{off.get(tid, 0) / 1e6:.0f}", f"{off.get(tid, 0) / expected:.3f}")


def perf():
    """The shares of files by perf record of the same process at the same time."""
    heading("Beside perf record -F 997, the process sampled by both at once", "program", "file", "perf, percent (samples)", "dipc, percent (samples)")
    if not shutil.which("perf"):
        print("perf is not installed")
        return
    for version, line in (("3.1.23", "alloc 100000"), ("9.0.1", "alloc 100000"), ("9.0.1", "throw 10000000"), ("NativeAOT", "alloc 100000")):
        if not (command := workload(version)):
            print(f"{version} is not set up")
            continue
        with Program(command) as program:
            program.send(line)
            time.sleep(1)
            recording = Recording(program, "perf.nettrace", "--cpu")
            data = OUTPUT / "perf.data"
            # dipc samples a little longer: for as long as perf takes to begin and to end.
            subprocess.run(["perf", "record", "-q", "-F", "997", "-g", "-p", str(program.pid), "-o", str(data), "--", "sleep", PERF_SECONDS], stderr=subprocess.DEVNULL, check=False)
            recording.stop()
        text = subprocess.run(["perf", "report", "-i", str(data), "--no-children", "--show-nr-samples", "--sort", "dso", "-g", "none", "--stdio"], capture_output=True, text=True).stdout
        theirs, ours = {}, {}
        for found in re.finditer(r"^\s*([\d.]+)%\s+(\d+)\s+(\S+)", text, re.M):
            share, samples = theirs.get(kind_of(found[3]), (0, 0))
            theirs[kind_of(found[3])] = (share + float(found[1]), samples + int(found[2]))
        report = recording.rows("--by", "cpu")
        for entry in report["rows"]:
            module = "JIT-compiled" if entry["kind"] == "managed" and version != "NativeAOT" else entry["frame"].partition("!")[0]
            share, samples = ours.get(kind_of(module), (0, 0))
            ours[kind_of(module)] = (share + entry["exclusive_percent"], samples + entry["exclusive"])
        for file in sorted(theirs, key=lambda file: -theirs[file][0])[:5]:
            row(f"{version}, {line.split()[0]}", file, *("{:.1f} ({})".format(*shares.get(file, (0, 0))) for shares in (theirs, ours)))


def kind_of(module):
    if "kernel" in module or module == "vmlinux":
        return "kernel"
    # The methods of images that were compiled beforehand are managed code here and files for perf.
    if module in ("JIT-compiled", "//anon", "[JIT]") or "doublemapper" in module or module.endswith(".dll") or module.startswith(("memfd", "perf-", "[unknown", "anon")):
        return "managed code"
    return module


def costs():
    """Time of a fixed amount of work of the target, with and without samplers, in interleaved rounds."""
    heading("Cost for the target: processor time of the same work, interleaved rounds", "runtime", "sampler", "median, ms", "rounds", "more than without, percent (median of pairs)", "quartiles")
    kinds = [("none", None), ("--cpu --frequency 99", ["--cpu", "--frequency", "99"]), ("--cpu --frequency 997", ["--cpu", "--frequency", "997"]), ("EventPipe's sampler", [])]
    # On one thread: the order of several is another one in each round.
    work = "throw 250000"
    for version in ("9.0.1",):
        if not (command := workload(version)):
            print(f"{version} is not set up")
            continue
        with Program(command) as program:
            program.run(work)
            times = {title: [] for title, _ in kinds}
            for number in range(13):
                for title, flags in kinds:
                    # Without the runtime's events of the work itself.
                    only = ["--providers", "Microsoft-Windows-DotNETRuntime:1:1"] if flags else ["--profile", "dotnet-sampled-thread-time"]
                    recording = flags is not None and Recording(program, "costs.nettrace", "--rundown", "false", *only, *flags)
                    before = sum(ran for ran, _ in schedule(program.pid).values())
                    program.run(work)
                    after = sum(ran for ran, _ in schedule(program.pid).values())
                    if recording:
                        recording.stop()
                    if number:
                        times[title].append((after - before) / 1e6)
            for title, _ in kinds:
                pairs = [100 * (with_it / without - 1) for with_it, without in zip(times[title], times["none"])]
                low, middle, high = statistics.quantiles(pairs) if title != "none" else (0, 0, 0)
                row(version, title, f"{statistics.median(times[title]):.0f}", len(pairs), f"{middle:+.2f}", f"{low:+.2f} … {high:+.2f}")
    heading("Cost of dipc itself, 10 s of a program that computes", "command", "processor time, ms", "of a core, percent", "most memory, MB")
    for title, flags in kinds[1:] + [("--cpu --off-cpu --frequency 997", ["--cpu", "--off-cpu", "--frequency", "997"])]:
        if not (command := workload("9.0.1")):
            continue
        with Program(command) as program:
            program.send("spin 20000")
            recording = Recording(program, "own.nettrace", *flags)
            time.sleep(10)
            running = os.sysconf("SC_CLK_TCK")
            fields = open(f"/proc/{recording.process.pid}/stat").read().rpartition(")")[2].split()
            sampling = (int(fields[11]) + int(fields[12])) / running
            most = next(line for line in open(f"/proc/{recording.process.pid}/status") if line.startswith("VmHWM"))
            recording.stop()
            whole = recording.usage.ru_utime + recording.usage.ru_stime
            row(f"trace {title}".strip(), f"{sampling * 1000:.0f} while sampling, {whole * 1000:.0f} with the end", f"{100 * sampling / recording.seconds:.1f}", f"{int(most.split()[1]) / 1024:.1f}")


MACHINE_SECONDS = 120
# Beside 8 of .NET, which run or wait: shells that run for a part of the time, and programs that sleep.
SHELLS, SLEEPERS = 8, 84
# One that runs for a fifth of the time.
SHELL = "while :; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.2; done"


def own_memory(pid):
    """The resident memory of a process: its own, of files, and shared (the kernel's buffers), in MB."""
    fields = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status"))
    return [int(fields[name].split()[0]) / 1024 for name in ("RssAnon", "RssFile", "RssShmem")]


def machine():
    """The monitor's continuous samples, beside a monitor without them at the same time."""
    for title, is_idle in (("100 processes", False), ("an idle machine", True)):
        with contextlib.ExitStack() as stack:
            if not is_idle:
                started = [(version, "spin 100000000") for version in ("3.1.23", "9.0.1", "9.0.1", "9.0.1", "9.0.1")]
                for version, work in started + [("3.1.23", None), ("9.0.1", None), ("9.0.1", None)]:
                    if command := workload(version):
                        program = stack.enter_context(Program(command))
                        if work:
                            program.send(work)
                others = [["sh", "-c", SHELL]] * SHELLS + [["sleep", "100000"]] * SLEEPERS
                for command in others:
                    stack.callback(subprocess.Popen(command).kill)
            measure_monitors(title)


def measure_monitors(title):
    folder = pathlib.Path(tempfile.mkdtemp(dir=OUTPUT))
    collector = Collector()
    ring = ["--profile-keep", "1h", "--profile-directory", str(folder / "ring")]
    kinds = {
        "without samples of the machine": [],
        "--profile-keep": ring,
        "--otlp-signals profiles": ["--otlp", collector.url, "--otlp-signals", "profiles"],
    }
    heading(f"The machine all the time, {title}, {MACHINE_SECONDS} s after the first minute", "monitor", "of the machine, percent", "memory of its own, MB", "most, MB", "of files, MB", "buffers, MB")
    monitors = {}
    for number, (kind, options) in enumerate(kinds.items()):
        monitors[kind] = start_monitor(folder, f"http{number}", options)
    try:
        time.sleep(60)
        before = {kind: process_ns(monitor.pid) for kind, monitor in monitors.items()}
        begin, own = time.monotonic(), {kind: [] for kind in monitors}
        while time.monotonic() - begin < MACHINE_SECONDS:
            time.sleep(1)
            for kind, monitor in monitors.items():
                own[kind].append(own_memory(monitor.pid))
        whole = (time.monotonic() - begin) * os.cpu_count() * 1e9
        for kind, monitor in monitors.items():
            share = 100 * (process_ns(monitor.pid) - before[kind]) / whole
            memory = [[sample[index] for sample in own[kind]] for index in range(3)]
            row(kind, f"{share:.2f}", f"{statistics.median(memory[0]):.0f}", f"{max(memory[0]):.0f}", f"{max(memory[1]):.0f}", f"{max(memory[2]):.0f}")
        sizes = [file.stat().st_size for file in (folder / "ring").glob("profile-*")]
        print(f"\n{len(sizes)} recordings of {max(sizes, default=0) / 1e6:.1f} MB at most; {collector.requests} requests of {collector.most / 1e6:.1f} MB at most")
    finally:
        for monitor in monitors.values():
            monitor.send_signal(signal.SIGINT)
        for monitor in monitors.values():
            monitor.wait(60)
        collector.server.shutdown()
        shutil.rmtree(folder)


IDLE_SECONDS = 120


def idle():
    """The processor time of a monitor that keeps samples while nothing runs, by thread."""
    heading(f"The monitor with --profile-keep, {IDLE_SECONDS} s after the first half minute", "thread", "processor time, ms in a second", "switches in a second")
    folder = pathlib.Path(tempfile.mkdtemp(dir=OUTPUT))
    monitor = start_monitor(folder, "idle", ["--profile-keep", "1h", "--profile-directory", str(folder / "ring")])
    try:
        time.sleep(30)
        machine_before, before = busy_ns(), thread_work(monitor.pid)
        time.sleep(IDLE_SECONDS)
        machine_after, after = busy_ns(), thread_work(monitor.pid)
        work = {}
        for tid, (name, ran, switches) in after.items():
            _, ran_before, switches_before = before.get(tid, (name, 0, 0))
            sums = work.setdefault(name, [0, 0])
            sums[0] += ran - ran_before
            sums[1] += switches - switches_before
        for name, (ran, switches) in sorted(work.items(), key=lambda item: -item[1][0]):
            row(name, f"{ran / 1e6 / IDLE_SECONDS:.2f}", f"{switches / IDLE_SECONDS:.1f}")
        whole = IDLE_SECONDS * os.cpu_count() * 1e9
        share = 100 * sum(ran for ran, _ in work.values()) / whole
        print(f"\n{share:.3f} % of the machine, which was busy for {100 * (machine_after - machine_before) / whole:.1f} % of the time")
    finally:
        monitor.send_signal(signal.SIGINT)
        monitor.wait(60)
        shutil.rmtree(folder)


def busy_ns():
    """The time that all processors have worked."""
    fields = [int(field) for field in open("/proc/stat").readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) * 10_000_000


def thread_work(pid):
    """The name, nanoseconds on a processor and switches of each thread."""
    work = {}
    for tid, (ran, _) in schedule(pid).items():
        try:
            name = open(f"/proc/{pid}/task/{tid}/comm").read().strip()
            status = open(f"/proc/{pid}/task/{tid}/status").read()
            work[tid] = (name, ran, sum(int(count) for count in re.findall(r"ctxt_switches:\s+(\d+)", status)))
        except OSError:
            pass
    return work


def start_monitor(folder, name, options):
    fixed = [DIPC, "monitor", "--urls", f"unix:{folder}/{name}", "--metrics", "false", "--keep", "0s"]
    return subprocess.Popen(fixed + options, stdout=subprocess.DEVNULL, stderr=open(folder / f"{name}.log", "w"))


# Short processes in a second, seconds between starts of programs of .NET, and seconds between readings.
BIRTHS, RUNTIME_EVERY, READ_EVERY = 5, 20, 10


def churn():
    """The resources of a monitor with a ring and a collector that is not there, beside short processes."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=OUTPUT))
    options = ["--profile-keep", "24h", "--profile-directory", str(folder / "ring"), "--profile-bytes", "64MiB", "--otlp", "http://127.0.0.1:9", "--otlp-signals", "profiles"]
    monitor = start_monitor(folder, "churn", options)
    readings, births, end = [], 0, time.monotonic() + CHURN_SECONDS
    start = time.monotonic()
    log = open(OUTPUT / "churn.csv", "w")
    print("seconds,births,anonymous_mb,file_mb,shared_mb,descriptors,threads,ring_mb,processor_ms", file=log, flush=True)
    runtimes = [command for version in ("3.1.23", "9.0.1") if (command := sampled(version))]
    running = []
    try:
        while (now := time.monotonic()) < end:
            running = [process for process in running if process.poll() is None]
            running.append(subprocess.Popen(["sh", "-c", "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; true | cat"], stdout=subprocess.DEVNULL))
            if runtimes and births % (BIRTHS * RUNTIME_EVERY) == 0:
                command = runtimes[births // (BIRTHS * RUNTIME_EVERY) % len(runtimes)]
                # It ends when its standard input does.
                program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
                program.stdin.write("split 2000\n")
                program.stdin.close()
                running.append(program)
            births += 1
            if births % (BIRTHS * READ_EVERY) == 0:
                anonymous, files, shared = own_memory(monitor.pid)
                ring = sum(file.stat().st_size for file in (folder / "ring").glob("profile-*")) / 1e6
                descriptors, threads = (len(os.listdir(f"/proc/{monitor.pid}/{part}")) for part in ("fd", "task"))
                reading = (now - start, births, anonymous, files, shared, descriptors, threads, ring, process_ns(monitor.pid) / 1e6)
                readings.append(reading)
                print(",".join(f"{value:.1f}" for value in reading), file=log, flush=True)
            time.sleep(max(0, start + births / BIRTHS - time.monotonic()))
    finally:
        for process in running:
            process.wait(60)
        monitor.send_signal(signal.SIGINT)
        monitor.wait(60)
        shutil.copy(folder / "churn.log", OUTPUT / "churn.log")
        shutil.rmtree(folder)
    heading(f"The monitor beside {births} short processes in {(now - start) / 60:.0f} min: medians of sixths of the time", "minutes", "memory of its own, MB", "of files, MB", "descriptors", "threads", "ring, MB", "processor time, percent of the machine")
    for part in range(6):
        of_part = readings[len(readings) * part // 6 : len(readings) * (part + 1) // 6]
        if not of_part:
            continue
        middle = [statistics.median(reading[index] for reading in of_part) for index in range(9)]
        ran = (of_part[-1][8] - of_part[0][8]) / max(of_part[-1][0] - of_part[0][0], 1) / os.cpu_count() / 10
        row(f"{of_part[0][0] / 60:.0f}–{of_part[-1][0] / 60:.0f}", f"{middle[2]:.1f} (≤ {max(reading[2] for reading in of_part):.1f})", f"{middle[3]:.1f}", f"{middle[5]:.0f} (≤ {max(reading[5] for reading in of_part)})", f"{middle[6]:.0f}", f"{middle[7]:.1f}", f"{ran:.2f}")


class Collector:
    """Takes requests, and counts them."""

    def __init__(self):
        collector = self
        self.requests, self.most = 0, 0

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                length = int(self.headers["content-length"])
                self.rfile.read(length)
                collector.requests += 1
                collector.most = max(collector.most, length)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


# Processes share the processors, so that each has fewer samples.
SHARES_SECONDS = "60"
# Programs and their work with a nice value each, so that their shares differ.
BUSY = (("3.1.23", "spin 100000000", 0), ("9.0.1", "spin 100000000", 3), ("9.0.1", "throw 10000000", 0), ("NativeAOT", "spin 100000000", 5), ("sh", "while :; do :; done", 0), ("python3", "while True: sum(range(10000))", 7))


def by_process(pids):
    return {pid: sum(ran for ran, _ in schedule(pid).values()) for pid in pids}


def shares():
    """The shares of processes by perf record -a, by dipc trace --all and by schedstat, at the same time."""
    # Of each other: the kernel's account of the machine is in ticks.
    heading(f"Shares of busy processes among each other, the machine sampled for {SHARES_SECONDS} s", "process", "schedstat, percent", "perf record -a -F 99 -g, percent (samples)", "dipc trace --all, percent (samples)", "most that dipc differs, points")
    if not shutil.which("perf"):
        print("perf is not installed")
        return
    with contextlib.ExitStack() as stack:
        pids = {}
        for version, work, nice in BUSY:
            if version in ("sh", "python3"):
                process = subprocess.Popen([version, "-c", work])
                stack.callback(process.wait)
                stack.callback(process.kill)
                pid = process.pid
            elif command := workload(version):
                program = stack.enter_context(Program(command))
                program.send(work)
                pid = program.pid
            else:
                print(f"{version} is not set up")
                continue
            for task in os.listdir(f"/proc/{pid}/task"):
                os.setpriority(os.PRIO_PROCESS, int(task), nice)
            pids[pid] = f"{version}, {work.split()[0] if version not in ('sh', 'python3') else work}"
        time.sleep(2)
        file, data = OUTPUT / "shares.nettrace", OUTPUT / "shares.data"
        file.unlink(missing_ok=True)
        trace = subprocess.Popen([DIPC, "trace", "--all", "-o", str(file)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while not trace.stderr.readline().startswith("Samples"):
            assert trace.poll() is None, "dipc trace has ended"
        before = by_process(pids)
        subprocess.run(["perf", "record", "-q", "-a", "-F", "99", "-g", "-o", str(data), "--", "sleep", SHARES_SECONDS], stderr=subprocess.DEVNULL, check=False)
        after = by_process(pids)
        trace.send_signal(signal.SIGINT)
        _, told = trace.communicate(timeout=300)
    assert trace.returncode == 0, told
    text = subprocess.run(["perf", "report", "-i", str(data), "--no-children", "--show-nr-samples", "--sort", "pid", "-g", "none", "--stdio"], capture_output=True, text=True).stdout
    theirs = {int(pid): int(samples) for samples, pid in re.findall(r"^\s*[\d.]+%\s+(\d+)\s+(\d+):", text, re.M)}
    report = json.loads(subprocess.run([DIPC, "report", str(file), "topN", "--by", "cpu", "--by-process", "--format", "json"], capture_output=True, text=True).stdout)
    samples = {process["pid"]: process["samples"] for process in report["processes"]}
    weights = {process["pid"]: process["weight"] for process in report["processes"]}
    ran = {pid: after[pid] - before[pid] for pid in pids}

    def percent(numbers, pid):
        return 100 * numbers.get(pid, 0) / max(sum(numbers.get(of, 0) for of in pids), 1)

    for pid, title in pids.items():
        account, of_perf, of_dipc = (percent(numbers, pid) for numbers in (ran, theirs, weights))
        most = max(abs(of_dipc - account), abs(of_dipc - of_perf))
        row(title, f"{account:.1f}", f"{of_perf:.1f} ({theirs.get(pid, 0)})", f"{of_dipc:.1f} ({samples.get(pid, 0)})", f"{most:.1f}")
    print("\n" + " ".join(line for line in told.splitlines() if line.startswith(("CPU samples", "Processes"))))


ALL = {"split": split, "account": account, "chains": chains, "waits": waits, "perf": perf, "costs": costs, "machine": machine, "idle": idle, "shares": shares}
# Those that take an hour.
LONG = {"churn": churn}

OUTPUT.mkdir(parents=True, exist_ok=True)
for part in PARTS or ALL:
    try:
        (ALL | LONG)[part]()
    except (AssertionError, OSError, ValueError, KeyError) as error:
        print(f"\n{part}: {type(error).__name__}: {error}", flush=True)
