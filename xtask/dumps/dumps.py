"""Takes core dumps of every kind of programs whose state is known, on every runtime, and prints how much of it
`dipc dump analyze` finds: a table of questions, versions and kinds of core dumps, each "found of expected".

usage: dumps.py DIPC RUNTIMES WORKLOADS OUTPUT

DIPC is the program, RUNTIMES the folder of `cargo xtask runtimes`, WORKLOADS testdata/workload and OUTPUT a
folder for core dumps, which are removed. Oracles are not dipc's: createdump's crash report for frames, the
programs' own account for names, exceptions, deadlocks and chains, and the runtime's heap dump (EventPipe) for
types. The createdump of .NET Core 3.1 writes no report, and a single file of .NET 8 has none: there the frames are
those of the runtime's own sampler (EventPipe) by name, and then by address. NativeAOT has neither: there the frames are the methods of the threads
that the workload parks, by its source. A kind that cannot be taken here is named with the reason, and so is a
core that cannot be read.
"""

import json
import lzma
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time

DIPC, RUNTIMES, WORKLOADS, OUTPUT = sys.argv[1], *(pathlib.Path(path) for path in sys.argv[2:5])
SECRET = "command-zxcvbnm"
QUESTIONS = ["threads", "frames", "names", "exception", "types", "deadlock", "async", "stripped"]
# The chains of testdata/workload/awaits: links, and how many chains are alike.
CHAINS = [1, 1, 1, 1, 1, 1, 2, 50]

# The methods of the workload on its threads, the innermost first, after the command "park".
PARKED = [
    ["Parked.Sleeper()"], ["Parked.Blocked()"], ["Parked.Start.AnonymousMethod__7_2()"],
    ["Parked.Box<T>.Wait<T>(T, T, ref int, int[])", "Parked.GenericWait()"],
    ["Parked.Start.AnonymousMethod__7_3()"] + ["Spin.Deep(int, Action)"] * 6,
    ["Parked.Waits.AnonymousMethod__6_0()"], ["Program.Main(string[])"],
]


def dipc(*arguments, timeout=600):
    """Runs dipc; returns its exit code, standard output and standard error."""
    run = subprocess.run([DIPC, *map(str, arguments)], capture_output=True, text=True, timeout=timeout)
    return run.returncode, run.stdout, run.stderr


def view(core, *arguments):
    """A view of a core dump as JSON; a text with the reason if there is none."""
    code, out, error = dipc("dump", "analyze", core, *arguments, "--format", "json")
    if code != 0:
        return error.strip().splitlines()[0].removeprefix("error: dump analyze: ") if error else f"exit code {code}"
    return json.loads(out)


