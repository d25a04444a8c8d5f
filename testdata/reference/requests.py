#!/usr/bin/env python3
"""Requests and calls out of another reader's events: what nettrace-export's report of requests is held against.

requests.py EVENTS: JSON lines, packed or not, as TraceEvent reads a recording, `{provider, name, id, time_ms, tid, opcode, activity, related, fields}`.
Prints a line for each name: `NAME TAB count TAB errors TAB statuses TAB total TAB max TAB p50 TAB p90 TAB p99`, and for requests, behind these, the time
on a thread, in pauses, in calls, queued and waiting; all in nanoseconds.
Shares nothing with the crate but the rules: activities are lists of numbers here, and times sets of intervals that are cut at the end.
"""
import collections, json, lzma, sys, uuid

TPL, FRAMEWORK, CLR = 'System.Threading.Tasks.TplEventSource', 'System.Diagnostics.Eventing.FrameworkEventSource', 'Microsoft-Windows-DotNETRuntime'
HOSTING, LOGGING = 'Microsoft.AspNetCore.Hosting', 'Microsoft-Extensions-Logging'
CALLS = {'System.Net.Http': (1, 2), 'System.Net.NameResolution': (1, 2), 'System.Net.Sockets': (1, 2), 'System.Net.Security': (1, 2)}

def path(text):
    """The numbers of an activity's id."""
    if not text: return None
    digits = uuid.UUID(text).bytes_le[:12].hex(); out = []; i = 0
    while i < 24 and digits[i] != '0':
        code = int(digits[i], 16); i += 1
        if code <= 10: out.append(code); continue
        if code == 11: return tuple(out)
        high = int(digits[i], 16) if i % 2 else 0; i += i % 2
        size = 2 * (code - 11)
        out.append(int.from_bytes(bytes.fromhex(digits[i:i + size]), 'little') | high << 4 * size); i += size
    return tuple(out)

def lines(name):
    with (lzma.open if name.endswith('.xz') else open)(name, 'rt', encoding='utf-8', newline='\n') as file:
        for line in file: yield json.loads(line)

def called(e):
    f = e['fields']
    if e['provider'] == HOSTING: return f"{f['method']} {f['path']}"
    if e['provider'] == 'System.Net.Http':
        port = '' if (f['scheme'], f['port'].replace(',', '')) in (('http', '80'), ('https', '443')) else ':' + f['port'].replace(',', '')
        return f"{f['scheme']}://{f['host']}{port}" + f['pathAndQuery'].split('?')[0]
    if e['provider'] == 'System.Net.Sockets':
        family, rest = f['address'].split(':', 1); numbers = [int(x) for x in rest[rest.index('{') + 1:-1].split(',')]
        return '.'.join(map(str, numbers[18:22] if family.endswith('V6') else numbers[2:6])) + f':{numbers[0] << 8 | numbers[1]}'
    return next(iter(f.values()), '')

class Span:
    def __init__(self, e, at, request):
        self.name, self.start, self.end, self.provider = called(e), at, None, e['provider']
        self.request = request or self; self.status, self.error = None, False
        self.work, self.calls, self.queued = [], [], []

class Worker:
    def __init__(self): self.activity, self.open, self.request, self.since = None, [], None, 0

