//! The numbers of reasons and errors for JavaScript, which are lines of the files in `texts/`, and the numeric settings
//! of a connection.

use core::time::Duration;

use rakwire::endpoint::{ConnectError, Protocol, SendError};

use crate::client::Memory;

/// The number of statistics of a connection, in the order of the names in `ts/rust.ts`.
pub(super) const MEASURES: usize = 18;
/// The value of a statistic that is unknown or that the protocol does not measure.
pub(super) const UNKNOWN: f64 = f64::NAN;

/// Returns the texts of a protocol. Only the connect failures and the drop reasons depend on the protocol.
macro_rules! texts {
    ($protocol:literal) => {
        concat!(
            include_str!(concat!("texts/", $protocol, "-failures.txt")),
            "\n",
            include_str!("texts/ends.txt"),
            "\n",
            include_str!("texts/errors.txt"),
            "\n",
            include_str!(concat!("texts/", $protocol, "-drops.txt")),
        )
        .trim_ascii_end()
    };
}
pub(super) use texts;

/// A protocol with numbers for its reasons and errors.
pub(super) trait Numbers: Protocol {
    /// The texts of the numbers, in paragraphs: connect failures, disconnect reasons, errors of calls, and names of
    /// drop reasons. A line is a code and its text, in which `{}` is a number.
    const TEXTS: &'static str;

    /// Returns the number of a connect failure, and the parameter of its text.
    fn failure(reason: Self::ConnectFailure) -> (u32, u32);
    /// Returns the number of a disconnect reason.
    fn end(reason: Self::DisconnectReason) -> u32;
    /// Returns the numbers of a reliability and a channel.
    fn delivery_numbers(delivery: Self::Delivery) -> (u32, u32);
    /// Decodes a delivery, as described for `send` in `class.rs`.
    fn delivery(number: u32) -> Option<Self::Delivery>;
    /// Returns the statistics of a connection for JavaScript.
    fn measure(connection: &Self::ConnectionStats) -> [f64; MEASURES];
}

/// The error of an invalid delivery number.
pub(super) const INVALID_DELIVERY: u8 = 8;

/// Returns the number of an error of `connect`.
pub(super) fn connect_error(cause: ConnectError) -> u8 {
    match cause {
        ConnectError::PasswordTooLong => 9,
        ConnectError::NoMemory => 10,
        ConnectError::AlreadyConnected | ConnectError::Full | _ => 11,
    }
}

/// Returns the number of an error of `send`.
pub(super) fn send_error(cause: SendError) -> u8 {
    match cause {
        SendError::NotConnected => 1,
        SendError::Empty => 2,
        SendError::ReservedId => 3,
        SendError::TooLong => 4,
        SendError::NeverFits => 5,
        SendError::QuotaExceeded => 6,
        SendError::PoolExhausted => 7,
        SendError::Filtered | _ => 0,
    }
}

/// Encodes a result of `send`: the number of a receipt plus 1, 0 without a receipt, or -1 minus the number of an error.
pub(super) fn sent<R: Into<f64>>(result: Result<Option<R>, u8>) -> f64 {
    match result {
        Ok(receipt) => receipt.map_or(0.0, |receipt| receipt.into() + 1.0),
        Err(number) => -1.0 - f64::from(number),
    }
}

/// Encodes a result of `canSend`: 1 for yes, 0 for not yet, or -1 minus the number of an error.
pub(super) fn accepted(result: Result<(), SendError>) -> i32 {
    match result {
        Ok(()) => 1,
        Err(SendError::QuotaExceeded | SendError::PoolExhausted) => 0,
        Err(cause) => -1 - i32::from(send_error(cause)),
    }
}

pub(super) fn ms(duration: Duration) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "exact for 285 years")]
    let micros = duration.as_micros() as u64 as f64;
    micros / 1_000.0
}

#[allow(clippy::cast_precision_loss, reason = "no counter of a page reaches 2^53")]
pub(super) fn count(value: u64) -> f64 {
    value as f64
}

/// Returns the memory with these values, in which 0 selects the value of `default`.
pub(super) fn memory(default: Memory, blocks: u32, block_size: u32) -> Memory {
    let given = |number: u32, default: usize| if number == 0 { default } else { number as usize };
    Memory { blocks: given(blocks, default.blocks), block_size: given(block_size, default.block_size) }
}

/// Returns the timeout; `None`, the default, for 0.
pub(super) fn timeout(milliseconds: u32) -> Option<Duration> {
    (milliseconds > 0).then(|| Duration::from_millis(milliseconds.into()))
}

/// Returns the random bytes of a peer.
pub(super) fn entropy(words: [u64; 4]) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
#[cfg(feature = "npm")]
mod tests {
    use std::fmt::Debug;
    use std::string::{String, ToString};
    use std::vec::Vec;
    use std::{format, vec};

    use rakwire::endpoint::{ConnectError, DropReasons, SendError};
    use rakwire::game_protocol::{self, GameProtocol};
    use rakwire::raknet::{self, RakNet, Refusal};

    use super::*;

