#!/bin/bash
# build.sh: needs mcs (Mono 6.8); builds the programs of this folder that have a healthy twin. The same source gives
# another checksum at each build: the module's id is random.
set -euo pipefail
cd "$(dirname "$0")"
for program in ${@:-stuck signals memory grow busy calls finalizer start die fragments}; do
  mcs -optimize+ -langversion:7.2 -r:System.Core.dll -r:System.Net.Http.dll -out:$program.dll $program.cs
  cp hot.runtimeconfig.json $program.runtimeconfig.json
  chmod 644 $program.dll
done
