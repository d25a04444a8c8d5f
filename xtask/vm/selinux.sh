#!/bin/sh
# Tries dipc with .NET in a machine of `cargo xtask vm` with SELinux: as a process of the machine, and with the
# label of a container, which the policy selinux.conf does not let trace the machine's processes. selinux.sh
# DIPC RUNTIMES WORKLOADS PACKAGES. PACKAGES has the compiler of policies.

dipc=$1 runtimes=$2 workloads=$3 packages=$4
here=$(dirname "$0")
. "$here/checks.sh"
cd "$OUTPUT" || exit 1
exec < /dev/null

say "kernel $(uname -r), $(nproc) processors"
if [ ! -x "$runtimes/9.0.1/dotnet" ]; then
    say "NOT RUN  .NET 9.0.1: cargo xtask runtimes sets it up"
    exit 0
fi
selinux=/sys/fs/selinux
mount -t selinuxfs selinuxfs $selinux &&
    "$packages/checkpolicy/usr/bin/checkpolicy" -U allow -o /run/policy "$here/selinux.conf" > policy.txt 2>&1 &&
    cat /run/policy > $selinux/load && echo 1 > $selinux/enforce || failed "the policy is loaded" "$(tail -3 policy.txt)"

# confined WORDS...: a program with the label of a container.
confined() { sh -c 'printf %s all_u:all_r:container_t > /proc/self/attr/exec && exec "$@"' confined "$@"; }

mkfifo /run/program.commands
"$runtimes/9.0.1/dotnet" "$workloads/net8.0/workload.dll" park "keep 1000" <> /run/program.commands > program.out 2>&1 &
pid=$!
until_line program.out '^ok keep' || failed ".NET 9.0.1 starts" "$(tail -3 program.out)"

# A label ends with a zero.
expect "the machine's label" 'machine_t' tr -d '\000' < /proc/$pid/attr/current
expect "the container's label" 'container_t' confined sh -c "tr -d '\000' < /proc/self/attr/current"
expect "the machine: memory" '^GC heap' "$dipc" memory -p "$pid"
expect "the container: ps" "^ *$pid .* 9\.0\.1 " confined "$dipc" ps $limit
expect "the container: trace" ', 0 lost' \
    confined "$dipc" trace $limit -p "$pid" --duration 1s --clrevents gc -o trace.nettrace
expect "the container: stack" 'Parked\.Sleeper' confined "$dipc" stack $limit -p "$pid"
help='^help: .*label all_u:all_r:container_t.*all_u:all_r:machine_t.*label=disable'
expect "the container: memory is refused" "$help" confined "$dipc" memory -p "$pid"
expect "the container: stack --exact is refused" "$help" confined "$dipc" stack $limit --exact -p "$pid"
expect "the container: dump --stream is refused" "$help" \
    confined "$dipc" dump $limit --stream --pause 100s -p "$pid" -o refused.core
echo 0 > $selinux/enforce
expect "the container, if SELinux only warns: memory" '^GC heap' confined "$dipc" memory -p "$pid"
kill -KILL $pid
end
