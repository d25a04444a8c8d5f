#!/bin/sh
# Tries dipc with .NET programs in containers, which runc makes as Docker does, in a machine of `cargo xtask
# vm`: from the host, from a sidecar and from an ephemeral container. containers.sh DIPC RUNTIMES WORKLOADS
# PACKAGES. PACKAGES has runc and the parser of AppArmor. Outputs and recordings stay in $OUTPUT.

dipc=$1 runtimes=$2 workloads=$3 packages=$4
here=$(dirname "$0")
. "$here/checks.sh"
. "$here/container.sh"
cd "$OUTPUT" || exit 1
# Users that are not root write there, too.
chmod 1777 .
exec < /dev/null

say "kernel $(uname -r), $(nproc) processors, cgroup $(cat /proc/self/cgroup | tr '\n' ' ')"
say "perf_event_paranoid $(cat /proc/sys/kernel/perf_event_paranoid), yama $(cat /proc/sys/kernel/yama/ptrace_scope)"
if [ ! -x "$runtimes/9.0.1/dotnet" ]; then
    say "NOT RUN  .NET 9.0.1: cargo xtask runtimes sets it up"
    exit 0
fi

# program NAME: a container with .NET 9.0.1, which takes commands from the file /run/NAME.commands.
program() {
    mkfifo "/run/$1.commands"
    # Opened for writing as well, it has no end for the program to read.
    container "$1" /runtimes/9.0.1/dotnet /app/net8.0/workload.dll park "keep 1000" "spin 200" <> "/run/$1.commands" > "$1.out" 2>&1
}
dump="dump $limit --stream --pause 100s"

mkdir -m 1777 /run/volume
program plain; plain=$pid
uid=1654 diagnostics=/run/volume variables=TMPDIR=/diagnostics; program user; user=$pid
is_mapped=yes; program mapped; mapped=$pid
for name in plain user mapped; do
    until_line "$name.out" '^ok spin' || failed "the program $name starts" "$(tail -3 "$name.out")"
done
say "three programs run: $plain as root, $user as user 1654, $mapped in a user namespace"

"$dipc" ps $limit > ps.txt 2>&1
has "host: ps has root's" ps.txt "^ *$plain .* 0  *9\.0\.1 "
has "host: ps has user 1654's" ps.txt "^ *$user .* 1654  *9\.0\.1 "
has "host: ps has that of the user namespace" ps.txt "^ *$mapped .* 100000  *9\.0\.1 "
for program in plain mapped; do
    eval "target=\$$program"
    expect "host: info of $program" '^Pid inside  *1$' "$dipc" info $limit -p "$target"
    expect "host: trace of $program" ', 0 lost' \
        "$dipc" trace $limit -p "$target" --duration 1s --clrevents gc -o $program.nettrace
    sampled "host: trace --cpu of $program" $program "$dipc" trace --cpu -p "$target"
    expect "host: stack of $program" 'Parked\.Sleeper' "$dipc" stack $limit -p "$target"
    expect "host: stack --exact of $program" 'Program\.Main' "$dipc" stack $limit --exact -p "$target"
    expect "host: memory of $program" '^GC heap' "$dipc" memory -p "$target"
    expect "host: counters of $program" 'working_set (By),Metric,[1-9]' \
        "$dipc" counters collect $limit -p "$target" --duration 12s --format csv -o -
    expect "host: dump --stream of $program" '^Written  *: .* MB' "$dipc" $dump -p "$target" -o $program.core
    expect "host: the dump of $program has its objects" ' 1,000 .*Node' "$dipc" dump analyze $program.core -c dumpheap
    expect "host: doctor of $program" '^ok  *answer' "$dipc" doctor $limit -p "$target"
done