def main():
    live, done, workers, tasks, operations = {}, [], collections.defaultdict(Worker), {}, {}
    queue, suspended, pauses, resumed = collections.defaultdict(collections.deque), {}, [], 0

    def innermost(activity):
        for n in range(len(activity or ()), 0, -1):
            if activity[:n] in live: return live[activity[:n]]
    def request_of(activity):
        span = innermost(activity)
        return span.request if span and span.request.end is None else None

    for e in lines(sys.argv[1]):
        provider, number, tid, f, at = e['provider'], e['id'], e['tid'], e['fields'], max(0, round(e['time_ms'] * 1e6))
        if provider == CLR and e['name'] in ('GC/SuspendEEStart', 'GC/SuspendEEStop', 'GC/RestartEEStop'):
            if e['name'] == 'GC/SuspendEEStart':
                suspended.pop(tid, None)
                if f['Reason'] in ('SuspendForGC', 'SuspendForGCPrep'): suspended[tid] = at
            elif e['name'] == 'GC/SuspendEEStop':
                if tid in suspended: suspended[tid] = max(suspended[tid], resumed)
            else:
                resumed = at
                if tid in suspended: pauses.append((suspended.pop(tid), at))
        if provider.startswith('Microsoft-Windows-DotNETRuntime') and provider != CLR or provider == 'Microsoft-DotNETCore-SampleProfiler': continue
        w, activity = workers[tid], path(e.get('activity'))
        start, stop = (3, 4) if provider == HOSTING else CALLS.get(provider, (None, None))
        if number == start and start:
            around = innermost(activity)
            live[activity] = Span(e, at, around and around.request)
        elif number == stop and stop and activity in live:
            span = live.pop(activity); span.end = at; done.append(span)
            status = f.get('statusCode', '').replace(',', '')
            if provider == 'System.Net.Http' and status not in ('', '-1', '0'):
                span.status = status; span.error |= int(status) >= 400
            if span.request is not span: span.request.calls.append((span.start, at))
        elif e['name'].endswith('Failed') and provider in CALLS:
            for n in range(len(activity or ()), 0, -1):
                span = live.get(activity[:n])
                if span and span.provider == provider: span.error = True; break
        elif provider == HOSTING and number == 5 and request_of(activity): request_of(activity).error = True
        elif provider == LOGGING and e['name'] == 'MessageJson' and request_of(activity):
            span, said = request_of(activity), json.loads(f['ArgumentsJson'])
            if f['EventName'] == 'ExecutingEndpoint': span.name = said['EndpointName'].split('HTTP: ')[-1]
            elif f['LoggerName'].endswith('Hosting.Diagnostics') and f['EventId'] == '2':
                span.status = said['StatusCode']; span.error |= int(span.status) >= 500

        scheduler = provider == TPL and number in (8, 9, 11, 13, 15, 17, 18, 19) or provider == FRAMEWORK and number in (31, 151) or provider == CLR and number in (50, 57)
        if activity and innermost(activity): w.activity = activity
        elif activity and provider == CLR: pass
        elif activity or not scheduler: w.activity = None
        def begin(key): w.open.append((key, w.activity)); w.activity = tasks.pop(key, None)
        def leave(key):
            for i in reversed(range(len(w.open))):
                if w.open[i][0] == key: w.activity = w.open[i][1]; del w.open[i:]; return
        if provider == TPL:
            if number in (7, 12): tasks['task', f['TaskID'] if number == 7 else f.get('ContinueWithTaskId', f.get('ContinuationId', f.get('ContinuwWithTaskId')))] = w.activity
            elif number in (8, 19): begin(('task', f['TaskID']))
            elif number in (9, 13): leave(('task', f['TaskID']))
            elif number == 10 and f['Behavior'] not in ('Synchronous', '1'): tasks['wait', f['TaskID']] = w.activity
            elif number == 11 and ('wait', f['TaskID']) in tasks: w.activity = tasks.pop(('wait', f['TaskID']))
            elif number == 14: operations[f['TaskID']] = w.activity
            elif number == 15: operations.pop(f['TaskID'], None)
            elif number == 17:
                w.open.append((None, w.activity))
                if f['Work'] in ('Execution', '2') and f['TaskID'] in operations: w.activity = operations[f['TaskID']]
            elif number == 18: leave(None)
        elif provider == FRAMEWORK and number in (30, 150): tasks[number, f.get('workID', f.get('id'))] = w.activity
        elif provider == FRAMEWORK and number in (31, 151):
            w.open.clear(); w.activity = None; begin((number - 1, f.get('workID', f.get('id'))))
            w.activity = w.activity
        elif provider == CLR and number in (50, 57): w.open.clear(); w.activity = None
        request = request_of(w.activity)
        if request is not w.request:
            if w.request: w.request.work.append((w.since, at))
            w.request, w.since = request, at
        key = ('item', f['workID']) if provider == FRAMEWORK and number in (30, 31) else ('task', f.get('TaskID') or f.get('ContinueWithTaskId')) if provider == TPL and number in (7, 8, 12, 19) else None
        if key and number in (30, 7, 12): queue[key].append((request, at))
        elif key and queue[key]:
            of, since = queue[key].popleft()
            if of: of.queued.append((since, at))

    last = at
    for w in workers.values():
        if w.request: w.request.work.append((w.since, last))
    rows = collections.defaultdict(list)
    for span in done: rows[(span.provider != HOSTING, span.name)].append(span)
    for (is_call, name), spans in sorted(rows.items()):
        times = sorted(s.end - s.start for s in spans)
        rank = lambda p: times[max(1, -(-len(times) * p // 100)) - 1]
        statuses = collections.Counter(s.status or '-' for s in spans)
        row = [name, len(spans), sum(s.error for s in spans), ','.join(f'{s}:{n}' for s, n in sorted(statuses.items())), sum(times), times[-1], rank(50), rank(90), rank(99)]
        if not is_call: row += [sum(x) for x in zip(*(parts(s, pauses) for s in spans))]
        print(*row, sep='\t')

def parts(span, pauses):
    """Time on a thread, in pauses, in calls, queued, waiting: each moment once, in the order pause, thread, call, queue."""
    kinds = [pauses, span.work, span.calls, span.queued]
    cut = [[(max(a, span.start), min(b, span.end)) for a, b in kind if a < span.end and b > span.start] for kind in kinds]
    ends = sorted({span.start, span.end} | {t for kind in cut for pair in kind for t in pair}); sums = [0] * 5
    for a, b in zip(ends, ends[1:]):
        kind = next((i for i, kind in enumerate(cut) if any(x <= a and b <= y for x, y in kind)), 4)
        sums[kind] += b - a
    pause, work, call, queued, waiting = sums
    return work, pause, call, queued, waiting

main()
