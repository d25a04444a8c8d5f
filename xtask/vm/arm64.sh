#!/bin/sh
# Tries dipc, as it is released, next to programs of .NET 10.0.9 in the machine of arm64 of `cargo xtask vm`:
# arm64.sh DIPC SERVER DEADLOCK AWAITS ROOTED. The last three are `testdata/workload/deadlock`, `awaits` and
# `rooted`, whose locks, chains and roots are known. Recordings and outputs stay in $OUTPUT.

workspace=$PWD
dipc=$workspace/$1 server=$workspace/$2 deadlock=$workspace/$3 awaits=$workspace/$4
rooted=$workspace/$5
# The root has few commands.
mkdir -p /tmp/bin
busybox --install -s /tmp/bin
PATH=$PATH:/tmp/bin
. "$(dirname "$0")/checks.sh"
cd "$OUTPUT" || exit 1

say "kernel $(uname -r) $(uname -m), $(nproc) processors, perf_event_paranoid $(cat /proc/sys/kernel/perf_event_paranoid)"
mkfifo /tmp/requests
DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 "$server" server start < /tmp/requests > server.out 2>&1 &
pid=$!
exec 4> /tmp/requests
for _ in $(seq 1000); do
    ls /tmp/dotnet-diagnostic-$pid-* > /dev/null 2>&1 && break
    sleep 0.1
done
# request NUMBER METHOD PARAMETERS: sends a request, which the server answers with a line.
request() { echo "{\"jsonrpc\":\"2.0\",\"id\":$1,\"method\":\"$2\",\"params\":$3}" >&4; }
request 1 initialize '{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"trial","version":"1"}}'
# Its start takes minutes on a busy machine.
until_line server.out '"id":1' || until_line server.out '"id":1' || failed "the server answers" "$(tail -3 server.out)"

expect "ps" "^ *$pid .* 10\.0\.9  *arm64 " "$dipc" ps $limit
expect "info" '^Runtime  *10\.0\.9' "$dipc" info $limit -p $pid
expect "doctor" '^ok  *answer' "$dipc" doctor $limit -p $pid
expect "trace" ', 0 lost' "$dipc" trace $limit -p $pid --duration 3s -o trace.nettrace
expect "trace has the runtime's events" '^Microsoft-Windows-DotNETRuntime ' "$dipc" stat trace.nettrace
expect "counters" 'working_set (By),Metric,[1-9]' \
    "$dipc" counters collect $limit -p $pid --duration 12s --format csv -o -
expect "gcdump" '^Written' "$dipc" gcdump collect $limit -p $pid -o heap.gcdump
expect "gcdump has strings" ' [1-9][0-9,]* .* string$' "$dipc" gcdump report heap.gcdump
expect "stack" 'Program\.' "$dipc" stack $limit -p $pid
expect "stack --exact" 'Program\.' "$dipc" stack $limit --exact -p $pid
expect "stack --native" 'libc\.so\.6!' "$dipc" stack $limit --native -p $pid
expect "memory" '^GC heap' "$dipc" memory -p $pid
# The server is at work: each list of tools is a second and more of an emulated processor.
"$dipc" trace $limit --cpu --off-cpu -p $pid -o cpu.nettrace > cpu.txt 2>&1 &
tracing=$!
until_line cpu.txt '^Output File\|^error:'
for number in 2 3 4; do
    request $number tools/list '{}'
    until_line server.out "\"id\":$number" || failed "the server answers" "$(tail -3 server.out | cut -c1-200)"
done
kill -INT $tracing
wait $tracing
has "trace --cpu --off-cpu" cpu.txt '^CPU samples  *: [1-9]'
"$dipc" report cpu.nettrace topN -n 10000 > top.txt 2>&1
has "the samples have managed methods" top.txt ' McpSessionHandler\.'
has "chains go through managed methods to the thread's root" top.txt ' Thread\.StartCallback()'
has "the samples have the kernel's functions" top.txt ' vmlinux!'
expect "dump --stream" '^Written  *: .* MB' "$dipc" dump $limit --stream --pause 100s -p $pid -o full.core
expect "dump --stream of stacks" '^Written  *: .* [KM]B' \
    "$dipc" dump $limit --stream --type mini --pause 100s -p $pid -o mini.core
