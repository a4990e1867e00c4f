//! Minimised sequences of operations that once violated a guarantee.

use rakwire::raknet::{Channel, Delivery, Priority, Reliability};

use crate::model::operation::End::{Client, Server};
use crate::model::operation::{End, Operation, Send, Sequence, Setup};
use crate::model::route::Fault::{Doubled, Late, Lost};
use crate::model::world;

const SMALL: Setup = Setup { first_number: 0xFF_FFFC, blocks: 64, block_size: 256, mtu: 1_492 };

/// Runs a sequence and checks every guarantee.
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

/// Regression: a client started its datagram numbers at 0 regardless of its configuration, so a server with another
/// configured start dropped them.
#[test]
fn peers_start_at_their_configured_datagram_numbers() {
    keep(Setup { first_number: 0x7F_FFF8, ..SMALL }, Vec::new());
}

/// Regression: a disconnection notification overtook lost or delayed parts of earlier messages, which the remote peer
/// then ignored.
#[test]
fn the_disconnection_notification_follows_earlier_messages() {
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

/// Regression: a connection that was draining while the machine slept was never freed, because an acknowledgement
/// that could not be sent stayed due.
#[test]
fn a_draining_connection_is_freed_after_a_sleep() {
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

/// Regression: a message refused for lack of memory blocked the next message in its datagram, although the refused
/// message could only be delivered after the next one.
#[test]
fn a_message_without_memory_does_not_block_the_next() {
    keep(
        Setup { blocks: 128, block_size: 64, ..SMALL },
        vec![
            send(Server, Reliability::ReliableOrdered, Priority::High, 21, 2),
            send(Server, Reliability::ReliableOrdered, Priority::Immediate, 1_024, 4),
        ],
    );
}

/// Regression: if a datagram was refused for lack of memory after some of its unreliable messages were delivered, a
/// duplicate of the datagram delivered them again.
#[test]
fn a_duplicate_of_a_refused_datagram_repeats_no_unreliable_message() {
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

/// Regression: if the application did not read while a message was missing, the receiver ran out of memory and closed
/// the connection.
#[test]
fn a_slow_local_application_does_not_close_the_connection() {
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

/// Regression: urgent messages overtook a less urgent one on their channel and filled the receiver's memory. The
/// earlier message no longer fit, so the connection closed.
#[test]
fn urgent_messages_do_not_starve_an_earlier_message_of_memory() {
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

/// Regression: after a sleep of the machine, an RTT sample of minutes delayed the retransmission of losses by minutes.
#[test]
fn an_inflated_rtt_sample_after_a_sleep_delays_messages_only_briefly() {
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

/// Regression: a closed connection still sent path probes. After a sleep it waited forever for their acknowledgements.
#[test]
fn a_closed_connection_sends_no_path_probe() {
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
