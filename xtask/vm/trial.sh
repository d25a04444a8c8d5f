#!/bin/sh
# Tries dipc next to real runtimes in a machine of `cargo xtask vm`, and compares with what the programs are
# known to do: trial.sh DIPC RUNTIMES WORKLOADS COMPARISON. COMPARISON is the example user_events of
# dipc-client, which compares events in user_events with a stream. Recordings and outputs stay in $OUTPUT.

dipc=$1 runtimes=$2 workloads=$3 comparison=$4
. "$(dirname "$0")/checks.sh"
cd "$OUTPUT" || exit 1
# Users that are not root write there, too.
chmod 1777 .

# ask COMMAND: sends it to the program, and waits for its answer.
ask() {
    answers=$(grep -c '^ok' program.out)
    echo "$1" >&3
    for _ in $(seq 1000); do
        [ "$(grep -c '^ok' program.out)" -gt "$answers" ] && return 0
        sleep 0.1
    done
    return 1
}

say "kernel $(uname -r), $(nproc) processors, cgroup $(cat /proc/self/cgroup | tr '\n' ' ')"
say "perf_event_paranoid $(cat /proc/sys/kernel/perf_event_paranoid)"
if [ -e /sys/kernel/tracing/user_events_data ]; then say "user_events: yes"; else say "user_events: no"; fi

if [ -x "$runtimes/9.0.1/dotnet" ]; then
    mkfifo /tmp/commands
    "$runtimes/9.0.1/dotnet" "$workloads/net8.0/workload.dll" < /tmp/commands > program.out 2>&1 &
    exec 3> /tmp/commands
    until_line program.out '^ready' || failed ".NET 9.0.1 starts" "$(tail -3 program.out)"
    pid=$(sed -n 's/^ready //p' program.out)
    "$dipc" ps $limit > ps.txt 2>&1
    has "ps names the process" ps.txt "^ *$pid .* 9\.0\.1 "

    # Each `emit` writes three events without keywords.
    "$dipc" trace $limit -p "$pid" --providers Workload-Typed -o events.nettrace > trace.txt 2>&1 &
    tracing=$!
    until_line trace.txt '^Output File'
    ask "emit 50"
    kill -INT $tracing
    wait $tracing || failed "trace ends well" "$(tail -3 trace.txt)"
    "$dipc" stat events.nettrace > stat.txt 2>&1
    has "trace has the 150 events" stat.txt '^Workload-Typed  *150 '
    has "trace lost none" stat.txt '^Lost  *0$'

    "$dipc" trace $limit -p "$pid" --user-events --clrevents gc -o refused.nettrace > refused.txt 2>&1
    if [ -e /sys/kernel/tracing/user_events_data ]; then
        has "user_events of .NET 9 are refused" refused.txt '\.NET 10 or later'
    else
        has "user_events are refused" refused.txt 'CONFIG_USER_EVENTS'
    fi

    "$dipc" stack $limit -p "$pid" > stack.txt 2>&1
    has "stack has Main" stack.txt 'Main'
    ask "keep 1000"
    "$dipc" gcdump collect $limit -p "$pid" -o heap.gcdump > gcdump.txt 2>&1
    "$dipc" gcdump report heap.gcdump > heap.txt 2>&1
    has "gcdump has the 1000 nodes" heap.txt ' 1,000 .* Node$'
    echo "quit 0" >&3
    exec 3>&-
    wait

    "$runtimes/9.0.1/dotnet" "$workloads/sampled/sampled.dll" < /tmp/commands > program.out 2>&1 &
    exec 3> /tmp/commands
    until_line program.out '^ready' || failed "the sampled program starts" "$(tail -3 program.out)"
    pid=$(sed -n 's/^ready //p' program.out)
    ask "split 3000"
    "$dipc" trace $limit --cpu -p "$pid" -o cpu.nettrace > cpu.txt 2>&1 &
    tracing=$!
    if until_line cpu.txt '^Output File'; then
        ask "split 5000"
        kill -INT $tracing
        wait $tracing || failed "trace --cpu ends well" "$(tail -3 cpu.txt)"
        "$dipc" report cpu.nettrace topN --by cpu -n 1000 > top.txt 2>&1
        # Seven has 7 of 10 parts. A processor of the machine that waits for one of the host misses samples,
        # while the program's clock goes on: `cargo xtask sampling` has exact shares, here names are checked.
        own=$(tail -1 program.out | cut -d' ' -f3)
        share=$(awk '/^ *[0-9]+\. +Program\.(Seven|Three)\(/ {
            match($0, /[0-9.]+%/)
            part[/Seven/ ? "Seven" : "Three"] = substr($0, RSTART, RLENGTH - 1)
        } END { if (part["Three"] > 0) printf "%.1f", 100 * part["Seven"] / (part["Seven"] + part["Three"]) }' top.txt)
        if awk "BEGIN { exit !(${share:-0} > 55 && ${share:-0} < 90) }"; then
            passed "trace --cpu has Seven's share" "$share %, $own % by the program's clock"
        else
            failed "trace --cpu has Seven's share" "$share %, $own % by the program's clock"
        fi
    else
        failed "trace --cpu starts" "$(tail -3 cpu.txt)"
    fi
    echo quit >&3
    exec 3>&-
    wait

    # What each level permits the user of a process.
    mkfifo /run/user.commands
    level_here=$(cat /proc/sys/kernel/perf_event_paranoid)
    as 1654 "$runtimes/9.0.1/dotnet" "$workloads/net8.0/workload.dll" <> /run/user.commands > user.out 2>&1 &
    until_line user.out '^ready' || failed "the program of user 1654 starts" "$(tail -3 user.out)"
    user=$(sed -n 's/^ready //p' user.out)
    for level in 3 2 1 0 -1; do
        echo $level > /proc/sys/kernel/perf_event_paranoid
        name=$(echo "level $level" | sed 's/-/minus /')
        sampled "$name: trace --cpu" user as 1654 "$dipc" trace --cpu -p $user
        case $level in
            # Debian's sources have this level, which permits nothing.
            3) permits='perf_event_paranoid is 3' ;;
            2) permits='in user mode only' ;;
            *) permits='with time in the kernel' ;;
        esac
        has "$name: what is permitted" "$file.txt" "$permits"
    done
    echo "$level_here" > /proc/sys/kernel/perf_event_paranoid
    kill $user
    wait
