"""Plants a slower method in a real .NET program, and prints what dipc diff finds of it.

usage: planted.py DIPC RUNTIMES WORKLOADS OUTPUT RUNS PAIRS

DIPC is the program, RUNTIMES the folder of `cargo xtask runtimes`, WORKLOADS testdata/workload and OUTPUT a
folder for recordings: those that are there are used again. RUNS recordings are made of the slower program,
and twice as many of the other, in turns, each of a process of its own that does the same work, by
`dipc trace --cpu`. Then PAIRS comparisons are drawn of each kind and size, with fixed random numbers; those of
one kind share recordings. Nothing is judged.
"""

import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys

DIPC, RUNTIMES, WORKLOADS, OUTPUT = sys.argv[1], *(pathlib.Path(path) for path in sys.argv[2:5])
RUNS, PAIRS = (int(number) for number in sys.argv[5:7])
METHODS = ["Alpha", "Bravo", "Charlie", "Delta", "Echo"]
PLANTED = "Charlie"
PERCENT = 10
# About eight seconds of one processor.
ROUNDS = 1400


def record(file, percent):
    """Records the work, and returns what each method ran by the thread's own clock, in microseconds."""
    command = [str(RUNTIMES / "9.0.1/dotnet"), str(WORKLOADS / "planted/planted.dll")]
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def work(rounds):
        program.stdin.write(f"work {rounds} {percent}\n")
        program.stdin.flush()
        return [int(word) for word in program.stdout.readline().split()[2:]]

    try:
        assert program.stdout.readline().startswith("ready")
        # Until the methods are compiled for good.
        work(60)
        trace = [DIPC, "trace", "-p", str(program.pid), "--cpu", "-o", str(file)]
        tracing = subprocess.Popen(trace, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        text = ""
        for line in tracing.stderr:
            text += line
            if line.startswith("Output File"):
                break
        times = work(ROUNDS)
        tracing.send_signal(signal.SIGINT)
        text += tracing.stderr.read()
        assert tracing.wait() == 0, text
        return times
    finally:
        program.kill()
        program.wait()


def recordings():
    """The files and times of both programs, the one without a slower method first."""
    made = OUTPUT / "times.json"
    times = json.loads(made.read_text()) if made.exists() else {}
    for turn in range(RUNS):
        for name, percent in ((f"base-{2 * turn}", 0), (f"slower-{turn}", PERCENT), (f"base-{2 * turn + 1}", 0)):
            file = OUTPUT / f"{name}.nettrace"
            if name not in times:
                file.unlink(missing_ok=True)
                times[name] = record(file, percent)
                made.write_text(json.dumps(times))
    sides = [[f"base-{number}" for number in range(2 * RUNS)], [f"slower-{number}" for number in range(RUNS)]]
    return [[OUTPUT / f"{name}.nettrace" for name in side] for side in sides], [[times[name] for name in side] for side in sides]


def findings(base, new, basis):
    """Kind, name and change of what is judged to be another."""
    files = ["--base", *map(str, base), "--new", *map(str, new)]
    output = subprocess.run([DIPC, "diff", "--per", basis, "--format", "json", *files], capture_output=True, text=True, check=True)
    changes = [change for change in json.loads(output.stdout)["changes"] if change["verdict"] in ("worse", "better", "different")]
    return [(change["kind"], change["csharp"] or change["name"] or "(all)", change["relative_change"]) for change in changes]


def is_planted(finding):
    return f"Program.{PLANTED}(" in finding[1]


def heading(title, *columns):
    print(f"\n## {title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def comment(findings):
    """Prints findings so that tables stay tables."""
    for kind, name, change in findings:
        print(f"<!-- {kind} {name} {100 * (change or 0):+.1f} % -->", flush=True)


def main():
    OUTPUT.mkdir(parents=True, exist_ok=True)
    (base, slower), (base_times, slower_times) = recordings()
    print(f"\n{len(base)} and {len(slower)} recordings; load now {os.getloadavg()[0]:.0f}")
    heading("The program's own account", "method", "base, ms", "slower, ms", "change", "spread of a run")
    for number, method in enumerate(METHODS):
        before, after = ([times[number] / 1000 for times in side] for side in (base_times, slower_times))
        spread = 100 * statistics.stdev(before) / statistics.mean(before)
        row(method, f"{statistics.mean(before):.0f}", f"{statistics.mean(after):.0f}", f"{100 * (statistics.mean(after) / statistics.mean(before) - 1):+.1f} %", f"{spread:.1f} %")
    for basis in ("run", "share"):
        compare(base, slower, basis)


def compare(base, slower, basis):
    random.seed(1)
    heading(f"{PLANTED} is {PERCENT} % slower, --per {basis}", "recordings a side", "comparisons", "found", "change", "comparisons that name anything else")
    for size in sorted({3, 5, 8, RUNS}):
        if size > RUNS:
            continue
        count = max(PAIRS // 5, 1) if size < RUNS else 1
        found, others, changes = 0, 0, []
        for _ in range(count):
            all_found = findings(random.sample(base, size), random.sample(slower, size), basis)
            planted = [change for kind, name, change in all_found if kind == "cpu" and f"Program.{PLANTED}(" in name]
            found += bool(planted)
            changes += planted
            rest = [finding for finding in all_found if not is_planted(finding)]
            others += bool(rest)
            comment(rest)
        shown = f"{100 * min(changes):+.1f} to {100 * max(changes):+.1f} %" if changes else "–"
        row(size, count, found, shown, others)
    heading(f"Nothing is slower, --per {basis}", "recordings a side", "comparisons", "false alarms")
    for size in (1, 3, 5, 8):
        if 2 * size > len(base):
            continue
        alarms = 0
        for _ in range(PAIRS):
            drawn = random.sample(base, 2 * size)
            alarm = findings(drawn[:size], drawn[size:], basis)
            alarms += bool(alarm)
            comment(alarm)
        row(size, PAIRS, alarms)


main()
