#!/usr/bin/env bash
# Fetches other RakNet implementations by name and exact version and builds the peers around them.
# Usage: interop/setup.sh [cpp|rust-raknet|tokio-raknet|python|npm|pypi|secure|websockify ...]   (default: all but the last)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$(dirname "$here")/target/interop
bin=$out/bin

cpp_version=raknet-native@1.2.3
cpp_sha256=c94d59e3620a3cd9e182941c9e04000d2a5d18f5cd3495158424eafab87c5ca5
rust_raknet_version=rust-raknet@1.4.0
tokio_raknet_version=tokio-raknet@0.2.0
python_version=raknet==0.3.0
npm_version="@serenityjs/raknet@0.8.21 @jsprismarine/raknet@1.4.7 jsp-raknet@2.2.0 raknet-node@0.5.0"
pypi_version="PieRakNet==2.3.2.1 rak-net==1.9 binary-utils==1.3 pybedrock-net==1.3.4"
websockify_version="websockify==0.13.0 numpy==2.0.2"
secure_version="cryptography==50.0.2 cffi==2.1.1 pycparser==3.12"

fail() {
    echo "interop/setup.sh: $*" >&2
    exit 1
}

# need PACKAGE COMMAND...: installs the distribution's package if the command fails.
need() {
    local package=$1
    shift
    "$@" >/dev/null 2>&1 && return
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "needs $package, please install it manually"
    echo "installing $package"
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -qq -y --no-install-recommends "$package" >/dev/null 2>&1 ||
        { apt-get update -qq && apt-get install -qq -y --no-install-recommends "$package"; } >/dev/null 2>&1 ||
        fail "apt-get install $package failed"
    "$@" >/dev/null 2>&1 || fail "$package is installed, but '$*' still fails"
}

build_cpp() {
    need g++ g++ --version
    need make make --version
    need npm npm --version
    local fetched=$out/cpp/fetched work=$out/cpp/build
    if [ "$(cat "$fetched/done" 2>/dev/null)" != "$cpp_sha256" ]; then
        rm -rf "$fetched" "$work"
        mkdir -p "$fetched"
        (cd "$fetched" && npm pack --silent "$cpp_version" >/dev/null) || fail "npm pack $cpp_version failed"
        echo "$cpp_sha256  $fetched/raknet-native-${cpp_version#*@}.tgz" | sha256sum --check --quiet ||
            fail "$cpp_version has another checksum than the tested one"
        tar -xzf "$fetched"/*.tgz -C "$fetched" package/raknet/Source package/raknet/LICENSE
        echo "$cpp_sha256" >"$fetched/done"
    fi
    mkdir -p "$work"
    make --silent -j2 -C "$work" -f "$here/cpp/Makefile" HERE="$here/cpp" RAKNET="$fetched/package/raknet/Source" ||
        fail "building the C++ peer failed"
    install "$work/cpp-peer" "$work/cpp-secure-peer" "$work/cpp-tcp-peer" "$work/cpp-plugins-peer" "$bin"
}

# Builds a peer written in Rust: `build_rust PEER`.
build_rust() {
    command -v cargo >/dev/null || fail "needs cargo, please install it manually"
    cargo build --quiet --release --locked --manifest-path "$here/$1/Cargo.toml" \
        --target-dir "$out/$1/build" || fail "building the $1 peer failed"
    install "$out/$1/build/release/$1-peer" "$bin/$1-peer"
}

build_rust_raknet() {
    build_rust rust-raknet
}

build_tokio_raknet() {
    build_rust tokio-raknet
}

# Creates a virtual environment and a program that runs a script in it: `build_venv PEER SCRIPT "PACKAGE..." [BUILT]`.
# BUILT is passed to pip's `--only-binary`; with `:none:`, packages may be built from source.
build_venv() {
    local peer=$1 script=$2 packages=$3 built=${4:-:all:} python="" candidate venv=$out/$1/venv
    # The wheel `raknet` exists for CPython 3.9 to 3.12.
    for candidate in python3 python3.12 python3.11 python3.10 python3.9 /usr/bin/python3; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 9) <= sys.version_info < (3, 13))' 2>/dev/null; then
            python=$candidate
            break
        fi
    done
    [ -n "$python" ] || fail "needs CPython 3.9 to 3.12, please install one manually"
    need python3-venv "$python" -c 'import venv, ensurepip'
    rm -rf "$venv"
    "$python" -m venv "$venv" || fail "cannot make a virtual environment with $python"
    # shellcheck disable=SC2086 # There may be several packages.
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary "$built" $packages ||
        fail "pip install $packages failed"
    cat >"$bin/$peer-peer" <<EOF
#!/bin/sh
out=\$(cd "\$(dirname "\$0")/.." && pwd)
exec "\$out/$peer/venv/bin/python" "\$out/../../interop/$peer/$script" "\$@"
EOF
    chmod +x "$bin/$peer-peer"
}

build_python() {
    build_venv python peer.py "$python_version"
}

# Small RakNet libraries of the npm registry. Their install scripts are not run.
build_npm() {
    need npm npm --version
    local work=$out/npm
    rm -rf "$work/node_modules"
    echo '{ "private": true }' >"$work/package.json"
    # shellcheck disable=SC2086 # There are several packages.
    (cd "$work" && npm install --silent --ignore-scripts --no-audit --no-fund --save-exact $npm_version >/dev/null) ||
        fail "npm install $npm_version failed"
    cat >"$bin/npm-peer" <<'EOF'
#!/bin/sh
out=$(cd "$(dirname "$0")/.." && pwd)
NODE_PATH=$out/npm/node_modules exec node "$out/../../interop/npm/peer.js" "$@"
EOF
    chmod +x "$bin/npm-peer"
}

# Small RakNet libraries of PyPI, of which two are available only as source.
build_pypi() {
    build_venv pypi peer.py "$pypi_version" :none:
}

# websockify, the baseline of the relay benchmarks. It is not a RakNet implementation.
build_websockify() {
    build_venv websockify run.py "$websockify_version"
}

# The second implementation of our secure connections: not a foreign peer, but built and run like the peers.
build_secure() {
    build_venv secure client.py "$secure_version"
}

# Prints everything that determines the build of a peer: its version, our sources and this script.
stamp() {
    echo "$2"
    cd "$here"
    find "$1" shared -type f -not -path '*/target/*' -not -path '*/__pycache__/*' | LC_ALL=C sort | xargs sha256sum setup.sh
}

[ $# -gt 0 ] || set -- cpp rust-raknet tokio-raknet python npm pypi secure
for peer; do
    case $peer in cpp | rust-raknet | tokio-raknet | python | npm | pypi | secure | websockify) ;; *) fail "unknown peer '$peer', known: cpp rust-raknet tokio-raknet python npm pypi secure websockify" ;; esac
done
mkdir -p "$bin"
if command -v flock >/dev/null; then
    exec 9>"$out/lock"
    flock 9
fi
for peer; do
    name=${peer//-/_}
    version=${name}_version
    wanted=$(stamp "$peer" "${!version}")
    if [ ! -x "$bin/$peer-peer" ] || [ "$(cat "$out/$peer/stamp" 2>/dev/null)" != "$wanted" ]; then
        mkdir -p "$out/$peer"
        rm -f "$out/$peer/stamp"
        "build_$name"
        echo "$wanted" >"$out/$peer/stamp"
    fi
done
for peer; do
    echo "$bin/$peer-peer"
done
