//! Runs the examples over real sockets.

#[path = "../../examples/calls_over_tcp.rs"]
mod calls_over_tcp;
#[path = "../../examples/files.rs"]
mod files;
#[path = "../../examples/lobby.rs"]
mod lobby;
#[path = "../../examples/ready.rs"]
mod ready;
#[path = "../../examples/remote_calls.rs"]
mod remote_calls;
#[path = "../../examples/replication.rs"]
mod replication;
#[path = "../../examples/rpc4.rs"]
mod rpc4;

#[test]
fn ready_example_completes() {
    ready::main().expect("all are ready");
}

#[test]
fn remote_calls_example_completes() {
    remote_calls::main().expect("the example succeeds");
}

#[test]
fn lobby_waits_for_late_players() {
    lobby::main().expect("the round begins");
}

#[test]
fn rpc4_example_completes() {
    rpc4::main().expect("the example succeeds");
}

#[test]
fn calls_over_tcp_example_completes() {
    calls_over_tcp::main().expect("the example succeeds");
}

#[test]
fn replication_example_completes() {
    replication::main().expect("the entity leaves the scope");
}

#[test]
fn files_example_completes() {
    files::main().expect("the files arrive");
}
