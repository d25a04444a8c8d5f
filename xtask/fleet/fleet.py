"""Asks several SQL engines the same about exported recordings, and dipc itself.

Called by `cargo xtask fleet`: PROGRAM TESTDATA FOLDER FLEET RECORDINGS [ENGINE…]. FLEET is the folder of the jobs. Prints a line for each proof, and ends with
1 if one does not hold. With RECORDINGS other than 0 it makes so many recordings of simulated processes, and says what they take.
"""

import json
import lzma
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

PROGRAM, TESTDATA, FOLDER = (Path(argument).resolve() for argument in sys.argv[1:4])
JOBS, RECORDINGS = Path(sys.argv[4]).resolve(), int(sys.argv[5])
WANTED = [name.lower() for name in sys.argv[6:]]
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


def difference(first, other):
    """How many rows there are; the first ones that differ where some do."""
    if first == other:
        return f"{len(first)} rows"
    return list((Counter(first) - Counter(other)).items())[:2] + list((Counter(other) - Counter(first)).items())[:2]


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
            check(f"{name}: {engine.name} has the rows of {made[0].name}", first == other, difference(first, other))
    print()
    print("seconds".ljust(16), *[f"{engine.name:>12}" for engine in made], f"{'rows':>10}")
    for name in QUERIES:
        print(name.ljust(16), *[f"{times[name, engine.name]:12.2f}" for engine in made], f"{len(rows[name, made[0].name] or []):10}")
    print()
    return {name: rows[name, made[0].name] for name in QUERIES}


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


def columns_and_redaction(paths):
    """Promoted columns are in all engines; redacted texts in none of the files."""
    global DATA
    kept, DATA = DATA, FOLDER / "columns"
    by_name = {path.name: path for path in paths}
    first, second = by_name["net10-all.nettrace"], [by_name["net10-gcverbose.nettrace"], by_name["net10-exceptions.nettrace"]]
    field = "Microsoft-Windows-DotNETRuntime/GC/Start.Depth"
    hostile = "Shop'\"/O`r;d--e\\r.x y"
    dipc("export", first, "--to", DATA, "--label", "service=a")
    dipc("export", *second, "--to", DATA, "--label", "service=b", "--promote", f"{field}:long", "--promote", hostile, "--redact", "exception-messages", "--redact", "command-lines")
    # The column is that of the data set: the third export is not told of it.
    dipc("export", by_name["net9-everything.nettrace"], "--to", DATA, "--label", "service=c")
    for engine in engines():
        rows = engine.rows("SELECT count(p_microsoft_windows_dotnetruntime_gc_start_depth), count(p_shop___o_r_d__e_r_x_y), count(*) FROM events")
        counts = engine.rows("SELECT count(gc_generation) FROM events WHERE event = 'GC/Start' AND service <> 'a'")
        check(f"{engine.name}: a promoted column beside files without it, and one of a hostile name", rows[0][0] == counts[0][0] > 0 and rows[0][1] == 0, rows[0])
        left = engine.rows("SELECT count(*) FROM events WHERE service = 'b' AND length(replace(exception_message, 'x', '')) > 0")
        command_lines = engine.rows("SELECT count(*) FROM recordings WHERE service = 'b' AND length(replace(command_line, 'x', '')) > 0")
        all_messages = engine.rows("SELECT count(exception_message) FROM events WHERE service = 'b'")
        check(f"{engine.name}: redacted texts are letters without meaning", left[0][0] == command_lines[0][0] == 0 < all_messages[0][0], f"{all_messages[0][0]} messages")
    DATA = kept


class Store:
    """A server that speaks the protocol of Amazon S3, and another one that cuts what is sent to it."""

    def __init__(self):
        import socket

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.server = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-p", str(self.port)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.address = f"http://127.0.0.1:{self.port}"

    def environment(self, port=None, **more):
        endpoint = f"http://127.0.0.1:{port or self.port}"
        return {"PATH": os.environ["PATH"], "AWS_ENDPOINT": endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "HOME": str(FOLDER), **more}

    def client(self):
        import boto3

        return boto3.client("s3", endpoint_url=self.address, aws_access_key_id="key", aws_secret_access_key="secret", region_name="us-east-1")


