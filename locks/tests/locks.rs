//! Runs every property in many interleavings.

use rakwire_locks::properties;

#[test]
fn a_waiting_task_continues_after_every_notification() {
    properties::a_waiting_task_continues_after_every_notification();
}

#[test]
fn each_message_reaches_one_reader_and_the_close_reaches_all() {
    properties::each_message_reaches_one_reader_and_the_close_reaches_all();
}

#[test]
fn a_cancelled_reader_consumes_no_message() {
    properties::a_cancelled_reader_consumes_no_message();
}

#[test]
fn the_arrival_queue_hides_no_datagram() {
    properties::the_arrival_queue_hides_no_datagram();
}

#[test]
fn shards_admit_at_most_the_maximum_number_of_clients() {
    properties::shards_admit_at_most_the_maximum_number_of_clients();
}
