# Translates the task of the runner into the command line of interop/README.md. Adapters source this file.

bin=${INTEROP_BIN_DIR:-$(dirname "$0")/../../../target/interop/bin}

# supports PATTERN...: exits with 127 unless a pattern matches ROLE-TESTCASE.
supports() {
    for pattern; do
        # shellcheck disable=SC2254 # It is a pattern.
        case $ROLE-$TESTCASE in $pattern) return ;; esac
    done
    exit 127
}

# lacks PATTERN: exits with 127 if the pattern matches ROLE-TESTCASE.
lacks() {
    # shellcheck disable=SC2254 # It is a pattern.
    case $ROLE-$TESTCASE in $1) exit 127 ;; esac
}

# start PROGRAM [ARGUMENT...]: replaces this process by the program.
start() {
    program=$bin/$1
    shift
    [ -x "$program" ] || { echo "$program is missing: run interop/setup.sh" >&2; exit 1; }
    case $ROLE-$TESTCASE in
    server-*) exec "$program" server --port "$PORT" --protocol "$PROTOCOL" --reliability "$RELIABILITY" "$@" ;;
    client-ping) exec "$program" ping "$ADDRESS:$PORT" --timeout "$TIMEOUT" "$@" ;;
    client-*)
        exec "$program" client "$ADDRESS:$PORT" --protocol "$PROTOCOL" --reliability "$RELIABILITY" --count "$COUNT" \
            --size "$SIZE" --window "$WINDOW" --pause "$PAUSE" --timeout "$TIMEOUT" "$@"
        ;;
    esac
}
