//! The examples run, over real sockets.

#[path = "../../examples/files.rs"]
mod files;
#[path = "../../examples/ready.rs"]
mod ready;
#[path = "../../examples/remote_calls.rs"]
mod remote_calls;
#[path = "../../examples/replication.rs"]
mod replication;

#[test]
fn players_wait_for_each_other() {
    ready::main().expect("all are ready");
}

#[test]
fn a_server_is_called() {
    remote_calls::main().expect("it answers");
}

#[test]
fn a_client_sees_what_is_near() {
    replication::main().expect("it goes out of sight");
}

#[test]
fn files_of_a_server_are_fetched() {
    files::main().expect("they come");
}