    const FAILURES: usize = 0;
    const ENDS: usize = 1;
    const ERRORS: usize = 2;
    const DROPS: usize = 3;

    /// Returns the lines of a paragraph.
    fn lines<P: Numbers>(paragraph: usize) -> Vec<&'static str> {
        P::TEXTS.split("\n\n").nth(paragraph).expect("the paragraph exists").lines().collect()
    }

    /// Checks that the texts of these reasons equal those of the core.
    fn check<P: Numbers, R: ToString + Copy>(
        paragraph: usize,
        reasons: &[R],
        number: impl Fn(R) -> (u32, u32),
    ) {
        let lines = lines::<P>(paragraph);
        for reason in reasons {
            let (number, detail) = number(*reason);
            let (_, text) = lines[number as usize].split_once(' ').expect("a code and a text");
            assert_eq!(text.replace("{}", &detail.to_string()), reason.to_string());
        }
    }

    #[test]
    fn failure_and_close_texts_equal_those_of_the_core() {
        use raknet::ConnectFailure as Failure;
        let refusals = [
            Refusal::AttemptFailed,
            Refusal::AlreadyConnected,
            Refusal::NoFreeIncomingConnections,
            Refusal::Banned,
            Refusal::RecentlyConnected,
        ];
        let mut failures = vec![
            Failure::NoAnswer,
            Failure::HandshakeTimeout,
            Failure::IncompatibleProtocol { server: 7 },
            Failure::NoAnswerAfterIncompatible { server: 250 },
            Failure::SecurityRequired,
            Failure::ServerWithoutSecurity,
            Failure::IdentityRequired,
            Failure::InvalidIdentity,
            Failure::PublicKeyMismatch,
            Failure::InvalidPassword,
            Failure::Closed,
            Failure::Cancelled,
        ];
        failures.extend(refusals.map(Failure::Refused));
        check::<RakNet, _>(FAILURES, &failures, RakNet::failure);
        use game_protocol::ConnectFailure as GameFailure;
        let failures = [GameFailure::NoAnswer, GameFailure::Cancelled];
        check::<GameProtocol, _>(FAILURES, &failures, GameProtocol::failure);
        use raknet::DisconnectReason as Reason;
        let ends = [
            Reason::Local,
            Reason::Remote,
            Reason::Lost,
            Reason::MessageTooLarge,
            Reason::ReceiveMemory,
            Reason::SentTooLarge,
            Reason::PathTooNarrow,
        ];
        check::<RakNet, _>(ENDS, &ends, |reason| (RakNet::end(reason), 0));
        use game_protocol::DisconnectReason as GameReason;
        let ends = [
            GameReason::Local,
            GameReason::Remote,
            GameReason::Lost,
            GameReason::MessageTooLarge,
            GameReason::MessageUnfinished,
        ];
        check::<GameProtocol, _>(ENDS, &ends, |reason| (GameProtocol::end(reason), 0));
    }

    fn check_errors<P: Numbers>() {
        let errors = [
            SendError::NotConnected,
            SendError::Empty,
            SendError::ReservedId,
            SendError::TooLong,
            SendError::NeverFits,
            SendError::QuotaExceeded,
            SendError::PoolExhausted,
        ];
        check::<P, _>(ERRORS, &errors, |error| (send_error(error).into(), 0));
        let errors = [ConnectError::PasswordTooLong, ConnectError::NoMemory, ConnectError::AlreadyConnected];
        check::<P, _>(ERRORS, &errors, |error| (connect_error(error).into(), 0));
        assert!(lines::<P>(ERRORS)[usize::from(INVALID_DELIVERY)].contains("reliability"));
    }

    #[test]
    fn error_texts_equal_those_of_the_core() {
        check_errors::<RakNet>();
        check_errors::<GameProtocol>();
    }

    #[test]
    fn drop_names_equal_those_of_the_core() {
        fn names<R: DropReasons + Debug>() -> Vec<String> {
            let name = |reason: &R| {
                let name = format!("{reason:?}");
                format!("{}{}", name[..1].to_lowercase(), &name[1..])
            };
            R::REASONS.iter().map(name).collect()
        }
        assert_eq!(lines::<RakNet>(DROPS), names::<raknet::DropReason>(), "texts/raknet-drops.txt");
        let texts = "texts/game-protocol-drops.txt";
        assert_eq!(lines::<GameProtocol>(DROPS), names::<game_protocol::DropReason>(), "{texts}");
    }

    #[test]
    fn each_result_is_encoded_as_a_different_number() {
        assert_eq!(sent::<u32>(Ok(None)), 0.0);
        assert_eq!(sent(Ok(Some(0_u32))), 1.0);
        assert_eq!(sent(Ok(Some(u32::MAX))), 4_294_967_296.0);
        assert_eq!(sent::<u32>(Err(0)), -1.0);
        assert_eq!(accepted(Ok(())), 1);
        assert_eq!(accepted(Err(SendError::PoolExhausted)), 0);
        assert_eq!(accepted(Err(SendError::NotConnected)), -2);
        assert_eq!(ms(Duration::from_micros(1_500)), 1.5);
    }
}
