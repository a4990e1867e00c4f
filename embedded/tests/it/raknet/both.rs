//! What both protocols do, by RakNet.

use rakwire::raknet::RakNet;

use crate::common::{cancellation, exchange, hooks, pause};

#[test]
fn twenty_kilobytes_travel_in_parts_both_ways() {
    exchange::long_messages_travel_both_ways::<RakNet, 512, 256, 8>(20_000, 100_000);
}

#[test]
fn all_connections_leave_from_one_port() {
    assert_eq!(exchange::ports_of_three_connections::<RakNet>(), 1);
}

#[test]
fn a_reader_that_gives_up_takes_no_message() {
    cancellation::a_reader_that_gives_up_takes_no_message::<RakNet>();
}

#[test]
fn a_sender_that_gives_up_has_sent_nothing() {
    cancellation::a_sender_that_gives_up_has_sent_nothing::<RakNet>();
}

#[test]
fn an_attempt_that_is_given_up_leaves_its_place() {
    cancellation::an_attempt_that_is_given_up_leaves_its_place::<RakNet>();
}

#[test]
fn whoever_gives_up_disconnecting_is_disconnected_all_the_same() {
    cancellation::whoever_gives_up_disconnecting_is_disconnected_all_the_same::<RakNet>();
}

#[test]
fn a_connection_ends_with_its_last_reference() {
    cancellation::a_connection_ends_with_its_last_reference::<RakNet>();
}

#[test]
fn what_is_lent_stays_while_the_network_goes_on() {
    cancellation::what_is_lent_stays_while_the_network_goes_on::<RakNet>();
}

#[test]
fn a_network_that_is_down_for_a_while_is_waited_for() {
    cancellation::a_network_that_is_down_for_a_while_is_waited_for::<RakNet>();
}

#[test]
fn polls_after_the_end_say_so() {
    cancellation::polls_after_the_end_say_so::<RakNet>();
}

#[test]
fn round_trips_survive_loss() {
    exchange::round_trips_survive_loss::<RakNet>();
}

#[test]
fn a_full_pool_makes_senders_wait_and_loses_nothing() {
    exchange::a_full_pool_makes_senders_wait_and_loses_nothing::<RakNet>();
}

#[test]
fn four_clients_play_with_one_host() {
    exchange::four_clients_play_with_one_host::<RakNet>();
}

#[test]
fn a_slow_reader_holds_up_nobody_else() {
    exchange::a_slow_reader_holds_up_nobody_else::<RakNet>();
}

#[test]
fn who_does_not_answer_is_told_of() {
    exchange::who_does_not_answer_is_told_of::<RakNet>();
}

#[test]
fn a_client_with_a_port_of_its_own_or_another_connection_keeps_it() {
    exchange::a_client_with_a_port_of_its_own_or_another_connection_keeps_it::<RakNet>();
}

#[test]
fn a_connection_that_is_ending_keeps_its_port() {
    exchange::a_connection_that_is_ending_keeps_its_port::<RakNet>();
}

#[test]
fn a_hook_sees_and_drops_what_passes_a_machine() {
    hooks::a_hook_sees_and_drops_what_passes_a_machine::<RakNet>();
}

#[test]
fn a_plugin_answers_while_its_machine_reads() {
    hooks::a_plugin_answers_while_its_machine_reads::<RakNet>();
}

#[test]
fn all_that_waits_is_read_before_a_peer_is_lost() {
    pause::all_that_waits_is_read_before_a_peer_is_lost::<RakNet>();
}

#[test]
fn what_is_on_its_way_to_the_socket_is_read_before_a_peer_is_lost() {
    pause::what_is_on_its_way_to_the_socket_is_read_before_a_peer_is_lost::<RakNet>();
}
