#!/usr/bin/env python3
"""Thread time below requests and creators of tasks, out of another reader's events and stacks: what nettrace-export is held against.

joined.py EVENTS STACKS PROVIDER: JSON lines, packed or not, as TraceEvent reads a recording, `{provider, name, id, time_ms, tid, opcode, activity, related,
fields}` and `{name, time_ms, tid, frames}`, frames leaf first as `Module!Method(sig)@address`. PROVIDER is the one whose
requests are followed; they say `url` or `table`. Prints `nanoseconds TAB stack`, root first.
Shares nothing with the crate but the rules of `Join`. Causes are told apart by names here, by addresses there.
"""
import collections, json, lzma, sys

TPL, SAMPLER, CLR = 'System.Threading.Tasks.TplEventSource', 'Microsoft-DotNETCore-SampleProfiler', 'Microsoft-Windows-DotNETRuntime'
PLUMBING = tuple('System.' + x for x in ('Diagnostics.Tracing.', 'Runtime.CompilerServices.Async', 'Runtime.CompilerServices.TaskAwaiter',
                 'Runtime.CompilerServices.ValueTaskAwaiter', 'Runtime.CompilerServices.Configured', 'Runtime.CompilerServices.YieldAwaitable'))

def kind(frame):
    module, _, method = frame.partition('!')
    if module.lower() not in ('system.private.corelib', 'mscorlib'): return ''
    if method.startswith(('System.Threading.ExecutionContext.Run', 'System.Threading.Tasks.AwaitTaskContinuation.Run', 'System.Threading.Tasks.Task.Execute')): return 'run'
    if method.startswith('System.Threading.Tasks.Task') and '.InnerInvoke' in method: return 'invoke'
    if method.startswith('System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart'): return 'pool'
    if method.startswith('System.Threading.ThreadPoolWorkQueue.Dispatch'): return 'dispatch'
    if method.startswith(('System.Threading.Tasks.', 'System.Threading.ThreadPool')): return 'schedule'
    return 'plumbing' if method.startswith(PLUMBING) else ''

def work(stack):
    """The frames of a task's own work, or None."""
    kinds = [kind(f) for f in stack]
    if 'run' not in kinds: return None
    at = kinds.index('run')
    for i in range(at):
        if kinds[i] == 'invoke': at = i
    end = at
    while end > 0 and kinds[end - 1] in ('schedule', 'plumbing'): end -= 1
    return stack[:end] if end else stack[:at]

def creating(stack):
    i = 0
    while i < len(stack) and kind(stack[i]) in ('schedule', 'plumbing'): i += 1
    return stack[i - 1:] if i and kind(stack[i - 1]) == 'schedule' else stack[i:]

def lines(path):
    with (lzma.open if path.endswith('.xz') else open)(path, 'rt', encoding='utf-8', newline='\n') as file:
        for line in file: yield json.loads(line)

def name(frame):
    module, _, method = frame[:frame.rindex('@')].partition('!')
    return f'{module}!{method}' if method else (module or '?') + '!?'

class Worker:
    def __init__(self): self.cause, self.request, self.open = None, None, []

def main():
    pool = collections.defaultdict(collections.deque)
    requested = sys.argv[3]
    for x in lines(sys.argv[2]): pool[(x['name'], x['time_ms'], x['tid'])].append([name(f) for f in x['frames']])
    workers, waiting, requests, last, sums = collections.defaultdict(Worker), {}, {}, {}, collections.Counter()

    def live(r):
        while r is not None and requests[r]['ended']: r = requests[r]['within']
        return r
    def request_frames(r):
        out = []
        while r is not None: out = requests[r]['frames'] + out; r = requests[r]['within']
        return out or ['(no request)']
    def segments(cause):
        """What is shown of a cause: parts of stacks, root first, none twice."""
        if cause is None: return []
        stack, by = cause; own = work(stack); above = []
        if own is not None and by is not None: above = segments(by)
        else: own = stack
        part = tuple(creating(own))
        return above[:above.index(part) + 1] if part in above else above + [part]

    for e in lines(sys.argv[1]):
        provider, number, tid, f = e['provider'], e['id'], e['tid'], e['fields']
        q = pool.get((provider + '/' + e['name'], e['time_ms'], tid)); stack = q.popleft() if q else []
        w = workers[tid]
        if provider == SAMPLER:
            if tid in last:
                time, before = last[tid]; sums[before] += round((e['time_ms'] - time) * 1e6)
            cause, r = w.cause, live(w.request)
            kinds = [kind(x) for x in stack]
            if 'pool' in kinds and 'dispatch' not in kinds: cause = r = None
            shown = request_frames(r); own = work(stack)
            if own is not None and cause is not None:
                for part in segments(cause): shown = shown + list(reversed(part)) + ['STARTING TASK']
            else: own = stack
            leaf = 'CPU_TIME' if f.get('Type') == 'Managed' else 'UNMANAGED_CODE_TIME'
            last[tid] = e['time_ms'], tuple(shown + list(reversed(own)) + [leaf]); continue
        if provider not in (TPL, CLR, requested): continue
        if provider == TPL and number not in (7, 8, 9, 10, 11, 12, 13, 17, 18, 19): continue
        scheduler = (provider == TPL and number in (8, 9, 11, 13, 17, 18, 19)) or (provider == CLR and number in (50, 57))
        a = e.get('activity')
        if a is None:
            if not scheduler: w.request = None
        elif provider == requested and e['opcode'] == 1:
            within = e.get('related') if e.get('related') in requests else w.request
            text = ' '.join(f'{k}={v}' for k, v in f.items() if k in ('url', 'table'))
            requests[a] = dict(frames=[requested + '/' + e['name'].split('/')[0], text], within=live(within), ended=False); w.request = a
        elif provider == requested and e['opcode'] == 2:
            if a in requests: requests[a]['ended'] = True; w.request = requests[a]['within']
        elif a in requests: w.request = a
        elif provider != CLR: w.request = None

        def leave(key):
            for i in reversed(range(len(w.open))):
                if w.open[i][0] == key: w.cause, w.request = w.open[i][1]; del w.open[i:]; return
        def create(key): waiting[key] = (stack, w.cause) if stack else w.cause, w.request
        def start(key):
            w.open.append((key, (w.cause, w.request))); w.cause, w.request = waiting.pop(key, (None, None))
        if provider == TPL:
            if number in (7, 12): create(('task', f['TaskID'] if number == 7 else f.get('ContinueWithTaskId', f.get('ContinuationId', f.get('ContinuwWithTaskId')))))
            elif number == 8 or number == 19: start(('task', f['TaskID']))
            elif number == 9 or number == 13: leave(('task', f['TaskID']))
            elif number == 10 and f['Behavior'] not in ('Synchronous', '1'): create(('wait', f['TaskID']))
            elif number == 11:
                key = ('wait', f['TaskID'])
                if key in waiting: w.cause, w.request = waiting.pop(key)
            elif number == 17: w.open.append((None, (w.cause, w.request)))
            elif number == 18: leave(None)
        elif provider == CLR and number in (50, 57): w.cause, w.request, w.open = None, None, []
    for stack, nanoseconds in sorted(sums.items(), key=lambda x: (-x[1], x[0])): print(f'{nanoseconds}\t{";".join(stack)}')

main()
