"""The times at which the rules of rules.json fire, by the documentation of dotnet-monitor's triggers.

Reads the events of the recording as JSON (dipc events rules.nettrace --format jsonl) from standard input, and
writes a line for each rule: its name and the seconds since the recording's start. It knows nothing of the
engine: triggers are written here once more, each in the plainest way. Actions take no time.
"""
import json
import re
import sys
from pathlib import Path

events = [json.loads(line) for line in sys.stdin]
configuration = json.loads((Path(__file__).parent / "rules.json").read_text())
END = max(event["time_ns"] for event in events)


def seconds(text):
    hours, minutes, rest = text.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)


def arguments(event):
    return {pair["Key"]: pair["Value"] for pair in event["fields"]["Arguments"]}


# Requests, from the events of DiagnosticSource.
starts, stops = [], []
for event in events:
    if event["name"] == "Activity1/Start":
        values = arguments(event)
        starts.append({"id": values["ActivityId"], "path": values["Path"], "time": event["time_ns"] / 1e9})
    elif event["name"] == "Activity1/Stop":
        values = arguments(event)
        stops.append({"id": values["ActivityId"], "status": int(values["StatusCode"]), "time": event["time_ns"] / 1e9})
paths = {start["id"]: start["path"] for start in starts}
begun = {start["id"]: start["time"] for start in starts}
ended = {stop["id"]: stop["time"] for stop in stops}


def pattern(text):
    text = text.strip("/")
    expression = re.escape(text).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
    return re.compile(f"^{expression}$", re.IGNORECASE)


def is_chosen(path, settings):
    path = path.strip("/")
    if any(pattern(text).match(path) for text in settings.get("ExcludePaths", [])):
        return False
    include = settings.get("IncludePaths", [])
    return not include or any(pattern(text).match(path) for text in include)


def windows(times, count, length):
    """The points at which `count` of them are within the window; then it is empty again."""
    fired, window = [], []
    for time in times:
        window = [other for other in window if time - other <= length] + [time]
        if len(window) >= count:
            fired.append(time)
            window = []
    return fired


def durations(settings):
    """Requests count when they have lasted so long, unless they had begun before the last firing."""
    least, window = seconds(settings["RequestDuration"]), seconds(settings.get("SlidingWindowDuration", "00:01:00"))
    slow = [
        (start["time"] + least, start["time"])
        for start in starts
        if is_chosen(start["path"], settings) and ended.get(start["id"], END / 1e9) - start["time"] >= least
    ]
    fired, waiting, last = [], [], -1.0
    for time, begin in sorted(slow):
        if begin <= last:
            continue
        waiting = [other for other in waiting if time - other <= window] + [time]
        if len(waiting) >= settings["RequestCount"]:
            fired.append(time)
            waiting, last = [], time
    return fired


def passes(value, settings):
    return not (value <= settings.get("GreaterThan", float("-inf")) or value >= settings.get("LessThan", float("inf")))


def streaks(values, settings):
    """Values have to pass for the window, without a break or a hole of more than 1.5 intervals."""
    window, fired, start, latest = seconds(settings["SlidingWindowDuration"]), [], None, None
    for time, interval, value in values:
        if not passes(value, settings):
            start = None
            continue
        if start is None or time - latest > 1.5:
            start = time - interval
        latest = time
        if time - start >= window:
            fired.append(time)
            start = None
    return fired


def event_counters(provider, name):
    for event in events:
        if event["name"] == "EventCounters" and event["provider"] == provider:
            payload = event["fields"][""]["Payload"]
            if payload["Name"] == name:
                value = payload["Mean"] if payload["CounterType"] == "Mean" else payload["Increment"]
                yield event["time_ns"] / 1e9, payload["IntervalSec"], value


def meters(settings):
    """Each set of tags is a series of its own."""
    series = {}
    for event in events:
        fields = event["fields"] or {}
        if fields.get("meterName") != settings["MeterName"] or fields.get("instrumentName") != settings["InstrumentName"]:
            continue
        if "quantiles" in fields:
            quantiles = dict(part.split("=") for part in fields["quantiles"].split(";") if part)
            value = quantiles.get(f"0.{settings['HistogramPercentile']}")
        else:
            value = fields.get("value") if "ValuePublished" in event["name"] else None
        if value not in (None, ""):
            series.setdefault(fields["tags"], []).append((event["time_ns"] / 1e9, 1.0, float(value)))
    return sorted(time for values in series.values() for time in streaks(values, settings))


def fired(rule):
    kind, settings = rule["Trigger"]["Type"], rule["Trigger"].get("Settings", {})
    window = seconds(settings.get("SlidingWindowDuration", "00:01:00"))
    if kind == "Startup":
        return [0.0]
    if kind == "AspNetRequestCount":
        times = [start["time"] for start in starts if is_chosen(start["path"], settings)]
        return windows(times, settings["RequestCount"], window)
    if kind == "AspNetRequestDuration":
        return durations(settings)
    if kind == "AspNetResponseStatus":
        ranges = [tuple(map(int, (code + "-" + code).split("-")[:2])) for code in settings["StatusCodes"]]
        times = [
            stop["time"]
            for stop in stops
            if any(first <= stop["status"] <= last for first, last in ranges) and is_chosen(paths[stop["id"]], settings)
        ]
        return windows(times, settings["ResponseCount"], window)
    if kind == "EventMeter":
        return meters(settings)
    names = {"CPUUsage": "cpu-usage", "GCHeapSize": "gc-heap-size", "ThreadpoolQueueLength": "threadpool-queue-length"}
    name = names.get(kind) or settings["CounterName"]
    return streaks(event_counters(settings.get("ProviderName", "System.Runtime"), name), settings)


def limited(times, limits):
    """The executions that the limits permit."""
    count = limits["ActionCount"]
    window = limits.get("ActionCountSlidingWindowDuration")
    life = limits.get("RuleDuration")
    executed = []
    for time in times:
        recent = [other for other in executed if window is None or time - other <= seconds(window)]
        if len(recent) < count and (life is None or time < seconds(life)):
            executed.append(time)
    return executed


for name, rule in configuration["CollectionRules"].items():
    print("\t".join([name, *(f"{time:.3f}" for time in limited(fired(rule), rule["Limits"]))]))
