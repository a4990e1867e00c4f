//! The Game Protocol between machines.

use rakwire::game_protocol::GameProtocol;

use crate::common::{cancellation, exchange, hooks, pause};

#[test]
fn large_messages_arrive_in_chunks_in_both_directions() {
    exchange::long_messages_arrive_in_both_directions::<GameProtocol, 64, 504, 16>(12_000, 40_000);
}

#[test]
fn each_attempt_uses_a_fresh_port() {
    assert_eq!(exchange::ports_of_three_connections::<GameProtocol>(), 3);
}

#[test]
fn a_cancelled_recv_takes_no_message() {
    cancellation::a_cancelled_recv_takes_no_message::<GameProtocol>();
}

#[test]
fn a_cancelled_send_sends_nothing() {
    cancellation::a_cancelled_send_sends_nothing::<GameProtocol>();
}

#[test]
fn a_cancelled_attempt_frees_its_slot() {
    cancellation::a_cancelled_attempt_frees_its_slot::<GameProtocol>();
}

#[test]
fn a_cancelled_disconnect_still_completes() {
    cancellation::a_cancelled_disconnect_still_completes::<GameProtocol>();
}

#[test]
fn a_connection_closes_when_its_last_reference_is_dropped() {
    cancellation::a_connection_closes_when_its_last_reference_is_dropped::<GameProtocol>();
}

#[test]
fn a_borrowed_message_stays_valid_while_the_network_runs() {
    cancellation::a_borrowed_message_stays_valid_while_the_network_runs::<GameProtocol>();
}

#[test]
fn a_connection_survives_a_temporary_network_failure() {
    cancellation::a_connection_survives_a_temporary_network_failure::<GameProtocol>();
}

#[test]
fn calls_after_a_disconnect_report_the_disconnect() {
    cancellation::calls_after_a_disconnect_report_the_disconnect::<GameProtocol>();
}

#[test]
fn messages_survive_datagram_loss() {
    exchange::messages_survive_datagram_loss::<GameProtocol>();
}

#[test]
fn a_full_pool_blocks_senders_without_loss() {
    exchange::a_full_pool_blocks_senders_without_loss::<GameProtocol>();
}

#[test]
fn four_clients_exchange_messages_with_one_server() {
    exchange::four_clients_exchange_messages_with_one_server::<GameProtocol>();
}

#[test]
fn an_unread_connection_does_not_block_other_connections() {
    exchange::an_unread_connection_does_not_block_other_connections::<GameProtocol>();
}

#[test]
fn connecting_to_an_absent_server_fails_and_frees_the_slot() {
    exchange::connecting_to_an_absent_server_fails_and_frees_the_slot::<GameProtocol>();
}

#[test]
fn a_new_connection_uses_the_fixed_port_or_the_port_in_use() {
    exchange::a_new_connection_uses_the_fixed_port_or_the_port_in_use::<GameProtocol>();
}

#[test]
fn a_closing_connection_keeps_its_port() {
    exchange::a_closing_connection_keeps_its_port::<GameProtocol>();
}

#[test]
fn a_hook_counts_datagrams_and_drops_messages() {
    hooks::a_hook_counts_datagrams_and_drops_messages::<GameProtocol>();
}

#[test]
fn a_plugin_answers_while_a_task_receives() {
    hooks::a_plugin_answers_while_a_task_receives::<GameProtocol>();
}

#[test]
fn queued_datagrams_are_read_before_a_connection_times_out() {
    pause::queued_datagrams_are_read_before_a_connection_times_out::<GameProtocol>();
}

#[test]
fn datagrams_in_the_network_stack_are_read_before_a_connection_times_out() {
    pause::datagrams_in_the_network_stack_are_read_before_a_connection_times_out::<GameProtocol>();
}