def export_to_store(environment, *arguments):
    return subprocess.run([PROGRAM, "export", *arguments], capture_output=True, text=True, env=environment, timeout=300)


def cutting_proxy(port, cuts):
    """Passes requests on, but ends connections in the middle of bodies while `cuts` says so. Returns its port."""
    import socket
    import threading

    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source, target, limit):
        try:
            while data := source.recv(1 << 16):
                if limit[0] is not None and len(data) > limit[0]:
                    target.sendall(data[: limit[0]])
                    cuts["count"] += 1
                    break
                if limit[0] is not None:
                    limit[0] -= len(data)
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def serve():
        while True:
            client, _ = listener.accept()
            server = socket.create_connection(("127.0.0.1", port))
            limit = [cuts["after"]] if cuts["after"] is not None else [None]
            threading.Thread(target=pump, args=(client, server, limit), daemon=True).start()
            threading.Thread(target=pump, args=(server, client, [None]), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1]


def object_store(paths):
    """A data set in a store is that of a directory, byte for byte; nothing is visible of an upload that was cut."""
    try:
        import boto3
        import moto.server  # noqa: F401
    except ImportError as error:
        print(f"not run: object store: {error.name} is not installed")
        return
    store = Store()
    try:
        client, deadline = store.client(), time.monotonic() + 60
        while True:
            try:
                client.create_bucket(Bucket="fleet")
                break
            except Exception:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
        listing = FOLDER / "list"
        listing.write_text("".join(f"{path}\n" for path in paths))
        arguments = ["--files-from", listing, "--to", "s3://fleet/some data/x"]

        def objects():
            pages = client.get_paginator("list_objects_v2").paginate(Bucket="fleet")
            return {entry["Key"] for page in pages for entry in page.get("Contents", [])}

        missing = export_to_store(store.environment(), "--files-from", listing, "--to", "s3://no-such-bucket/x")
        check("object store: a bucket that is not there is named", missing.returncode == 1 and "s3://no-such-bucket/x/" in missing.stderr and "NoSuchBucket" in missing.stderr and "check the names" in missing.stderr, missing.stderr[:300])

        cuts = {"after": 4000, "count": 0}
        proxy = cutting_proxy(store.port, cuts)
        cut = export_to_store(store.environment(proxy), *arguments)
        visible = {key.split("/")[2] for key in objects()} - {"_shards"}
        whole = [key for key in objects() if "/recordings/" in key]
        check("object store: of an upload that was cut nothing is visible as exported", cut.returncode == 1 and cuts["count"] > 0 and not whole, f"{cuts['count']} cuts, {sorted(visible)}, {cut.stderr[-260:]!r}")
        cuts["after"] = None

        run = subprocess.Popen([PROGRAM, "export", *arguments, "-q"], env=store.environment(), stdout=subprocess.DEVNULL)
        try:
            run.wait(0.7)
        except subprocess.TimeoutExpired:
            run.kill()
            run.wait()
        done = export_to_store(store.environment(), *arguments)
        check("object store: an export that was killed goes on", done.returncode in (0, 6), done.stderr[-300:] if done.returncode not in (0, 6) else "")
        prefix = "some data/x/"
        stored = {key[len(prefix):]: client.get_object(Bucket="fleet", Key=key)["Body"].read() for key in objects()}
        expected = {str(path): content for path, content in contents(DATA).items()}
        check("object store: the files are those of a directory, byte for byte", stored == expected, f"{len(stored)} objects")
        again = export_to_store(store.environment(), *arguments, "--format", "json")
        check("object store: the same again has nothing to do", again.returncode == 0 and json.loads(again.stdout)["already"] == len(paths))
        uploads = client.list_multipart_uploads(Bucket="fleet").get("Uploads", [])
        check("object store: no part of an upload is left", not uploads, uploads[:2])

        export_of_book(store)

        # From now on the server knows its users, and checks their signatures.
        import urllib.request

        iam = boto3.client("iam", endpoint_url=store.address, aws_access_key_id="key", aws_secret_access_key="secret", region_name="us-east-1")
        iam.create_user(UserName="exporter")
        key = iam.create_access_key(UserName="exporter")["AccessKey"]
        policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
        iam.put_user_policy(UserName="exporter", PolicyName="all", PolicyDocument=json.dumps(policy))
        request = urllib.request.Request(f"{store.address}/moto-api/reset-auth", data=b"0", method="POST", headers={"Content-Type": "text/plain"})
        urllib.request.urlopen(request)
        right = {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
        signed = export_to_store(store.environment(**right), paths[0], "--to", "s3://fleet/it's signed+(ü)", "--label", f"service={SERVICES[1]}")
        check("object store: a server that checks signatures takes them", signed.returncode == 0, signed.stderr[:400])
        wrong = export_to_store(store.environment(**right | {"AWS_SECRET_ACCESS_KEY": "wrong"}), paths[0], "--to", "s3://fleet/signed")
        check("object store: wrong keys are a clear end", wrong.returncode == 1 and "s3://fleet/signed" in wrong.stderr and "SignatureDoesNotMatch" in wrong.stderr and "AWS_SECRET_ACCESS_KEY" in wrong.stderr, wrong.stderr[:400])
    finally:
        store.server.kill()
        store.server.wait()


def jobs(paths):
    """The shell commands of the jobs for cron and Kubernetes export what a single command exports."""
    folder = FOLDER / "jobs"
    folder.mkdir()
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    (bin_folder / "dipc").symlink_to(PROGRAM)
    environment = os.environ | {"PATH": f"{bin_folder}:{os.environ['PATH']}"}
    source = folder / "recordings"
    source.mkdir()
    for path in paths:
        for name in (path, Path(f"{path}.json")):
            shutil.copy(name, source)
        os.utime(source / path.name, (0, 0))
    names = sorted(str(path) for path in source.iterdir() if path.suffix != ".json")
    (source / "list").write_text("".join(f"{name}\n" for name in names))

    def local(text, to):
        return text.replace("/recordings", str(source)).replace("/data", str(to)).replace("/run/lock", str(folder)).replace("/var/log", str(folder))

    def exported(to):
        done = dipc("export", "--files-from", source / "list", "--to", to, "--format", "json")
        return json.loads(done.stdout)["already"], json.loads(done.stdout)["recordings"]

    line = [line for line in (JOBS / "crontab").read_text().splitlines() if line and not line.startswith("#")][0]
    fields, command = line.split()[:5], line.split(None, 5)[5]
    done = subprocess.run(["sh", "-c", local(command, folder / "cron")], env=environment, capture_output=True, text=True)
    plain = sum(name.endswith(".nettrace") for name in names)
    already, new = exported(folder / "cron")
    check("cron: the command exports what it finds", done.returncode in (0, 6) and already == plain and fields == ["5", "*", "*", "*", "*"], f"{already} of {plain} recordings, {done.stderr[-200:] if done.returncode not in (0, 6) else ''}")

    try:
        import yaml
    except ImportError as error:
        print(f"not run: the Kubernetes job: {error.name} is not installed")
        return
    job = yaml.safe_load((JOBS / "kubernetes-job.yaml").read_text())
    container = job["spec"]["template"]["spec"]["containers"][0]
    ends = []
    for index in range(job["spec"]["completions"]):
        script = local(container["args"][0], folder / "job")
        done = subprocess.run([*container["command"], script], env=environment | {"JOB_COMPLETION_INDEX": str(index)}, capture_output=True, text=True)
        ends.append(done.returncode)
    already, new = exported(folder / "job")
    check("Kubernetes: the workers of the job export each recording", set(ends) == {0} and (already, new) == (len(names), 0), f"{already} recordings by {len(ends)} workers")


class Cluster:
    """A Spark master and two workers, processes of their own on this machine."""

    def __init__(self):
        import pyspark

        self.home = Path(pyspark.__file__).parent
        self.log = (FOLDER / "cluster.log").open("w")
        environment = os.environ | {"SPARK_HOME": str(self.home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        self.environment = environment | {"PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
        start = [self.home / "bin/spark-class"]
        master = [*start, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "7177", "--webui-port", "0"]
        worker = [*start, "org.apache.spark.deploy.worker.Worker", "spark://127.0.0.1:7177", "--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", FOLDER / "spark-work"]
        self.processes = [subprocess.Popen(command, env=self.environment, stdout=self.log, stderr=self.log) for command in (master, worker, worker)]

    def submit(self, *arguments):
        command = [self.home / "bin/spark-submit", "--master", "spark://127.0.0.1:7177", "--conf", "spark.ui.enabled=false", *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=900)

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()


QUERY_JOB = """
import json, sys, time
from pyspark.sql import SparkSession

spark = SparkSession.builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
statements, queries = json.load(open(sys.argv[1]))
for statement in statements:
    spark.sql(statement)
results = {}
for name, sql in queries.items():
    start = time.monotonic()
    rows = [list(row) for row in spark.sql(sql).collect()]
    results[name] = (time.monotonic() - start, rows)
workers = len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) - 1
# Decimals are whole numbers here.
json.dump([results, workers], open(sys.argv[2], "w"), default=int)
"""


def many(count):
    """Makes many recordings of simulated processes, and says what their data set takes."""
    global DATA
    kept, DATA = DATA, FOLDER / "many"
    source = FOLDER / "many-recordings"
    source.mkdir()
    sockets = FOLDER / "sockets-of-many"
    sockets.mkdir()
    sims, endpoints = [], []
    for _ in range(8):
        sim = subprocess.Popen([PROGRAM, "sim", "--dir", sockets, "--rate", "20000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        sims.append(sim)
        endpoints.append(sim.stdout.readline().split()[2])
    start = time.monotonic()
    try:
        from concurrent.futures import ThreadPoolExecutor

        def record(index):
            path = source / f"pod-{index}.nettrace"
            dipc("trace", "--diagnostic-port", f"{endpoints[index % 8]},connect", "--providers", "Dipc-Simulated,Microsoft-DotNETCore-SampleProfiler", "--duration", "300ms", "-o", path, "-q")
            labels = {"service": f"service-{index % 20}", "version": VERSIONS[index // 20 % 2], "pod": f"pod-{index}"}
            Path(f"{path}.json").write_text(json.dumps(labels))
            return path

        with ThreadPoolExecutor(8) as pool:
            paths = list(pool.map(record, range(count)))
    finally:
        for sim in sims:
            sim.stdin.close()
            sim.wait(10)
    print(f"\n{count} recordings, {sum(path.stat().st_size for path in paths):,} bytes, made in {time.monotonic() - start:.0f} s")
    # Those of real runtimes have the collections, exceptions and requests that a simulation has not.
    paths += recordings()
    count = len(paths)
    print(f"with those of testdata {count}, {sum(path.stat().st_size for path in paths):,} bytes")
    listing = FOLDER / "many-list"
    listing.write_text("".join(f"{path}\n" for path in paths))
    before, start = os.times(), time.monotonic()
    summary = json.loads(dipc("export", "--files-from", listing, "--to", DATA, "--format", "json").stdout)
    wall, after = time.monotonic() - start, os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    events = summary["events"] + summary["samples"] + summary["left_out"]
    files = sum(table["files"] for table in summary["tables"])
    stored = sum(table["bytes"] for table in summary["tables"])
    check("many: all recordings are exported", summary["recordings"] == count and not summary["failed"], f"{events:,} events")
    print(f"export: {wall:.1f} s, {processor:.1f} s of processors, {events / processor:,.0f} events/s a core; {files} files, {stored:,} bytes, {stored / events:.2f} a row")
    made = list(engines())
    for engine in made:
        account(engine)
    expected = same_in_all(made) if made else {}
    if "DuckDB" in [engine.name for engine in made]:
        roll_up_and_compact(made[0])
    cluster(listing, count, expected)
    DATA = kept


def blocks_of_book():
    """The blocks of the book's chapter that its own test does not run: they need an engine or a store."""
    text = (JOBS.parent / "crates/dipc-cli/help/fleet.md").read_text()
    return [block.split("```")[0] for block in text.split("```text\n")[1:]]


def statements_of_book(word):
    """The SQL of the book's chapter that has this word."""
    return next(block for block in blocks_of_book() if word in block)


def command_of(block):
    """The variables, the words and the output of the command of a block, which may have several lines."""
    lines = block.removeprefix("$ ").splitlines()
    for end in range(1, len(lines) + 1):
        try:
            words = shlex.split("\n".join(lines[:end]))
        except ValueError:
            continue
        variables = [word.split("=", 1) for word in words[: words.index("dipc")]]
        return dict(variables), words[len(variables) + 1:], lines[end:]
    raise SystemExit(f"no command: {block}")


def queries_of_book():
    """What `dipc sql` prints is what the chapter shows of the recordings that it exports."""
    duckdb = shutil.which("duckdb", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if not duckdb or (WANTED and "duckdb" not in WANTED):
        print("not run: the queries of the book: duckdb is in no folder of PATH" if not duckdb else "not run: the queries of the book: DuckDB was not asked for")
        return
    environment = os.environ | {"PATH": f"{Path(duckdb).parent}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    shown, folder = FOLDER / "book", FOLDER / "book-all"
    for made in (shown, folder):
        made.mkdir()
    for name, source in (("web.nettrace", "net9-web.nettrace"), ("sample.nettrace", "net10-sample.nettrace")):
        shutil.copy(FOLDER / source, shown / name)
    (shown / "web.nettrace.json").write_text('{"version": "1.4", "pod": "shop-7"}')
    dipc("export", shown / "web.nettrace", shown / "sample.nettrace", "--to", shown / "data", "--label", "service=shop")
    # One without an output asks for releases, which these recordings are not of.
    (folder / "data").symlink_to(DATA)
    blocks = [block for block in blocks_of_book() if block.startswith("$ dipc sql")]
    check("the book: its queries", len(blocks) >= 2, len(blocks))
    cells = lambda lines: [[cell.strip() for cell in line.strip("│ ").split("│")] for line in lines if "│" in line]
    for block in blocks:
        _, words, output = command_of(block)
        query = " ".join(words[2].split())[:60]
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=shown if output else folder, env=environment)
        found = cells(done.stdout.splitlines())
        holds = done.returncode == 0 and (found == cells(output) if output else len(found) > 3)
        check(f"the book: {query}…", holds, f"{len(found)} lines" if holds else f"{done.returncode}: {done.stdout[:600]}{done.stderr[:300]}")


def export_of_book(store):
    """The command of the chapter exports into a bucket, with the store's address in the place of the chapter's."""
    block = next(block for block in blocks_of_book() if "s3://" in block)
    variables, words, _ = command_of(block)
    environment = store.environment() | variables | {"AWS_ENDPOINT": store.address}
    shutil.copy(FOLDER / "net9-web.nettrace", FOLDER / "web.nettrace")
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, cwd=FOLDER, env=environment, timeout=300)
    check("the book: an export into an object store", done.returncode == 0 and "1 exported" in done.stderr + done.stdout, done.stderr[-300:] or done.stdout[:80])
    entries = store.client().list_objects_v2(Bucket="fleet", Prefix="shop/").get("Contents", [])
    check("the book: the bucket has the tables", any("/samples/" in entry["Key"] for entry in entries), f"{len(entries)} objects")


def roll_up_and_compact(duck):
    """The roll-up of the book has the sums of the samples, and the compaction all rows."""
    folder = FOLDER / "rolled"
    connection = duck.connection
    roll_up = statements_of_book("'profiles'").replace("'profiles'", f"'{folder}'")
    start = time.monotonic()
    connection.execute(roll_up)
    seconds = time.monotonic() - start
    sums = connection.execute(f"SELECT CAST(sum(ns) AS BIGINT), CAST(sum(count) AS BIGINT), count(*) FROM read_parquet('{folder}/*/*/*.parquet')").fetchone()
    expected = connection.execute("SELECT CAST(sum(ns) AS BIGINT), count(*) FROM samples").fetchone()
    size = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
    before = sum(path.stat().st_size for path in DATA.glob("samples/*/*/*.parquet"))
    check("roll-up: the sums of the samples", sums[:2] == expected, f"{expected[1]:,} samples in {sums[2]:,} rows, {before:,} bytes in {size:,}, {seconds:.2f} s")
    compacted = FOLDER / "compacted"
    compact = statements_of_book("'compacted/events'").replace("'compacted/events'", f"'{compacted}'")
    start = time.monotonic()
    connection.execute(compact)
    seconds = time.monotonic() - start
    counts = connection.execute(f"SELECT count(*), count(DISTINCT recording) FROM read_parquet('{compacted}/*/*/*.parquet')").fetchone()
    expected = connection.execute("SELECT count(*), count(DISTINCT recording) FROM events").fetchone()
    old, new = list(DATA.glob("events/*/*/*.parquet")), list(compacted.rglob("*.parquet"))
    sizes = [sum(path.stat().st_size for path in paths) for paths in (old, new)]
    check("compaction: all events", counts == expected, f"{len(old)} files, {sizes[0]:,} bytes in {len(new)}, {sizes[1]:,}, {seconds:.2f} s")


def cluster(listing, count, expected):
    """The job of the folder `fleet` on a Spark cluster: the same recordings, and the same rows of the same queries."""
    if WANTED and "spark" not in WANTED:
        return
    try:
        spark = Cluster()
    except ImportError as error:
        print(f"not run: a Spark cluster: {error.name} is not installed")
        return
    try:
        to = FOLDER / "by-cluster"
        start = time.monotonic()
        done = spark.submit(JOBS / "spark_export.py", listing, to, "8")
        wall = time.monotonic() - start
        again = json.loads(dipc("export", "--files-from", listing, "--to", to, "--format", "json").stdout) if done.returncode == 0 else {}
        total = again.get("already", 0)
        check("a Spark cluster of two workers: its job exports all recordings", done.returncode == 0 and total == count and again["recordings"] == 0, f"{total} recordings in {wall:.1f} s" if done.returncode == 0 else done.stderr[-600:])
        job, given, result = FOLDER / "query.py", FOLDER / "query.json", FOLDER / "query-result.json"
        job.write_text(QUERY_JOB)
        given.write_text(json.dumps([statements("spark"), QUERIES]))
        done = spark.submit(job, given, result)
        check("a Spark cluster of two workers: the queries", done.returncode == 0, "" if done.returncode == 0 else done.stderr[-600:])
        if done.returncode == 0:
            results, workers = json.loads(result.read_text())
            check("a Spark cluster: its workers", workers == 2, workers)
            for name, (taken, rows) in results.items():
                rows = normal(rows)
                if name in expected:
                    check(f"{name}: a Spark cluster has the rows of the first engine", rows == expected[name], f"{difference(expected[name], rows)}, {taken:.2f} s")
    finally:
        spark.stop()


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    if RECORDINGS:
        many(RECORDINGS)
        return
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
    if made[0].name == "DuckDB":
        roll_up_and_compact(made[0])
    queries_of_book()
    killed(paths)
    old_schema(paths)
    columns_and_redaction(paths)
    jobs(paths)
    object_store(paths)


main()
sys.exit(failed)
