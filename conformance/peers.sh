#!/usr/bin/env bash
# Runs the suite against the peers that interop/setup.sh builds, and against rakwire. Prints docs/conformance.md.
# Usage: conformance/peers.sh [NAME ...]    (default: all peers; with names, the results of other peers are kept)
# RAKWIRE_PROGRAM is the path of the program `rakwire`, by default target/debug/rakwire.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.."
out=target/conformance
bin=target/interop/bin
rakwire=${RAKWIRE_PROGRAM:-target/debug/rakwire}
suite=${CONFORMANCE_PROGRAM:-conformance/target/debug/rakwire-conformance}
mkdir -p "$out"
wanted=("$@")

# judge FILE NAME VERSION NOTE ARGUMENTS...
judge() {
    local file=$1 name=$2 version=$3 note=$4
    shift 4
    if [ ${#wanted[@]} -gt 0 ]; then
        case " ${wanted[*]} " in *" $file "*) ;; *) return ;; esac
    fi
    echo "$file" >&2
    # Ignore the exit status: the page shows failed cases.
    "$suite" "$@" --json --peer "$name" --peer-version "$version" --peer-note "$note" >"$out/$file.json.new"
    [ -s "$out/$file.json.new" ] && mv "$out/$file.json.new" "$out/$file.json"
}

# server FILE NAME VERSION NOTE PROTOCOL COMMAND: a RakNet server that echoes messages.
server() {
    judge "$1" "$2" "$3" "$4" --start "$6" --protocol "$5" --echo --timeout 600
}

# client FILE NAME VERSION NOTE COMMAND [TIMEOUT]: a RakNet client, started for each case.
client() {
    judge "$1" "$2" "$3" "$4" --listen 127.0.0.1:0 --start "$5" --timeout "${6:-600}"
}

version=$("$rakwire" --version | cut -d' ' -f2)
server server-rakwire rakwire "$version" "" 6 "$rakwire echo --listen {}"
server server-cpp "C++ RakNet" "4.081, from raknet-native 1.2.3" "" 6 "$bin/cpp-peer server --port {port} --protocol 6"
server server-python "raknet (PyPI)" "0.3.0, a wheel that contains C++ RakNet" "" 6 "$bin/python-peer server --port {port} --protocol 6"
server server-rust-raknet rust-raknet 1.4.0 "" 11 \
    "$bin/rust-raknet-peer server --port {port} --protocol 11"
server server-tokio-raknet tokio-raknet 0.2.0 "The test program is that of the benchmarks." 11 "$bin/tokio-raknet-peer echo --port {port}"
# library FILE NAME VERSION PROTOCOL PEER: a server with a library that the peer program supports.
library() {
    server "$1" "$2" "$3" "" "$4" "$bin/$5-peer server --port {port} --library $2"
}

library server-npm-serenityjs @serenityjs/raknet 0.8.21 11 npm
library server-npm-jsprismarine @jsprismarine/raknet 1.4.7 10 npm
library server-npm-jsp-raknet jsp-raknet 2.2.0 10 npm
library server-npm-raknet-node raknet-node 0.5.0 11 npm
library server-pypi-PieRakNet PieRakNet 2.3.2.1 11 pypi
library server-pypi-rak-net rak-net 1.9 10 pypi

client client-rakwire rakwire "$version" "" "$rakwire send {} hello --protocol 6 --timeout 20"
client client-cpp "C++ RakNet" "4.081, from raknet-native 1.2.3" "" "$bin/cpp-peer client {} --protocol 6 --timeout 60"
client client-python "raknet (PyPI)" "0.3.0, a wheel that contains C++ RakNet" "" "$bin/python-peer client {} --protocol 6 --timeout 60"
client client-rust-raknet rust-raknet 1.4.0 "The library does not read cookies, and accepts no MTU above 1400." \
    "$bin/rust-raknet-peer client {} --protocol 11 --timeout 60"
client client-tokio-raknet tokio-raknet 0.2.0 "The test program is that of the benchmarks." "$bin/tokio-raknet-peer pingpong {}"
client client-npm-jsp-raknet jsp-raknet 2.2.0 "The library acknowledges nothing in the first 1.5 s, so the time limit for an answer is 2.5 s." \
    "$bin/npm-peer client {} --library jsp-raknet --timeout 60" 2500
client client-npm-raknet-node raknet-node 0.5.0 "The package contains rust-raknet, compiled for Node.js." \
    "$bin/npm-peer client {} --library raknet-node --timeout 60"

judge game-rakwire rakwire "$version" "" --start "$rakwire echo --protocol game --listen {}" --game-protocol --echo --timeout 600
key=$out/server.key
[ -f "$key" ] || "$rakwire" keygen "$key" >/dev/null
judge secure-rakwire rakwire "$version" "" --start "$rakwire echo --secure $key --listen {}" --secure --timeout 600

"$suite" page --head "$here/page-head.txt" "$out"/server-*.json "$out"/client-*.json "$out"/game-*.json "$out"/secure-*.json
