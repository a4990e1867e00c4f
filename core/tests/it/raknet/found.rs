//! Sequences that once broke a promise, as short as they could be made.

use rakwire::raknet::{Channel, Delivery, Priority, Reliability};

use crate::model::operation::End::{Client, Server};
use crate::model::operation::{End, Operation, Send, Sequence, Setup};
use crate::model::route::Fault::{Doubled, Late, Lost};
use crate::model::world;

const SMALL: Setup = Setup { first_number: 0xFF_FFFC, blocks: 64, block_size: 256, mtu: 1_492 };

/// Runs a sequence of which every promise must be kept.
fn keep(setup: Setup, operations: Vec<Operation>) {
    let kept = world::run(&Sequence { setup, operations });
    assert!(kept.is_ok(), "{kept:?}");
}

const fn send(from: End, reliability: Reliability, priority: Priority, length: u16, copies: u8) -> Operation {
    let delivery = Delivery { reliability, channel: Channel::ZERO, priority };
    Operation::Send(Send { from, delivery, length, copies })
}

const fn advance(millis: u16) -> Operation {
    Operation::Advance { millis }
}

/// The numbers of a client's datagrams began at 0 wherever they should, and a server far from there took none.
#[test]
fn both_ends_start_their_numbers_where_they_are_told() {
    keep(Setup { first_number: 0x7F_FFF8, ..SMALL }, Vec::new());
}

/// A disconnection notification overtook parts that were lost or late, and the other end took nothing after it.
#[test]
fn the_disconnection_notification_comes_after_what_was_sent_before() {
    keep(
        SMALL,
        vec![
            send(Client, Reliability::Reliable, Priority::Medium, 2_048, 2),
            Operation::Neglect(Server),
            send(Client, Reliability::ReliableSequenced, Priority::Low, 2_048, 2),
            Operation::Disconnect(Client),
            Operation::Fault { to: Server, fault: Late, mask: 0b1010_1100 },
            advance(179),
        ],
    );
}

/// A connection that drained while the machine slept was due for ever: it owed an acknowledgement to nobody.
#[test]
fn a_connection_that_drains_is_over_after_a_sleep() {
    keep(
        Setup { mtu: 576, blocks: 512, ..SMALL },
        vec![
            advance(252),
            Operation::Fault { to: Client, fault: Lost, mask: 0b1110_1010 },
            send(Client, Reliability::UnreliableSequenced, Priority::Immediate, 624, 2),
            Operation::Disconnect(Server),
            advance(173),
            Operation::Jump { millis: 23_164 },
        ],
    );
}

/// A message that found no room kept out the one behind it in the same datagram, for which it waited.
#[test]
fn what_finds_no_room_keeps_nothing_else_out() {
    keep(
        Setup { blocks: 128, block_size: 64, ..SMALL },
        vec![
            send(Server, Reliability::ReliableOrdered, Priority::High, 21, 2),
            send(Server, Reliability::ReliableOrdered, Priority::Immediate, 1_024, 4),
        ],
    );
}

/// The unreliable messages of a datagram that was refused for want of memory arrived again with its double.
#[test]
fn the_double_of_a_refused_datagram_brings_nothing_unreliable() {
    keep(
        Setup { block_size: 64, ..SMALL },
        vec![
            Operation::Pause(Server),
            send(Client, Reliability::UnreliableWithReceipt, Priority::Immediate, 744, 4),
            advance(173),
            send(Client, Reliability::ReliableOrdered, Priority::Low, 3_941, 1),
            send(Client, Reliability::UnreliableWithReceipt, Priority::Immediate, 19, 1),
            Operation::Fault { to: Server, fault: Doubled, mask: 0b0110_1001 },
            advance(191),
        ],
    );
}

/// A connection that had found no room once, before a gap closed, was ended although it was its own application that
/// read nothing after that.
#[test]
fn an_application_that_reads_late_is_not_the_other_ends_doing() {
    keep(
        Setup { block_size: 256, blocks: 128, ..SMALL },
        vec![
            advance(89),
            Operation::Pause(Server),
            send(Client, Reliability::Reliable, Priority::Low, 3_717, 4),
            Operation::Fault { to: Server, fault: Late, mask: 0b0111_0001 },
            advance(14_117),
        ],
    );
}

/// Urgent messages overtook a less urgent one on their channel, filled the share of memory that it needed, and both ends
/// gave up.
#[test]
fn what_is_urgent_takes_no_room_from_what_it_waits_for() {
    keep(
        Setup { first_number: 0, blocks: 512, block_size: 256, mtu: 576 },
        vec![
            send(Server, Reliability::ReliableOrderedWithReceipt, Priority::High, 8_191, 1),
            send(Server, Reliability::ReliableOrderedWithReceipt, Priority::Immediate, 8_191, 4),
            Operation::Pause(Client),
            advance(4_497),
            advance(4_497),
            advance(4_497),
            advance(4_497),
            advance(4_497),
        ],
    );
}

/// After a sleep of the machine the round trip seemed minutes long, and what was lost was sent again minutes later.
#[test]
fn a_round_trip_that_never_was_delays_nothing_for_long() {
    let sleep = || Operation::Jump { millis: 21_716 };
    keep(
        Setup { first_number: 0, blocks: 128, block_size: 256, mtu: 1_492 },
        vec![
            send(Server, Reliability::ReliableSequenced, Priority::Immediate, 5_332, 1),
            sleep(),
            sleep(),
            sleep(),
            sleep(),
            sleep(),
            Operation::Jump { millis: 16_191 },
            send(Server, Reliability::ReliableOrderedWithReceipt, Priority::Low, 732, 4),
            Operation::Fault { to: Client, fault: Late, mask: 183 },
            send(Client, Reliability::UnreliableSequenced, Priority::High, 7_902, 2),
            Operation::Fault { to: Client, fault: Lost, mask: 72 },
            advance(56),
        ],
    );
}

/// A connection that had ended still probed the path. So it waited for an acknowledgement, and after a sleep it was due for
/// ever.
#[test]
fn a_connection_that_has_ended_sends_no_probe() {
    keep(
        Setup { first_number: 0, blocks: 128, ..SMALL },
        vec![
            send(Client, Reliability::ReliableWithReceipt, Priority::Immediate, 3_483, 2),
            send(Client, Reliability::ReliableOrderedWithReceipt, Priority::Immediate, 3_529, 1),
            advance(26),
            Operation::Disconnect(Server),
            Operation::Send(Send {
                from: Client,
                delivery: Delivery {
                    reliability: Reliability::Reliable,
                    channel: Channel::new(1).expect("a channel"),
                    priority: Priority::Medium,
                },
                length: 5_321,
                copies: 1,
            }),
            Operation::Jump { millis: 19_098 },
            advance(127),
            Operation::Jump { millis: 30_540 },
        ],
    );
}
