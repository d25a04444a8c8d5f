# Functions of the trials of `cargo xtask vm`, which are scripts of sh.

failures=0
checks=0
# An emulated processor may be ten times slower than any, on a busy machine.
limit="--timeout 100s"

say() { echo "$(cut -d' ' -f1 /proc/uptime) s  $*"; }
# passed NAME TEXT, failed NAME TEXT
passed() { checks=$((checks + 1)); say "passed   $1${2:+: $2}"; }
failed() { checks=$((checks + 1)); say "FAILED   $1${2:+: $2}"; failures=$((failures + 1)); }
# has NAME FILE PATTERN: the file has a line with the pattern.
has() {
    if line=$(grep -m 1 -e "$3" "$2"); then
        passed "$1" "$(echo "$line" | tr -s ' ' | cut -c1-200)"
    else
        failed "$1" "$(tail -3 "$2")"
    fi
}
# file_of NAME: the name as the name of a file.
file_of() { echo "$1" | tr -cs 'A-Za-z0-9\n' '-'; }
# expect NAME PATTERN COMMAND...: the command's output, which is a file in $OUTPUT, has a line with the
# pattern.
expect() {
    check=$1 pattern=$2
    shift 2
    output=$(file_of "$check").txt
    "$@" > "$output" 2>&1
    has "$check" "$output" "$pattern"
}
# until_line FILE PATTERN: waits for a line, 100 s at most.
until_line() {
    end=$(($(cut -d. -f1 /proc/uptime) + 100))
    until grep -q -e "$2" "$1"; do
        [ "$(cut -d. -f1 /proc/uptime)" -lt $end ] || return 1
        sleep 0.2
    done
}
# sampled NAME PROGRAM WORDS...: a recording by `dipc trace --cpu`, which the words begin with, while the
# program computes. It is expected to have the method that computes.
sampled() {
    check=$1 computes=$2
    shift 2
    file=$(file_of "$check")
    "$@" $limit --duration 6s -o "$OUTPUT/$file.nettrace" > "$file.txt" 2>&1 &
    until_line "$file.txt" '^Output File\|^error:'
    echo "spin 3000" > "/run/$computes.commands"
    wait $!
    "$dipc" report "$file.nettrace" topN -n 1000 > "$file-top.txt" 2>&1
    has "$check" "$file-top.txt" ' Spin\.\(Fib\|Hot\)(int)'
}
# as UID WORDS...: a program of another user without capabilities.
as() {
    user_id=$1
    shift
    setpriv --reuid "$user_id" --regid "$user_id" --clear-groups --bounding-set=-all "$@"
}
# end: the last line, and the trial's exit code.
end() {
    say "$checks checks, $failures failed"
    [ $failures = 0 ]
}
