//! Runs every property in many interleavings.

use rakwire_locks::properties;

#[test]
fn a_waiting_task_continues_after_every_notification() {
    properties::a_waiting_task_continues_after_every_notification();
}

#[test]
fn each_message_reaches_one_reader_and_a_close_ends_all_readers() {
    properties::each_message_reaches_one_reader_and_a_close_ends_all_readers();
}

#[test]
fn a_cancelled_reader_takes_no_message_from_others() {
    properties::a_cancelled_reader_takes_no_message_from_others();
}

#[test]
fn a_pushed_datagram_is_returned_by_the_next_take_of_the_arrival_queue() {
    properties::a_pushed_datagram_is_returned_by_the_next_take_of_the_arrival_queue();
}

#[test]
fn shards_admit_at_most_the_maximum_number_of_clients() {
    properties::shards_admit_at_most_the_maximum_number_of_clients();
}