expect "the same user: ps" "^ *$user .* 9\.0\.1 " as 1654 "$dipc" ps $limit
expect "the same user: dump --stream" '^Written  *: .* MB' as 1654 "$dipc" $dump -p "$user" -o user.core
sampled "the same user: trace --cpu of the runtime" user as 1654 "$dipc" trace --cpu -p "$user"
has "the same user: the level is named" "$file.txt" 'perf_event_paranoid is 3'
# refused_to_look NAME PID PATTERN WORDS...: dipc, which the words start, may not look into the process, and
# its advice has the pattern.
refused_to_look() {
    view=$1 target=$2 advice=$3
    shift 3
    expect "$view: info is refused" "^help: .*$advice" "$@" info $limit -p "$target"
    expect "$view: memory is refused" "^help: .*$advice" "$@" memory -p "$target"
    expect "$view: dump --stream is refused" "^help: .*$advice" "$@" $dump -p "$target" -o "$OUTPUT/refused.core"
    expect "$view: doctor" "fix: .*$advice" "$@" doctor $limit -p "$target"
}
refused_to_look "another user" "$user" "1654" as 1000 "$dipc"
expect "another user: ps" 'cannot be looked into\|cannot be reached' as 1000 "$dipc" ps $limit
echo 1 > /proc/sys/kernel/yama/ptrace_scope
expect "yama 1: info" '^Pid inside  *1$' as 1654 "$dipc" info $limit -p "$user"
expect "yama 1: memory is refused" '^help: .*ptrace_scope=0' as 1654 "$dipc" memory -p "$user"
expect "yama 1: dump --stream is refused" '^help: .*ptrace_scope=0' as 1654 "$dipc" $dump -p "$user" -o yama.core
echo 0 > /proc/sys/kernel/yama/ptrace_scope

# A sidecar with the folder of the socket, and process numbers of its own.
uid=1654 diagnostics=/run/volume variables=TMPDIR=/diagnostics; container sidecar sleep 10000 > sidecar.out 2>&1
expect "sidecar: info" '^Pid inside  *1$' inside sidecar /dipc info $limit --endpoint /diagnostics
expect "sidecar: trace" ', 0 lost' \
    inside sidecar /dipc trace $limit --endpoint /diagnostics --duration 1s --clrevents gc -o /tmp/x.nettrace
expect "sidecar: stack" 'Parked\.Sleeper' inside sidecar /dipc stack $limit --endpoint /diagnostics
expect "sidecar: ps says where" 'listens at /diagnostics/.*: use --endpoint' inside sidecar /dipc ps $limit
expect "sidecar: doctor says where" 'fix: use --endpoint /diagnostics/' inside sidecar /dipc doctor $limit
expect "sidecar: dump --stream says what it needs" 'shareProcessNamespace' \
    inside sidecar /dipc $dump --endpoint /diagnostics -o /tmp/x.core

# A sidecar that shares process numbers as well.
uid=1654 pid_of=$user diagnostics=/run/volume variables=TMPDIR=/diagnostics
container shared sleep 10000 > shared.out 2>&1
expect "shared pids: ps" '^ *1 .* 9\.0\.1 ' inside shared /dipc ps $limit
expect "shared pids: trace" ', 0 lost' \
    inside shared /dipc trace $limit -p 1 --duration 1s --clrevents gc -o /tmp/x.nettrace
sampled "shared pids: trace --cpu of the runtime" user inside shared /dipc trace --cpu -p 1
has "shared pids: the filter is named" "$file.txt" 'a seccomp filter refuses the call'
expect "shared pids: stack --exact" 'Program\.Main' inside shared /dipc stack $limit --exact -p 1
expect "shared pids: memory" '^GC heap' inside shared /dipc memory -p 1
expect "shared pids: dump --stream" '^Written  *: .* MB' inside shared /dipc $dump -p 1 -o /tmp/x.core
expect "shared pids: doctor names the filter" 'seccomp' inside shared /dipc doctor $limit -p 1
inside shared /dipc monitor --urls http://127.0.0.1:52323 --no-auth > monitor.txt 2>&1 &
until_line monitor.txt '127.0.0.1:52323'
expect "shared pids: monitor lists it" '"pid": *1\b' inside shared curl --silent --max-time 100 http://127.0.0.1:52323/processes
for container in shared sidecar; do runc delete --force $container; done > deleted.txt 2>&1

