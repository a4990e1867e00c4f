//! Every guarantee holds in every order that the scheduler tries.

use rakwire_locks::properties;

#[test]
fn no_notification_is_lost() {
    properties::no_notification_is_lost();
}

#[test]
fn each_message_reaches_one_reader_and_the_end_reaches_all() {
    properties::each_message_reaches_one_reader_and_the_end_reaches_all();
}

#[test]
fn a_cancelled_reader_takes_no_message() {
    properties::a_cancelled_reader_takes_no_message();
}

#[test]
fn the_queue_of_arrivals_hides_no_datagram() {
    properties::the_queue_of_arrivals_hides_no_datagram();
}

#[test]
fn shards_admit_no_more_clients_than_there_are_slots() {
    properties::shards_admit_no_more_clients_than_there_are_slots();
}
