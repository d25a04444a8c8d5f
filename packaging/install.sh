#!/bin/sh
# Installs dipc @VERSION@ on Linux: downloads the archive for this processor, checks its SHA-256, and copies the program, its man
# pages and its completion scripts. Nothing else is changed.
#
#   sh install.sh [--to FOLDER] [--from URL]
#
# FOLDER receives bin/ and share/ [default: ~/.local]. URL is the folder with the release's files, on a server or here.
set -eu

version=@VERSION@
from=@REPOSITORY@/releases/download/v$version
to=${HOME:-}/.local

fail() {
  echo "error: $1" >&2
  if [ $# -gt 1 ]; then echo "help: $2" >&2; fi
  exit 1
}

while [ $# -gt 0 ]; do
  case $1 in
    --to | --from) [ $# -gt 1 ] || fail "$1 needs a value" ;;
    *) fail "unknown argument: $1" "sh install.sh [--to FOLDER] [--from URL]" ;;
  esac
  case $1 in
    --to) to=$2 ;;
    --from) from=$2 ;;
  esac
  shift 2
done

case $(uname -s)-$(uname -m) in
  Linux-x86_64) system=x86_64-linux expected='@SHA256 x86_64-linux@' ;;
  Linux-aarch64 | Linux-arm64) system=aarch64-linux expected='@SHA256 aarch64-linux@' ;;
  *) fail "no program for $(uname -s) on $(uname -m)" "with Rust: cargo install dipc-cli --locked" ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

name=dipc-$version-$system
archive=$from/$name.tar.gz
case $from in
  *://*)
    if command -v curl >/dev/null; then
      curl -fsSL --proto '=https,http,file' -o "$work/archive" "$archive" || fail "$archive: not downloaded"
    elif command -v wget >/dev/null; then
      wget -q -O "$work/archive" "$archive" || fail "$archive: not downloaded"
    else
      fail "neither curl nor wget is installed" "download $archive, and give its folder with --from"
    fi
    ;;
  *) cp "$archive" "$work/archive" 2>/dev/null || fail "$archive: not found" ;;
esac

if command -v sha256sum >/dev/null; then
  found=$(sha256sum <"$work/archive")
else
  found=$(shasum -a 256 <"$work/archive") || fail "neither sha256sum nor shasum is installed"
fi
found=${found%% *}
[ "$found" = "$expected" ] || fail "$archive: its SHA-256 is $found, expected $expected" "nothing was installed"

tar -xzf "$work/archive" -C "$work"
put() { # put MODE FILE FOLDER NAME: a running program is replaced, not written to
  mkdir -p "$to/$3"
  cp "$work/$name/$2" "$to/$3/.$4.$$"
  chmod "$1" "$to/$3/.$4.$$"
  mv -f "$to/$3/.$4.$$" "$to/$3/$4"
}
put 755 dipc bin dipc
for page in "$work/$name"/man/*.1; do
  put 644 "man/${page##*/}" share/man/man1 "${page##*/}"
done
put 644 completions/dipc.bash share/bash-completion/completions dipc
put 644 completions/dipc.fish share/fish/vendor_completions.d dipc.fish
put 644 completions/_dipc share/zsh/site-functions _dipc

echo "installed $to/bin/dipc, version $version"
case :$PATH: in
  *":$to/bin:"*) ;;
  *) echo "note: $to/bin is not in PATH" ;;
esac