# Ephemeral containers: in the pid namespace of a program, with files of their own.
pid_of=$plain; container ephemeral sleep 10000 > ephemeral.out 2>&1
expect "ephemeral: ps" '^ *1 .* 9\.0\.1 ' inside ephemeral /dipc ps $limit
expect "ephemeral: trace" ', 0 lost' \
    inside ephemeral /dipc trace $limit -p 1 --duration 1s --clrevents gc -o /tmp/x.nettrace
expect "ephemeral: stack --exact" 'Program\.Main' inside ephemeral /dipc stack $limit --exact -p 1
expect "ephemeral: dump --stream" '^Written  *: .* MB' inside ephemeral /dipc $dump -p 1 -o /tmp/x.core

expect "ephemeral: doctor" '^ok  *answer' inside ephemeral /dipc doctor $limit -p 1
pid_of=$plain capabilities=; container bare sleep 10000 > bare.out 2>&1
refused_to_look "without capabilities" 1 'capabilities that dipc lacks (CHOWN, .*--cap-add SYS_PTRACE' inside bare /dipc
expect "without capabilities: ps" 'cannot be looked into.*dipc doctor -p 1' inside bare /dipc ps $limit
pid_of=$plain uid=1000; container other sleep 10000 > other.out 2>&1
refused_to_look "another user's container" 1 "--user 0\|'#0'" inside other /dipc
pid_of=$user; container root sleep 10000 > root.out 2>&1
refused_to_look "root's container" 1 '--cap-add SYS_PTRACE' inside root /dipc
pid_of=$user added=SYS_PTRACE; container ptrace sleep 10000 > ptrace.out 2>&1
expect "SYS_PTRACE: ps" '^ *1 .* 1654  *9\.0\.1 ' inside ptrace /dipc ps $limit
expect "SYS_PTRACE: dump --stream" '^Written  *: .* MB' inside ptrace /dipc $dump -p 1 -o /tmp/x.core
pid_of=$user added="PERFMON SYS_PTRACE"; container perfmon sleep 10000 > perfmon.out 2>&1
sampled "PERFMON: trace --cpu of the runtime" user inside perfmon /dipc trace --cpu -p 1
has "PERFMON: the level asks for more" "$file.txt" 'perf_event_paranoid is 3; CAP_SYS_ADMIN'
expect "PERFMON: doctor" 'fix: sysctl kernel.perf_event_paranoid=2' inside perfmon /dipc doctor $limit -p 1
echo 2 > /proc/sys/kernel/perf_event_paranoid
sampled "PERFMON at level 2: trace --cpu" user inside perfmon /dipc trace --cpu -p 1
has "PERFMON at level 2: of the kernel" "$file.txt" '^CPU samples  *: [1-9]'
refused_to_look "another user namespace" "$plain" 'another user namespace' unshare --user --map-root-user "$dipc"

# AppArmor: what Docker's profile permits, to processes of the same profile.
if mount -t securityfs securityfs /sys/kernel/security && "$packages/apparmor/sbin/apparmor_parser" -K -r << 'PROFILE'
profile docker-default flags=(attach_disconnected,mediate_deleted) {
  network,
  capability,
  file,
  umount,
  signal,
  deny mount,
  ptrace (trace, read, tracedby, readby) peer=docker-default,
}
PROFILE
then
    pid_of=$plain profile=docker-default; container confined sleep 10000 > confined.out 2>&1
    refused_to_look "AppArmor" 1 'security-opt apparmor=unconfined' inside confined /dipc
else
    say "NOT RUN  AppArmor: $(cat /sys/module/apparmor/parameters/enabled)"
fi

for name in plain user mapped; do runc kill $name KILL; done
end
