"""Asks several SQL engines the same about exported recordings, and dipc itself.

Called by `cargo xtask fleet`: PROGRAM TESTDATA FOLDER [ENGINE…]. Prints a line for each proof, and ends with 1 if one does not hold.
"""

import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

PROGRAM, TESTDATA, FOLDER = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
WANTED = [name.lower() for name in sys.argv[4:]]
DATA = FOLDER / "data"
SERVICES = ["shop", "it's a/b %2F"]
VERSIONS = ["1.4", "1.5"]
failed = False


def check(name, holds, detail=""):
    global failed
    failed |= not holds
    print(f"{'ok  ' if holds else 'FAIL'} {name}{': ' + str(detail) if detail != '' else ''}", flush=True)


def dipc(*arguments, codes=(0, 6)):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    if done.returncode not in codes:
        raise SystemExit(f"{arguments}: {done.returncode}: {done.stderr}")
    return done


def report(path, *arguments):
    """A report as JSON; None where the recording has nothing for it."""
    done = dipc("report", path, *arguments, "--format", "json", codes=(0, 1, 6))
    return json.loads(done.stdout) if done.stdout.strip() else None


def recordings():
    """Unpacks the recordings of testdata, and cuts one."""
    found = []
    for packed in sorted([*TESTDATA.glob("traces/*.xz"), *TESTDATA.glob("reference/*.nettrace.xz")]):
        path = FOLDER / packed.stem
        path.write_bytes(lzma.decompress(packed.read_bytes()))
        found.append(path)
    for plain in sorted(TESTDATA.glob("traces/synth-v*.net*")):
        if plain.suffix in (".nettrace", ".netperf"):
            found.append(Path(shutil.copy(plain, FOLDER)))
    cut = FOLDER / "cut.nettrace"
    cut.write_bytes((FOLDER / "net10-sample.nettrace").read_bytes()[:300_000])
    found.append(cut)
    found.append(simulated())
    for index, path in enumerate(found):
        labels = {"service": SERVICES[index % 7 == 3], "version": VERSIONS[index % 2], "pod": f"pod-{index}"}
        Path(f"{path}.json").write_text(json.dumps(labels))
    return found