class Program:
    """A program that says "ready", and takes commands or waits for a line."""

    def __init__(self, command, variables=()):
        self.folder = OUTPUT / "cwd"
        self.folder.mkdir(exist_ok=True)
        environment = dict(os.environ, DOTNET_SYSTEM_GLOBALIZATION_INVARIANT="1", TMPDIR=str(self.folder))
        environment.update(variables)
        limit = lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env=environment, cwd=self.folder,
                                        preexec_fn=limit)
        self.pid = self.process.pid

    def line(self):
        return self.process.stdout.readline()

    def send(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def kernel_core(self):
        """Has the kernel write the core dump, which ends the program."""
        pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text().strip()
        if "/" in pattern or "|" in pattern:
            return None, f"core_pattern is {pattern}"
        pathlib.Path(f"/proc/{self.pid}/coredump_filter").write_text("0x33")
        # The runtime's handler resets itself at the first one.
        for _ in range(20):
            try:
                os.kill(self.pid, signal.SIGABRT)
                self.process.wait(2)
                break
            except subprocess.TimeoutExpired:
                continue
        files = list(self.folder.glob("core*"))
        return (files[0], None) if files else (None, "the kernel wrote none")

    def end(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder)


# The versions that are tried, each with its runtime's folder and the settings of the runtime. The collector of
# servers has a heap for each processor.
VERSIONS = {
    "9.0.1": ("9.0.1", {}),
    "9.0.1 server": ("9.0.1", {"DOTNET_gcServer": "1"}),
    "10.0.5": ("10.0.5", {}),
    "8.0.28": ("8.0.28", {}),
    "8.0.28 server": ("8.0.28", {"DOTNET_gcServer": "1"}),
    "3.1.23": ("3.1.23", {}),
    "3.1.23 server": ("3.1.23", {"COMPlus_gcServer": "1"}),
    "NativeAOT 9": (None, {}),
    "NativeAOT 8": (None, {}),
}


def single_file(program, name, assembly):
    """A single file with another assembly in the place of its program's, which is called `name`: at its end."""
    content = bytearray(program.read_bytes())
    new = (WORKLOADS / assembly).read_bytes()
    # The kind of an assembly and its path; before them are its offset, size and compressed size.
    at = content.rindex(b"\x01" + bytes([len(name)]) + name.encode())
    content += bytes(-len(content) % 4096)
    struct.pack_into("<qqq", content, at - 24, len(content), len(new), 0)
    file = OUTPUT / "single-file"
    file.unlink(missing_ok=True)
    file.write_bytes(content + new)
    file.chmod(0o755)
    return [str(file)]


def dotnet(version, assembly):
    folder, _ = VERSIONS[version]
    if version.startswith("8"):
        return single_file(RUNTIMES / folder / "Sarif.Multitool", "Sarif.Multitool.dll", assembly)
    program = RUNTIMES / folder / "dotnet"
    return [str(program), str(WORKLOADS / assembly)] if program.exists() else None


def native(version):
    program = OUTPUT / "workload-native"
    program.write_bytes(lzma.open(WORKLOADS / f"nativeaot/workload-{version[-1]}.xz").read())
    program.chmod(0o755)
    return [str(program)]


def take(program, kind):
    """Takes a core dump; returns its path, or the reason why there is none."""
    core = OUTPUT / f"core.{kind.replace(' ', '-')}"
    if kind == "kernel":
        return program.kernel_core()
    source, of = kind.split()
    options = ["--stream"] if source == "streamed" else []
    if source == "createdump" and program.has_report:
        options.append("--crashreport")
    code, _, error = dipc("dump", "-p", program.pid, "--type", of, "-o", core, *options)
    if code != 0:
        return None, next((line for line in error.splitlines() if line.startswith("error")), error.strip())
    return core, None


def bundled(assembly):
    """A program of 10.0.5, which is waited for."""
    program = Program(single_file(RUNTIMES / "10.0.5/azmcp", "azmcp.dll", assembly))
    program.line()
    return program


def of(found, expected):
    return f"{found} of {expected}"


def sampled_frames(program):
    """The frames of the running program, as in createdump's report, of the threads whose methods are those that
    the runtime's sampler sees."""
    _, out, _ = dipc("stack", "-p", program.pid, "--format", "json")
    sampled = {}
    for thread in json.loads(out)["threads"]:
        names = [frame["csharp"].rsplit("!", 1)[-1] for frame in thread["stacks"][0]["frames"]]
        sampled[thread["tid"]] = names
    _, out, _ = dipc("stack", "-p", program.pid, "--exact", "--format", "json")
    threads = []
    for thread in json.loads(out)["threads"]:
        # The sampler leaves out methods that were made in memory.
        named = [frame for frame in thread["frames"] if frame["method"]]
        names = sampled.pop(thread["tid"], [])
        if names != [frame["method"] for frame in named]:
            named = [{"address": "0x0", "token": "0x1"}] * len(names)
        rows = [{"native_address": frame["address"], "token": frame["token"]} for frame in named]
        # Without registers the innermost address is that in the runtime's frame of a call, near the real one.
        for innermost in rows[:1]:
            innermost["native_address"] = None
        threads.append({"native_thread_id": hex(thread["tid"]), "stack_frames": rows})
    lost = [{"native_address": "0x0", "token": "0x1"}] * sum(map(len, sampled.values()))
    return {"payload": {"threads": threads + [{"native_thread_id": "0x0", "stack_frames": lost}]}}


def frames(program, core, report):
    """Frames equal to createdump's in address and token, and those of them with a name."""
    stacks = view(core, "stacks")
    if isinstance(stacks, str):
        return stacks, stacks
    all_frames = [frame for thread in stacks["threads"] for frame in thread["frames"]]
    named = sum(frame["method"] is not None for frame in all_frames)
    names = of(named, len(all_frames))
    if report is None:
        return f"({len(all_frames)})", names
    rest = {thread["tid"]: iter(thread["frames"]) for thread in stacks["threads"]}
    found = expected = 0
    for thread in report["payload"]["threads"]:
        mine = rest.get(int(thread["native_thread_id"], 16), iter(()))
        for frame in thread["stack_frames"]:
            token = int(frame.get("token", "0x0"), 16)
            if token & 0xffffff == 0:
                continue
            expected += 1
            address = frame["native_address"]
            is_wanted = lambda it: int(it["token"] or "0x0", 16) == token and (
                address is None or int(it["address"], 16) == int(address, 16))
            found += any(map(is_wanted, mine))
    return of(found, expected), names


def parked_methods(core):
    """Frames of the workload's own methods that are those of its source, by thread, and those with a name."""
    stacks = view(core, "stacks")
    if isinstance(stacks, str):
        return stacks, stacks
    methods = [[frame["method"] for frame in thread["frames"]] for thread in stacks["threads"]]
    own = [[it for it in of_thread if it and it.startswith(("Parked.", "Spin.", "Program."))] for of_thread in methods]
    found = sum(len(expected) for expected in PARKED if expected in own)
    named = sum(it is not None for of_thread in methods for it in of_thread)
    return of(found, sum(map(len, PARKED))), of(named, sum(map(len, methods)))


def amounts(rows):
    sums = {}
    for row in rows:
        objects, size = sums.get((row["name"], row["module"]), (0, 0))
        sums[row["name"], row["module"]] = (objects + row["objects"], size + row["bytes"])
    return sums


def types(core, before, after):
    """Types whose objects and bytes are those of the runtime's own heap dump before the core dump or after it:
    the program goes on between them."""
    heap = view(core, "heap")
    if isinstance(heap, str) or before is None:
        return heap if isinstance(heap, str) else f"({len(heap['rows'])})"
    found = amounts(heap["rows"])
    expected = [(before[name], (after or before).get(name), found.get(name)) for name in before]
    return of(sum(it in (first, last) for first, last, it in expected), len(expected))


def names_of_threads(core, expected):
    threads = view(core, "threads")
    if isinstance(threads, str):
        return threads
    if expected is None:
        return f"({len(threads['threads'])})"
    found = {thread["name"] for thread in threads["threads"]}
    return of(len(found & expected), len(expected))


def exception(core):
    report = view(core, "exceptions")
    if isinstance(report, str):
        return report
    wanted = ("System.InvalidOperationException", "E-" + SECRET.upper())
    chains = [chain[0] for chain in (row["chain"] for row in report["exceptions"]) if chain]
    if any((it["type"], it["message"]) == wanted for it in chains):
        return of(1, 1)
    return "type only" if any(it["type"] == wanted[0] for it in chains) else of(0, 1)


def deadlock(core):
    report = view(core, "locks")
    if isinstance(report, str):
        return report
    return of(sum(len(cycle) == 2 for cycle in report["deadlocks"]), 1)


def chains(core):
    report = view(core, "async")
    if isinstance(report, str):
        return report
    found = sorted(group["chains"] for group in report["groups"])
    return of(sum(found.count(count) and 1 for count in CHAINS) if found != CHAINS else len(CHAINS), len(CHAINS))


def without_texts(value):
    if isinstance(value, dict):
        return {name: None if name in ("message", "name") else without_texts(it) for name, it in value.items()}
    return [without_texts(it) for it in value] if isinstance(value, list) else value


def stripped(core):
    """Views of a stripped copy that are the same but for texts, if it has no secret."""
    copy = OUTPUT / "copy"
    code, _, error = dipc("dump", "strip", core, "-o", copy)
    if code != 0:
        return error.strip().splitlines()[0].removeprefix("error: ")
    content = copy.read_bytes()
    parts = [part.encode(encoding) for part in (SECRET, SECRET.upper()) for encoding in ("utf-8", "utf-16-le")]
    if any(part in content for part in parts):
        return "has a secret"
    views = [["threads"], ["stacks", "--native"], ["exceptions"], ["locks"], ["async"], ["modules"], ["heap"]]
    same = sum(without_texts(view(core, *it)) == without_texts(view(copy, *it)) for it in views)
    copy.unlink()
    return of(same, len(views))


def park(version):
    """The workload with parked threads; the names that it gave them."""
    assembly = "netstandard2.1/workload.dll" if version.startswith("3") else "net8.0/workload.dll"
    command = native(version) if version.startswith("NativeAOT") else dotnet(version, assembly)
    program = Program(command, VERSIONS[version][1])
    program.line()
    for command in ("keep 1000", "park"):
        program.send(command)
        program.line()
    names = {"parked-lock", "parked-task"}
    return program, names


def server():
    program = Program([str(RUNTIMES / "10.0.5/azmcp"), "server", "start"])
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 5}}
    program.send(json.dumps(request))
    program.line()
    time.sleep(2)
    return program, None