expect "the dump has the same stacks" 'Program\.' "$dipc" dump analyze mini.core -c clrstack
expect "the dump has objects" 'System\.RuntimeType' "$dipc" dump analyze full.core -c dumpheap
kill -KILL $pid

export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1
mkfifo /tmp/lines
"$deadlock" < /tmp/lines > deadlock.out 2>&1 &
pid=$!
exec 5> /tmp/lines
until_line deadlock.out '^ready' || failed "the program with a deadlock starts" "$(tail -3 deadlock.out)"
expect "locks before the deadlock" 'held by thread' "$dipc" locks -p $pid
if grep -q '^Deadlock' "$output"; then
    failed "no deadlock is found before it" "$(head -3 "$output")"
else
    passed "no deadlock is found before it" ""
fi
echo >&5
until_line deadlock.out '^locked' || failed "the program with a deadlock goes on" "$(tail -3 deadlock.out)"
for _ in $(seq 100); do
    "$dipc" locks -p $pid > locks.txt 2>&1
    grep -q '^Deadlock' locks.txt && break
    sleep 0.2
done
has "locks finds the deadlock" locks.txt '^Deadlock:'
has "locks names both threads" locks.txt 'transfer-1.*transfer-2\|transfer-2.*transfer-1'
expect "the stack of EventPipe" 'Bank\.Transfer1()' "$dipc" stack $limit -p $pid
expect "the stack of memory" 'Bank\.Transfer1()' "$dipc" stack $limit --exact -p $pid
expect "dump --stream of the deadlock" '^Written' "$dipc" dump $limit --stream --pause 100s -p $pid -o deadlock.core
expect "the dump has the deadlock" '^Deadlock:' "$dipc" dump analyze deadlock.core locks
kill -KILL $pid

mkfifo /tmp/more
"$awaits" < /tmp/more > awaits.out 2>&1 &
pid=$!
exec 6> /tmp/more
until_line awaits.out '^ready' || failed "the program with awaits starts" "$(tail -3 awaits.out)"
chains='^112 async methods that have not ended, in 58 chains of awaits'
expect "async has the 112 methods" "$chains" "$dipc" async -p $pid
expect "dump --stream of the awaits" '^Written' "$dipc" dump $limit --stream --pause 100s -p $pid -o awaits.core
expect "the dump has the 112 methods" "$chains" "$dipc" async awaits.core
kill -KILL $pid

# Objects of which only frames know, and such that frames have used: a collection prints the types of those
# that it keeps.
types="InRegister OfCaller First Second Third Fourth Fifth Sixth Seventh Eighth Ninth Tenth InStructure InArgument
    InStackArgument AsThis OfUnoptimized BeforeTry InHandler InFinally BeforeType InTypeConstructor OfLock
    BeforeFilter InFilter BelowFilter AtReference
    DeadLocal DeadArgument DeadOfCaller DeadReplaced DeadInHandler DeadThis"
mkfifo /tmp/collect
DOTNET_TieredCompilation=0 "$rooted" < /tmp/collect > rooted.out 2>&1 &
pid=$!
exec 7> /tmp/collect
until_line rooted.out '^ready' || failed "the program with roots starts" "$(tail -3 rooted.out)"
expect "dump --stream of the roots" '^Written' "$dipc" dump $limit --stream --pause 100s --type heap -p $pid -o rooted.core
echo collect >&7
until_line rooted.out '^end' || failed "the program collects" "$(tail -3 rooted.out)"
# A view for each type, in one reading of the core.
set --
for of in $types; do set -- "$@" -c "paths --type $of"; done
"$dipc" dump analyze rooted.core "$@" > roots.txt 2>&1
agree=0 differ=
for of in $types; do
    # The end of a path is the object: lines with its frame precede the name.
    frame=$(grep -B 1 -x "    $of" roots.txt | grep -c '\[frame [A-Z]')
    kept=$(grep -c -x "$of" rooted.out)
    if [ "$frame" = "$kept" ]; then agree=$((agree + 1)); else differ="$differ $of"; fi
done
if [ -z "$differ" ] && grep -q -x InRegister rooted.out; then
    passed "paths of $agree types begin with frames if a collection keeps their objects" ""
else
    failed "paths begin with frames if a collection keeps the objects" "$agree agree, not$differ"
fi
kill -KILL $pid
end
