#!/bin/sh
# Tries dipc with programs in roots with other C libraries, in a machine of `cargo xtask vm`: .NET with the
# glibc of Debian 11, and with another that was built here; dipc itself in a root with musl and busybox, and
# programs with musl, one of them with a library compiled ahead of time. roots.sh DIPC RUNTIMES WORKLOADS
# PACKAGES OLD BUILT LIBRARY. DIPC is static, as it is released. PACKAGES has runc and busybox, OLD the
# packages of the old root. BUILT is what `make install DESTDIR=BUILT` of another glibc has written, and
# LIBRARY is for musl: either may be missing.

dipc=$1 runtimes=$2 workloads=$3 packages=$4 old=$5 built=$6 library=$7
here=$(dirname "$0")
. "$here/checks.sh"
. "$here/container.sh"
cd "$OUTPUT" || exit 1
exec < /dev/null

say "kernel $(uname -r), $(nproc) processors"

# in_root ROOT GLIBC VERSION WORKLOAD: .NET of a version in a root with a version of glibc.
in_root() {
    name=$3-glibc-$2 version=$3
    if [ ! -x "$runtimes/$version/dotnet" ]; then
        say "NOT RUN  .NET $version: cargo xtask runtimes sets it up"
        return
    fi
    # The end of the names of its libraries, as a pattern.
    libc=-$(echo "$2" | sed 's/\./\\./g')'\.so'
    mkfifo "/run/$name.commands"
    root=$1
    container "$name" "/runtimes/$version/dotnet" "/app/$4/workload.dll" park "keep 1000" "spin 200" \
        <> "/run/$name.commands" > "$name.out" 2>&1
    target=$pid
    until_line "$name.out" '^ok spin' || failed "$name starts" "$(tail -3 "$name.out")"
    has "$name: the C library" "/proc/$target/maps" "/libc$libc\$"
    expect "$name: ps" "^ *$target .* $version " "$dipc" ps $limit
    expect "$name: trace" ', 0 lost' \
        "$dipc" trace $limit -p "$target" --duration 1s --clrevents gc -o "$name.nettrace"
    sampled "$name: trace --cpu" "$name" "$dipc" trace --cpu -p "$target"
    # The names of native functions are of the root's own files.
    has "$name: trace --cpu has the C library" "$file-top.txt" "lib\(c\|pthread\)$libc!\|\[libc$libc"
    expect "$name: stack --native" "lib\(c\|pthread\)$libc" "$dipc" stack $limit --native -p "$target"
    expect "$name: stack --exact" 'Program\.Main' "$dipc" stack $limit --exact -p "$target"
    expect "$name: memory" '^Native heap (malloc)' "$dipc" memory -p "$target"
    expect "$name: dump --stream" '^Written  *: .* MB' \
        "$dipc" dump $limit --stream --pause 100s -p "$target" -o "$name.core"
    expect "$name: the dump has its objects" ' 1,000 .*Node' "$dipc" dump analyze "$name.core" -c dumpheap
    runc kill "$name" KILL
}

libraries="libgcc-s1 libstdc++6 zlib1g"
mkdir /run/old
for package in libc6 $libraries; do cp -a "$old/$package/." /run/old; done
in_root /run/old 2.31 9.0.1 net8.0
in_root /run/old 2.31 3.1.23 netstandard2.1

glibc=$(ls "$built"/lib64/libc-*.so 2> /dev/null | sed 's/.*libc-\(.*\)\.so/\1/')
if [ -n "$glibc" ]; then
    mkdir /run/built
    cp -a "$built/lib64" /run/built
    # It looks for libraries in this folder alone.
    for package in $libraries; do find "$old/$package" -name '*.so*' ! -type d -exec cp -a {} /run/built/lib64 \;; done
    in_root /run/built "$glibc" 9.0.1 net8.0
    in_root /run/built "$glibc" 3.1.23 netstandard2.1
else
    say "NOT RUN  another glibc: none was installed in $built"
fi

if ! command -v musl-gcc > musl.txt; then
    say "NOT RUN  musl: cargo xtask setup test installs musl-gcc"
    end
    exit
fi
musl=/run/musl
mkdir -p $musl/lib $musl/bin
cp -L /lib/ld-musl-x86_64.so.1 $musl/lib
# The name that libraries for musl ask for.
ln -s ld-musl-x86_64.so.1 $musl/lib/libc.musl-x86_64.so.1
for busybox in bin usr/bin; do cp "$packages/busybox-static/$busybox/busybox" $musl/bin 2> /dev/null; done
for command in sh sleep; do ln -s busybox $musl/bin/$command; done
for program in loop reader; do
    musl-gcc -O1 -fno-omit-frame-pointer -o $musl/bin/$program "$here/musl/$program.c"
done

# musl NAME PROGRAM FUNCTIONS WORDS: dipc next to a container with a program with musl that computes in
# functions, from the host, and from a container of the same root that shares its pid namespace. The doctor says
# WORDS of it.
musl() {
    name=$1 functions=$3 runtime=$4
    root=$musl
    container "$name" $2 > "$name.out" 2>&1
    target=$pid
    has "$name: its C library" "/proc/$target/maps" 'ld-musl-x86_64'
    pid_of=$target root=$musl added="PERFMON SYS_ADMIN SYS_PTRACE"
    container "$name-sidecar" /bin/sleep 10000 > "$name-sidecar.out" 2>&1
    next_to "$name, host" "$dipc" "$target"
    # The shell is that of busybox.
    inside_of_musl() { inside "$name-sidecar" /bin/sh -c 'exec /dipc "$@"' dipc "$@"; }
    next_to "$name, musl" inside_of_musl 1
    for container in "$name" "$name-sidecar"; do runc delete --force $container; done > deleted.txt 2>&1
}
# next_to NAME COMMAND PID: the commands of dipc, which the command is, next to the program.
next_to() {
    view=$1 command=$2 id=$3
    recording=$(file_of "$view").nettrace
    expect "$view: ps" 'No \.NET process was found\|^ *PID' $command ps $limit
    expect "$view: trace --cpu" '^CPU samples  *: [1-9]' \
        $command trace $limit --cpu -p "$id" --duration 2s -o "$OUTPUT/$recording"
    for function in $functions; do
        expect "$view: $function" " $function" $command report "$OUTPUT/$recording" topN -n 1000
    done
    expect "$view: stack --native" "  ${functions##* }" $command stack $limit --native -p "$id"
    expect "$view: memory" '^All resident (RSS)' $command memory -p "$id"
    expect "$view: doctor" "$runtime" $command doctor $limit -p "$id"
}

musl loop /bin/loop 'loop!spins' 'no \.NET runtime is in it'
if [ -n "$library" ]; then
    cp "$library" $musl/lib/library.so
    musl ahead-of-time "/bin/reader /lib/library.so" 'library.so!xl_rows_next reader!main' \
        'NativeAOT.*/lib/library\.so'
else
    say "NOT RUN  a library compiled ahead of time for musl: it could not be downloaded"
fi
end