else
    say "NOT RUN  .NET 9.0.1: cargo xtask runtimes sets it up"
fi

if [ -x "$runtimes/10.0.5/azmcp" ]; then
    mkfifo /tmp/requests
    "$runtimes/10.0.5/azmcp" server start < /tmp/requests > server.out 2>&1 &
    server=$!
    exec 4> /tmp/requests
    for _ in $(seq 300); do
        ls /tmp/dotnet-diagnostic-$server-* > /dev/null 2>&1 && break
        sleep 0.1
    done
    "$dipc" info $limit -p "$server" > info.txt 2>&1
    has "info names .NET 10.0.5" info.txt '^Runtime  *10\.0\.5'
    "$dipc" trace $limit -p "$server" --duration 3s -o server.nettrace > server.txt 2>&1
    "$dipc" stat server.nettrace > stat10.txt 2>&1
    has "trace of .NET 10.0.5 has events" stat10.txt '^Microsoft-Windows-DotNETRuntime '
    if [ -e /sys/kernel/tracing/user_events_data ]; then
        "$comparison" "$server" > user-events.txt 2>&1
        has "user_events has the events of the stream" user-events.txt '^all [1-9][0-9]* events are the same'

        "$dipc" trace $limit -p "$server" --user-events --clrevents gc -o written.nettrace > written.txt 2>&1 &
        tracing=$!
        until_line written.txt '^Output File'
        # This session makes the runtime collect.
        "$dipc" trace $limit -p "$server" --providers Microsoft-Windows-DotNETRuntime:0x800000:4 \
            --rundown false --duration 1s -o collect.nettrace > collect.txt 2>&1
        kill -INT $tracing
        wait $tracing || failed "trace --user-events ends well" "$(tail -3 written.txt)"
        "$dipc" stat written.nettrace > written-stat.txt 2>&1
        has "trace --user-events has the collection" written-stat.txt '^Microsoft-Windows-DotNETRuntime  *1  .*GC/Start  *[1-9]'
        has "trace --user-events lists methods" written-stat.txt 'Rundown .*Method/DCStopVerbose  *[1-9]'
        has "trace --user-events lost none" written-stat.txt '^Lost  *0$'
        if grep -q '^dipc_' /sys/kernel/tracing/user_events_status; then
            failed "no tracepoint is left" "$(cat /sys/kernel/tracing/user_events_status)"
        else
            passed "no tracepoint is left"
        fi
    else
        say "NOT RUN  user_events: this kernel has none"
    fi
    exec 4>&-
    kill $server
    wait
else
    say "NOT RUN  .NET 10.0.5: cargo xtask runtimes sets it up"
fi

end
