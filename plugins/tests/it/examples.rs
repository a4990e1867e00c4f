//! The examples run, over real sockets.

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
fn players_wait_for_each_other() {
    ready::main().expect("all are ready");
}

#[test]
fn a_server_is_called() {
    remote_calls::main().expect("it answers");
}

#[test]
fn teams_wait_for_who_comes_late() {
    lobby::main().expect("the round begins");
}

#[test]
fn a_shop_is_called_and_hears_signals() {
    rpc4::main().expect("it answers");
}

#[test]
fn a_server_is_called_over_udp_and_over_tcp() {
    calls_over_tcp::main().expect("it answers");
}

#[test]
fn a_client_sees_what_is_near() {
    replication::main().expect("it goes out of sight");
}

#[test]
fn files_of_a_server_are_fetched() {
    files::main().expect("they come");
}
