//! The tests of `common`, with RakNet.

use rakwire::raknet::RakNet;

use crate::common::{cancellation, exchange, hooks, pause};

#[test]
fn large_messages_arrive_in_parts_in_both_directions() {
    exchange::long_messages_arrive_in_both_directions::<RakNet, 512, 256, 8>(20_000, 100_000);
}

#[test]
fn all_raknet_connections_share_one_port() {
    assert_eq!(exchange::ports_of_three_connections::<RakNet>(), 1);
}

#[test]
fn a_cancelled_recv_takes_no_message() {
    cancellation::a_cancelled_recv_takes_no_message::<RakNet>();
}

#[test]
fn a_cancelled_send_sends_nothing() {
    cancellation::a_cancelled_send_sends_nothing::<RakNet>();
}

#[test]
fn a_cancelled_attempt_frees_its_slot() {
    cancellation::a_cancelled_attempt_frees_its_slot::<RakNet>();
}

#[test]
fn a_cancelled_disconnect_still_completes() {
    cancellation::a_cancelled_disconnect_still_completes::<RakNet>();
}

#[test]
fn a_connection_closes_when_its_last_reference_is_dropped() {
    cancellation::a_connection_closes_when_its_last_reference_is_dropped::<RakNet>();
}

#[test]
fn a_borrowed_message_stays_valid_while_the_network_runs() {
    cancellation::a_borrowed_message_stays_valid_while_the_network_runs::<RakNet>();
}

#[test]
fn a_connection_survives_a_temporary_network_failure() {
    cancellation::a_connection_survives_a_temporary_network_failure::<RakNet>();
}

#[test]
fn calls_after_a_disconnect_report_the_disconnect() {
    cancellation::calls_after_a_disconnect_report_the_disconnect::<RakNet>();
}

#[test]
fn messages_survive_datagram_loss() {
    exchange::messages_survive_datagram_loss::<RakNet>();
}

#[test]
fn a_full_pool_blocks_senders_without_loss() {
    exchange::a_full_pool_blocks_senders_without_loss::<RakNet>();
}

#[test]
fn four_clients_exchange_messages_with_one_server() {
    exchange::four_clients_exchange_messages_with_one_server::<RakNet>();
}

#[test]
fn an_unread_connection_does_not_block_other_connections() {
    exchange::an_unread_connection_does_not_block_other_connections::<RakNet>();
}

#[test]
fn connecting_to_an_absent_server_fails_and_frees_the_slot() {
    exchange::connecting_to_an_absent_server_fails_and_frees_the_slot::<RakNet>();
}

#[test]
fn a_new_connection_uses_the_fixed_port_or_the_port_in_use() {
    exchange::a_new_connection_uses_the_fixed_port_or_the_port_in_use::<RakNet>();
}

#[test]
fn a_closing_connection_keeps_its_port() {
    exchange::a_closing_connection_keeps_its_port::<RakNet>();
}

#[test]
fn a_hook_counts_datagrams_and_drops_messages() {
    hooks::a_hook_counts_datagrams_and_drops_messages::<RakNet>();
}

#[test]
fn a_plugin_answers_while_a_task_receives() {
    hooks::a_plugin_answers_while_a_task_receives::<RakNet>();
}

#[test]
fn queued_datagrams_are_read_before_a_connection_times_out() {
    pause::queued_datagrams_are_read_before_a_connection_times_out::<RakNet>();
}

#[test]
fn datagrams_in_the_network_stack_are_read_before_a_connection_times_out() {
    pause::datagrams_in_the_network_stack_are_read_before_a_connection_times_out::<RakNet>();
}
