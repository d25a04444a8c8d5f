#!/bin/sh
# Tries dipc with programs in roots with other C libraries, in a machine of `cargo xtask vm`: .NET with the
# glibc of Debian 11, and a program with musl. roots.sh DIPC RUNTIMES WORKLOADS PACKAGES OLD. PACKAGES has
# runc, OLD the packages of the old root.

dipc=$1 runtimes=$2 workloads=$3 packages=$4 old=$5
here=$(dirname "$0")
. "$here/checks.sh"
. "$here/container.sh"
cd "$OUTPUT" || exit 1
exec < /dev/null

say "kernel $(uname -r), $(nproc) processors"
mkdir /run/old
for package in libc6 libgcc-s1 libstdc++6 zlib1g; do cp -a "$old/$package/." /run/old; done

for version in 9.0.1 3.1.23; do
    if [ ! -x "$runtimes/$version/dotnet" ]; then
        say "NOT RUN  .NET $version: cargo xtask runtimes sets it up"
        continue
    fi
    case $version in
        9.*) workload=net8.0 ;;
        *) workload=netstandard2.1 ;;
    esac
    mkfifo "/run/$version.commands"
    root=/run/old
    container "$version" "/runtimes/$version/dotnet" "/app/$workload/workload.dll" park "keep 1000" "spin 200" \
        <> "/run/$version.commands" > "$version.out" 2>&1
    until_line "$version.out" '^ok spin' || failed "$version starts" "$(tail -3 "$version.out")"
    has "$version: the old C library" "/proc/$pid/maps" 'libc-2\.31\.so$'
    expect "$version: ps" "^ *$pid .* $version " "$dipc" ps $limit
    expect "$version: trace" ', 0 lost' \
        "$dipc" trace $limit -p "$pid" --duration 1s --clrevents gc -o "$version.nettrace"
    sampled "$version: trace --cpu" "$version" "$dipc" trace --cpu -p "$pid"
    # The names of native functions are of the root's own files.
    has "$version: trace --cpu has the C library" "$file-top.txt" 'libc-2\.31\.so!\|libpthread-2\.31\.so!\|\[libc-2\.31'
    expect "$version: stack --native" 'libpthread-2\.31\|libc-2\.31' "$dipc" stack $limit --native -p "$pid"
    expect "$version: stack --exact" 'Program\.Main' "$dipc" stack $limit --exact -p "$pid"
    expect "$version: memory" '^Native heap (malloc)' "$dipc" memory -p "$pid"
    expect "$version: dump --stream" '^Written  *: .* MB' "$dipc" dump $limit --stream --pause 100s -p "$pid" -o $version.core
    expect "$version: the dump has its objects" ' 1,000 .*Node' "$dipc" dump analyze $version.core -c dumpheap
    runc kill "$version" KILL
done

if command -v musl-gcc > musl.txt; then
    mkdir -p /run/musl/lib /run/musl/bin
    cp -L /lib/ld-musl-x86_64.so.1 /run/musl/lib
    echo 'volatile int n; void spins(void) { for (;;) n++; } int main(void) { spins(); }' > /run/loop.c
    musl-gcc -O1 -fno-omit-frame-pointer -o /run/musl/bin/loop /run/loop.c
    root=/run/musl
    container musl /bin/loop > musl.out 2>&1
    has "musl: its C library" "/proc/$pid/maps" 'ld-musl-x86_64'
    expect "musl: trace --cpu" '^CPU samples  *: [1-9]' \
        "$dipc" trace $limit --cpu -p "$pid" --duration 2s -o musl.nettrace
    expect "musl: the function that computes" ' loop!spins' "$dipc" report musl.nettrace topN -n 100
    runc kill musl KILL
else
    say "NOT RUN  musl: cargo xtask setup test installs musl-gcc"
fi
end