def simulated():
    """Records a runtime that `dipc sim` simulates."""
    folder = FOLDER / "sockets"
    folder.mkdir()
    sim = subprocess.Popen([PROGRAM, "sim", "--dir", folder, "--rate", "20000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        _, _, endpoint = sim.stdout.readline().split()
        path = FOLDER / "simulated.nettrace"
        dipc("trace", "--diagnostic-port", f"{endpoint},connect", "--duration", "2s", "-o", path, "-q")
        return path
    finally:
        sim.stdin.close()
        sim.wait(10)


def statements(dialect):
    text = dipc("schema", str(DATA), "--dialect", dialect).stdout
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return [statement for statement in "\n".join(lines).split(";\n") if statement.strip()]


class DuckDb:
    name = "DuckDB"

    def __init__(self):
        import duckdb

        self.connection = duckdb.connect()
        self.version = duckdb.__version__
        for statement in statements("duckdb"):
            self.connection.execute(statement)

    def rows(self, sql):
        return self.connection.execute(sql).fetchall()


class DataFusion:
    name = "DataFusion"

    def __init__(self):
        import datafusion

        self.context = datafusion.SessionContext()
        self.version = datafusion.__version__
        for statement in statements("datafusion"):
            self.context.sql(statement).collect()

    def rows(self, sql):
        table = self.context.sql(sql).to_arrow_table()
        return list(zip(*[column.to_pylist() for column in table.columns]))


class Spark:
    name = "Spark"

    def __init__(self):
        import pyspark
        from pyspark.sql import SparkSession

        self.version = pyspark.__version__
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.log.level", "ERROR").config("spark.ui.showConsoleProgress", "false")
        self.session = builder.getOrCreate()
        for statement in statements("spark"):
            self.session.sql(statement)

    def rows(self, sql):
        return [tuple(row) for row in self.session.sql(sql).collect()]


class ClickHouse:
    name = "ClickHouse"

    def __init__(self):
        import chdb
        from chdb import session

        self.version = getattr(chdb, "engine_version", chdb.__version__)
        self.session = session.Session()
        self.session.query("CREATE DATABASE IF NOT EXISTS fleet ENGINE = Atomic")
        self.session.query("USE fleet")
        for statement in statements("clickhouse"):
            self.session.query(statement)

    def rows(self, sql):
        text = str(self.session.query(sql, "JSONCompactEachRow"))
        return [tuple(json.loads(line)) for line in text.splitlines()]


QUERIES = {
    "events by kind": "SELECT service, version, provider, event, events FROM event_counts",
    "top methods": "SELECT service, version, kind, method, samples, self_ns FROM top_methods",
    "inclusive": "SELECT service, version, kind, method, samples, ns FROM inclusive",
    "allocations": "SELECT service, version, event, type, events, bytes FROM allocations",
    "exceptions": "SELECT service, version, type, count, first_message FROM exceptions",
    "GC pauses": "SELECT recording, pid, gc_number, reason, start_ns, end_ns, pause_ns FROM gc_pauses",
    "requests": "SELECT recording, pid, provider, role, name, start_ns, duration_ns, status, is_error FROM requests",
    "two releases": "SELECT service, version_a, version_b, method_key, round(share_a * 1000000), round(share_b * 1000000), samples_a, samples_b FROM compare",
}

ACCOUNT = """
SELECT r.recording, r.events, r.samples, r.left_out, coalesce(e.n, 0), coalesce(s.n, 0), coalesce(s.ns, 0), coalesce(j.n, 0), coalesce(j.ns, 0)
FROM recordings r
LEFT JOIN (SELECT recording, count(*) AS n FROM events GROUP BY recording) e ON e.recording = r.recording
LEFT JOIN (SELECT recording, count(*) AS n, CAST(coalesce(sum(ns), 0) AS BIGINT) AS ns FROM samples WHERE stack_id IS NOT NULL GROUP BY recording) s ON s.recording = r.recording
LEFT JOIN (SELECT recording, count(*) AS n, CAST(coalesce(sum(ns), 0) AS BIGINT) AS ns FROM samples x JOIN stacks k ON k.stack_id = x.stack_id
  JOIN frames f ON f.frame_id = k.leaf GROUP BY recording) j ON j.recording = r.recording
"""


def normal(rows):
    """Rows in an order of their own; numbers as numbers, whatever type an engine gives them."""
    def value(cell):
        if isinstance(cell, bool) or cell is None or isinstance(cell, str):
            return cell
        return int(cell)

    return sorted((tuple(map(value, row)) for row in rows), key=lambda row: tuple((cell is None, str(cell)) for cell in row))


def engines():
    for engine in (DuckDb, DataFusion, Spark, ClickHouse):
        if WANTED and engine.name.lower() not in WANTED:
            print(f"not run: {engine.name}: not asked for")
            continue
        try:
            made = engine()
        except ImportError as error:
            print(f"not run: {engine.name}: {error.name} is not installed")
        except Exception as error:  # The engine's own, of whatever kind: the other engines go on.
            check(f"{engine.name}: the views", False, str(error)[:400])
        else:
            yield made


def account(engine):
    rows = engine.rows(ACCOUNT)
    wrong = [row for row in rows if row[1] != row[4] or row[5] != row[7] or row[6] != row[8]]
    check(f"{engine.name} {engine.version}: each event is one row, and joins keep all samples", rows and not wrong, f"{len(rows)} recordings, {sum(row[1] + row[2] for row in rows)} rows")
    return {row[0]: row[1] + row[2] + row[3] for row in rows}


def same_in_all(made):
    times, rows = {}, {}
    for name, sql in QUERIES.items():
        for engine in made:
            start = time.monotonic()
            try:
                rows[name, engine.name] = normal(engine.rows(sql))
            except Exception as error:
                check(f"{engine.name}: {name}", False, str(error)[:400])
                rows[name, engine.name] = None
            times[name, engine.name] = time.monotonic() - start
        first = rows[name, made[0].name]
        for engine in made[1:]:
            other = rows[name, engine.name]
            if other is None:
                continue
            difference = list((Counter(first) - Counter(other)).items())[:2] + list((Counter(other) - Counter(first)).items())[:2]
            check(f"{name}: {engine.name} has the rows of {made[0].name}", first == other, f"{len(first)} rows" if first == other else difference)
    print()
    print("seconds".ljust(16), *[f"{engine.name:>12}" for engine in made])
    for name in QUERIES:
        print(name.ljust(16), *[f"{times[name, engine.name]:12.2f}" for engine in made])
    print()


def as_reported(engine, paths):
    """The rows of single recordings are those of `dipc report`."""
    by_uri = {uri: recording for recording, uri in engine.rows("SELECT recording, uri FROM recordings")}
    compared = Counter()
    for path in paths:
        recording = by_uri[str(path)]
        only = f"recording = '{recording}'"
        stat = json.loads(dipc("stat", path, "--format", "json").stdout)
        counts = {(provider, event, number): count for provider, event, number, count in engine.rows(f"SELECT provider, event, event_id, count(*) FROM events WHERE {only} GROUP BY provider, event, event_id")}
        expected = Counter()
        for row in stat["types"]:
            if "Rundown" not in row["provider"] and "SampleProfiler" not in row["provider"] and row["name"] != "cpu":
                expected[row["provider"], row["id"]] += row["events"]
        found = Counter()
        for (provider, _, number), count in counts.items():
            found[provider, number] += count
        if not equal(f"{path.name}: events by kind", found, expected):
            continue
        compared["events by kind"] += len(expected)

        top = report(path, "topN", "--idle", "--by", "wall")
        if top and top["rows"]:
            self_ns = {method: ns for method, ns in engine.rows(f"SELECT f.name, CAST(sum(s.ns) AS BIGINT) FROM samples s JOIN stacks k ON k.stack_id = s.stack_id JOIN frames f ON f.frame_id = k.leaf WHERE {only} GROUP BY f.name") if ns}
            equal(f"{path.name}: top methods", self_ns, {row["frame"]: row["exclusive"] for row in top["rows"] if row["exclusive"]})
            inclusive = {method: ns for method, ns in engine.rows(f"SELECT f.name, CAST(sum(s.ns) AS BIGINT) FROM samples s JOIN (SELECT DISTINCT stack_id, name FROM stack_frames) f ON f.stack_id = s.stack_id WHERE {only} GROUP BY f.name") if ns}
            equal(f"{path.name}: inclusive", inclusive, {row["frame"]: row["inclusive"] for row in top["rows"] if row["inclusive"]})
            compared["top methods"] += len(self_ns)
            compared["inclusive"] += len(inclusive)
        thrown = report(path, "exceptions")
        if thrown:
            types = dict(engine.rows(f"SELECT exception_type, count(*) FROM events WHERE {only} AND exception_type IS NOT NULL GROUP BY exception_type"))
            equal(f"{path.name}: exceptions", types, {row["type"]: row["count"] for row in thrown["types"]})
            compared["exceptions"] += len(types)
        collections = report(path, "gc")
        if collections:
            pauses = sorted(row[0] for row in engine.rows(f"SELECT pause_ns FROM gc_pauses WHERE {only}"))
            told = collections["pauses"]
            equal(f"{path.name}: GC pauses", (len(pauses), sum(pauses), max(pauses, default=0)), (told["count"], told["total_ns"], told["max_ns"]))
            compared["GC pauses"] += len(pauses)
        allocated = report(path, "alloc")
        if allocated:
            types = {}
            for event, name, count, size in engine.rows(f"SELECT event, alloc_type, count(*), CAST(sum(alloc_bytes) AS BIGINT) FROM events WHERE {only} AND alloc_type IS NOT NULL GROUP BY event, alloc_type"):
                types.setdefault(name, (count, size))
            told = {row["type"]: (row["samples"], row["bytes"]) for row in allocated["types"]}
            equal(f"{path.name}: allocations", types, told)
            compared["allocations"] += len(types)
        requests = report(path, "requests")
        if requests:
            rows = engine.rows(f"SELECT role, name, count(*), CAST(sum(duration_ns) AS BIGINT) FROM requests WHERE {only} AND provider = 'System.Net.Http' GROUP BY role, name")
            told = sorted((row["role"], row["name"], row["count"], row["latencies"]["total_ns"]) for row in requests["rows"] if row["provider"] == "System.Net.Http" and row["count"])
            equal(f"{path.name}: requests of HttpClient", sorted(map(tuple, rows)), told)
            compared["requests"] += len(told)
    for name, count in compared.items():
        check(f"dipc's own reports: {name}", count > 0, f"{count} rows compared")


def equal(name, found, expected):
    if found != expected:
        if isinstance(found, dict) and isinstance(expected, dict):
            keys = [key for key in {*found, *expected} if found.get(key) != expected.get(key)]
            detail = [(key, found.get(key), expected.get(key)) for key in keys[:3]]
        else:
            detail = (str(found)[:300], str(expected)[:300])
        check(name, False, detail)
    return found == expected


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def killed(paths):
    """An export that is killed at any time ends with the same files."""
    expected = contents(DATA)
    list_file = FOLDER / "list"
    list_file.write_text("".join(f"{path}\n" for path in paths))
    folder = FOLDER / "killed"
    kills, delay = 0, 0.02
    while True:
        run = subprocess.Popen([PROGRAM, "export", "--files-from", list_file, "--to", folder, "-q"], stdout=subprocess.DEVNULL)
        try:
            run.wait(delay)
            break
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGKILL)
            run.wait()
            kills, delay = kills + 1, delay * 1.3
    shutil.rmtree(folder / "_tmp", ignore_errors=True)
    check("an export that was killed, and done again, has the same files", contents(folder) == expected and kills > 0, f"killed {kills} times, {len(expected)} files")


def old_schema(paths):
    """Files of an older schema, which lack the last columns, are read with the new ones."""
    global DATA
    import duckdb

    old = FOLDER / "old"
    shutil.copytree(DATA, old)
    for path in sorted(old.glob("recordings/*/*/*.parquet"))[:1]:
        duckdb.sql(f"COPY (SELECT * EXCLUDE (date, service, labels, unnamed_methods) FROM read_parquet('{str(path).replace(chr(39), chr(39) * 2)}')) TO '{FOLDER}/one.parquet' (FORMAT parquet)")
        shutil.move(FOLDER / "one.parquet", path)
    data, DATA = DATA, old
    for engine in engines():
        rows = engine.rows("SELECT count(*), count(labels), count(DISTINCT service) FROM recordings")
        all_rows, with_labels, services = rows[0]
        check(f"{engine.name}: old and new files together, and hostile names", all_rows == len(paths) and 0 < with_labels < all_rows and services == len(SERVICES), rows)
    DATA = data


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    paths = recordings()
    dipc("export", *paths, "--to", DATA)
    made = list(engines())
    if not made:
        print("not run: no engine is installed")
        return
    for engine in made:
        counts = account(engine)
    by_uri = dict(made[0].rows("SELECT uri, recording FROM recordings"))
    wrong = [path.name for path in paths if counts.get(by_uri.get(str(path))) != json.loads(dipc("stat", path, "--format", "json").stdout)["events"]]
    check("events, samples and what was left out are the events of each recording", not wrong, wrong or f"{len(paths)} recordings")
    same_in_all(made)
    as_reported(made[0], paths)
    killed(paths)
    old_schema(paths)


main()
sys.exit(failed)
