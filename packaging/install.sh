#!/bin/sh
# Installs dipc @VERSION@ on Linux: downloads the archive for this processor, checks its SHA-256, and copies the program, its man
# pages and its completion scripts. Nothing else is changed.
#
#   sh install.sh [--fleet] [--to FOLDER] [--from URL]
#
# --fleet installs dipc-fleet, too, which `dipc export` starts. FOLDER receives bin/ and share/ [default: ~/.local]. URL is the folder
# with the release's files, on a server or here.
set -eu

fail() {
  echo "error: $1" >&2
  if [ $# -gt 1 ]; then echo "help: $2" >&2; fi
  exit 1
}

download() { # download ARCHIVE FILE
  case $1 in
    file://*)
      # A path with characters that a URL would have to escape.
      if [ -f "${1#file://}" ]; then
        copy "${1#file://}" "$2"
        return
      fi
      ;;
    *://*) ;;
    *)
      [ -f "$1" ] || fail "$1: not found"
      copy "$1" "$2"
      return
      ;;
  esac
  if command -v curl >/dev/null; then
    curl -fsSL --proto '=https,http,file' -o "$2" "$1" || fail "$1: not downloaded"
  elif command -v wget >/dev/null; then
    wget -q -O "$2" "$1" || fail "$1: not downloaded"
  else
    fail "neither curl nor wget is installed" "download $1, and give its folder with --from"
  fi
}

copy() { # copy FILE COPY
  reason=$(cp "$1" "$2" 2>&1) || fail "$2: not written: $reason"
}

unpack() { # unpack NAME SHA256: into $work/NAME
  archive=$from/$1.tar.gz
  download "$archive" "$work/archive"
  if command -v sha256sum >/dev/null; then
    found=$(sha256sum <"$work/archive")
  else
    found=$(shasum -a 256 <"$work/archive") || fail "neither sha256sum nor shasum is installed"
  fi
  found=${found%% *}
  [ "$found" = "$2" ] || fail "$archive: its SHA-256 is $found, expected $2" "nothing was installed"
  tar -xzf "$work/archive" -C "$work" || fail "$archive: not unpacked"
}

put() { # put MODE FILE FOLDER NAME: a running program is replaced, not written to
  reason=$(mkdir -p "$to/$3" 2>&1) || fail "$to/$3: not created: $reason" "--to FOLDER chooses another folder"
  partial=$to/$3/.$4.$$
  copy "$2" "$partial"
  chmod "$1" "$partial"
  mv -f "$partial" "$to/$3/$4" || fail "$to/$3/$4: not replaced"
  partial=
}

clean_up() {
  rm -rf "$work"
  if [ -n "$partial" ]; then rm -f "$partial"; fi
}

main() {
  version=@VERSION@
  from=@REPOSITORY@/releases/download/v$version
  to=
  fleet=
  while [ $# -gt 0 ]; do
    case $1 in
      --fleet)
        fleet=yes
        shift
        continue
        ;;
      --to | --from) [ -n "${2-}" ] || fail "$1 needs a value" ;;
      *) fail "unknown argument: $1" "sh install.sh [--fleet] [--to FOLDER] [--from URL]" ;;
    esac
    case $1 in
      --to) to=$2 ;;
      --from) from=$2 ;;
    esac
    shift 2
  done
  if [ -z "$to" ]; then
    [ -n "${HOME-}" ] || fail "HOME is not set, so that there is no folder to install into" "--to FOLDER names one"
    to=$HOME/.local
  fi

  case $(uname -s)-$(uname -m) in
    Linux-x86_64)
      system=x86_64-linux
      expected='@SHA256 dipc x86_64-linux@'
      expected_fleet='@SHA256 dipc-fleet x86_64-linux@'
      ;;
    Linux-aarch64 | Linux-arm64)
      system=aarch64-linux
      expected='@SHA256 dipc aarch64-linux@'
      expected_fleet='@SHA256 dipc-fleet aarch64-linux@'
      ;;
    *) fail "no program for $(uname -s) on $(uname -m)" "with Rust: cargo install dipc-cli --locked" ;;
  esac

  # What is installed is for all to read, whatever files of this user are.
  umask 022
  partial=
  work=$(mktemp -d) || fail "no temporary folder: ${TMPDIR:-/tmp}"
  trap clean_up EXIT
  trap 'exit 1' HUP INT TERM

  name=dipc-$version-$system
  unpack "$name" "$expected"
  if [ -n "$fleet" ]; then unpack "dipc-fleet-$version-$system" "$expected_fleet"; fi

  name=$work/$name
  put 755 "$name/dipc" bin dipc
  if [ -n "$fleet" ]; then put 755 "$work/dipc-fleet-$version-$system/dipc-fleet" bin dipc-fleet; fi
  for page in "$name"/man/*.1; do
    put 644 "$page" share/man/man1 "${page##*/}"
  done
  put 644 "$name/completions/dipc.bash" share/bash-completion/completions dipc
  put 644 "$name/completions/dipc.fish" share/fish/vendor_completions.d dipc.fish
  put 644 "$name/completions/_dipc" share/zsh/site-functions _dipc

  echo "installed $to/bin/dipc${fleet:+ and dipc-fleet}, version $version"
  case :$PATH: in
    *":$to/bin:"*) ;;
    *) echo "note: $to/bin is not in PATH" ;;
  esac
  # Only zsh has no folder of the user's own.
  if command -v zsh >/dev/null && ! zsh -c 'print -rl -- $fpath' | grep -qxF "$to/share/zsh/site-functions"; then
    echo "note: for completion in zsh, ~/.zshrc needs, before compinit: fpath+=('$to/share/zsh/site-functions')"
  fi
}

# A script that was cut on its way does nothing: without its last character, this is an error.
{ main "$@"; }