def known(assembly, *arguments):
    def start(version):
        program = Program(dotnet(version, assembly) + list(arguments), VERSIONS[version][1])
        program.line()
        return program
    return start


def deadlocked(version):
    program = known("deadlock/deadlock.dll")(version)
    program.send("")
    program.line()
    time.sleep(3)
    return program


def heap_of_runtime(program):
    """The types of the runtime's own heap dump, by EventPipe."""
    snapshot = OUTPUT / "heap.gcdump"
    code, _, _ = dipc("gcdump", "collect", "-p", program.pid, "-o", snapshot)
    if code != 0:
        return None
    _, out, _ = dipc("gcdump", "report", snapshot, "--format", "json", "--no-retained")
    return amounts(json.loads(out)["rows"])


def third_heap(program):
    """The third heap dump: the first one has the runtime load what it takes, and objects that this leaves to
    the finalizer are in the second one and freed after it."""
    for _ in range(3):
        expected = heap_of_runtime(program)
    return expected


KINDS = ["createdump mini", "createdump triage", "createdump heap", "createdump full",
         "streamed mini", "streamed heap", "streamed full", "kernel"]


def row(version, kind):
    """The answers of one kind of core dump of one version."""
    answers = {}

    def with_core(program, answer):
        program.has_report = version.startswith("9") and kind.startswith("createdump")
        core, reason = take(program, kind)
        try:
            if core is None:
                return reason
            answer(core)
            return None
        finally:
            for path in OUTPUT.glob("core.*"):
                path.unlink()
            program.end()

    def parked(core):
        report = pathlib.Path(f"{core}.crashreport.json")
        report = json.loads(report.read_text()) if report.exists() else sampled
        answers["threads"] = names_of_threads(core, names)
        if version.startswith("NativeAOT"):
            answers["frames"], answers["names"] = parked_methods(core)
            answers["stripped"] = stripped(core)
        else:
            answers["frames"], answers["names"] = frames(program, core, report)
        if names is None:
            answers["stripped"] = stripped(core)
        else:
            types_of(program, expected, core)

    def types_of(program, expected, core):
        # The kernel's core dump is the end of the program.
        after = heap_of_runtime(program) if program.process.poll() is None else None
        answers["types"] = types(core, expected, after)

    def awaiting(core):
        answers["async"] = chains(core)
        types_of(program, expected, core)

    program, names = server() if version.startswith("10") else park(version)
    expected = None if names is None else third_heap(program)
    sampled = sampled_frames(program) if version.startswith(("3", "8")) else None
    reason = with_core(program, parked)
    if reason is not None:
        return reason
    if names is not None and not version.startswith("NativeAOT"):
        program = known("secrets/secrets.dll", SECRET)(version)
        with_core(program, lambda core: answers.update(exception=exception(core), stripped=stripped(core)))
        with_core(deadlocked(version), lambda core: answers.update(deadlock=deadlock(core)))
        with_core(known("awaits/awaits.dll")(version), lambda core: answers.update({"async": chains(core)}))
    if version.startswith("10"):
        # The server works in the background: its heap is another one at once.
        program = bundled("awaits/awaits10.dll")
        expected = third_heap(program)
        with_core(program, awaiting)
    return answers


def main():
    OUTPUT.mkdir(parents=True, exist_ok=True)
    print("| version | core dump | " + " | ".join(QUESTIONS) + " |")
    print("|---" * (len(QUESTIONS) + 2) + "|")
    notes = []
    for version in sys.argv[5:] or VERSIONS:
        folder, _ = VERSIONS[version]
        if folder is not None and not (RUNTIMES / folder).exists():
            notes.append(f"{version}: not set up (cargo xtask runtimes)")
            continue
        for kind in KINDS:
            answers = row(version, kind)
            if isinstance(answers, str):
                notes.append(f"{version}, {kind}: not taken: {answers}")
                continue
            cells = []
            for question in QUESTIONS:
                answer = answers.get(question, "-")
                short = answer == "-" or answer[0].isdigit() or answer.startswith("(") or len(answer) < 12
                if not short:
                    note = f"{version}, {kind}, {question}: {answer}"
                    notes.append(note)
                    answer = "no"
                cells.append(answer)
            print(f"| {version} | {kind} | " + " | ".join(cells) + " |", flush=True)
    print()
    for note in notes:
        print(f"- {note}")


main()
