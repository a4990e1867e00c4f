//! Conversions between the numbers of the C header and the types of the library.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;

use rakwire_native::rakwire::endpoint::{
    ConnectionState, Direction, Outcome as ReceiptOutcome, RefuseReason, SendError, Side,
};
use rakwire_native::rakwire::raknet::{Refusal, SetError};
use rakwire_native::{
    Channel, ConnectError, ConnectFailure, Delivery, DisconnectReason, Priority, Reliability,
};

use crate::codes::{
    Failure, Outcome, RAKWIRE_ERROR_ADDRESS, RAKWIRE_ERROR_ADDRESS_FAMILY, RAKWIRE_ERROR_ALREADY_CONNECTED,
    RAKWIRE_ERROR_ARGUMENT, RAKWIRE_ERROR_EMPTY, RAKWIRE_ERROR_FULL, RAKWIRE_ERROR_NO_CONNECTION,
    RAKWIRE_ERROR_NO_ROOM, RAKWIRE_ERROR_NOT_CONNECTED, RAKWIRE_ERROR_RESERVED_ID, RAKWIRE_ERROR_SECURITY,
    RAKWIRE_ERROR_TOO_LONG, RAKWIRE_ERROR_UNSUPPORTED,
};
use crate::types::{
    RAKWIRE_DISCONNECT_LOCAL, RAKWIRE_DISCONNECT_LOST, RAKWIRE_DISCONNECT_MESSAGE_TOO_LARGE,
    RAKWIRE_DISCONNECT_PATH_TOO_NARROW, RAKWIRE_DISCONNECT_RECEIVE_MEMORY, RAKWIRE_DISCONNECT_REMOTE,
    RAKWIRE_DISCONNECT_SENT_TOO_LARGE, RAKWIRE_FAILURE_ALREADY_CONNECTED, RAKWIRE_FAILURE_ATTEMPT_FAILED,
    RAKWIRE_FAILURE_BANNED, RAKWIRE_FAILURE_CANCELLED, RAKWIRE_FAILURE_CLOSED,
    RAKWIRE_FAILURE_HANDSHAKE_TIMEOUT, RAKWIRE_FAILURE_IDENTITY_REQUIRED, RAKWIRE_FAILURE_INVALID_IDENTITY,
    RAKWIRE_FAILURE_NO_ANSWER, RAKWIRE_FAILURE_NO_SECURITY, RAKWIRE_FAILURE_PASSWORD,
    RAKWIRE_FAILURE_PUBLIC_KEY, RAKWIRE_FAILURE_RECENTLY_CONNECTED, RAKWIRE_FAILURE_SECURITY_REQUIRED,
    RAKWIRE_FAILURE_SERVER_FULL, RAKWIRE_FAILURE_UNREACHABLE, RAKWIRE_FAILURE_VERSION,
    RAKWIRE_OUTCOME_ACKNOWLEDGED, RAKWIRE_OUTCOME_LOST, RAKWIRE_REASON_OTHER, RAKWIRE_REFUSED_IDENTITY,
    RAKWIRE_REFUSED_NO_IDENTITY, RAKWIRE_REFUSED_NO_TOKEN, RAKWIRE_REFUSED_PASSWORD,
    RAKWIRE_REFUSED_TOKEN_CLIENT, RAKWIRE_REFUSED_TOKEN_EXPIRED, RAKWIRE_REFUSED_TOKEN_SERVER,
    RAKWIRE_REFUSED_TOKEN_STORE, RAKWIRE_REFUSED_TOKEN_USED, RAKWIRE_SIDE_CLIENT, RAKWIRE_SIDE_SERVER,
    RAKWIRE_STATE_CONNECTED, RAKWIRE_STATE_CONNECTING, RAKWIRE_STATE_DISCONNECTED,
    RAKWIRE_STATE_DISCONNECTING, RakwireAddress,
};

pub(crate) fn address_of(address: SocketAddr) -> RakwireAddress {
    let mut ip = [0; 16];
    let (family, scope) = match address {
        SocketAddr::V4(v4) => {
            ip[..4].copy_from_slice(&v4.ip().octets());
            (4, 0)
        }
        SocketAddr::V6(v6) => {
            ip = v6.ip().octets();
            (6, v6.scope_id())
        }
    };
    RakwireAddress { family, reserved: 0, port: address.port(), scope, ip }
}

pub(crate) fn socket_address(address: &RakwireAddress) -> Outcome<SocketAddr> {
    let RakwireAddress { family, port, scope, ip, .. } = *address;
    let [a, b, c, d, ..] = ip;
    match family {
        4 => Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), port)),
        6 => Ok(SocketAddrV6::new(Ipv6Addr::from(ip), port, 0, scope).into()),
        _ => Err(Failure::with(RAKWIRE_ERROR_ADDRESS, "the family of an address must be 4 or 6")),
    }
}

pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

pub(crate) fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

pub(crate) const fn duration(millis: u32) -> Duration {
    Duration::from_millis(millis as u64)
}

/// Reads how a message is to be sent.
#[inline]
pub(crate) fn delivery(reliability: u8, channel: u8, priority: u8) -> Outcome<Delivery> {
    let refused = |text| Failure::with(RAKWIRE_ERROR_ARGUMENT, text);
    let reliability =
        Reliability::from_number(reliability).ok_or_else(|| refused("reliability must be 0 to 7"))?;
    let priority = Priority::from_number(priority).ok_or_else(|| refused("priority must be 0 to 3"))?;
    let channel = Channel::new(channel).ok_or_else(|| refused("channel must be 0 to 31"))?;
    Ok(Delivery::new(reliability).on(channel).with_priority(priority))
}

pub(crate) const fn side(side: Side) -> u8 {
    match side {
        Side::Client => RAKWIRE_SIDE_CLIENT,
        Side::Server => RAKWIRE_SIDE_SERVER,
    }
}

pub(crate) const fn state(state: ConnectionState) -> u8 {
    match state {
        ConnectionState::Connecting => RAKWIRE_STATE_CONNECTING,
        ConnectionState::Connected => RAKWIRE_STATE_CONNECTED,
        ConnectionState::Disconnecting => RAKWIRE_STATE_DISCONNECTING,
        ConnectionState::Disconnected => RAKWIRE_STATE_DISCONNECTED,
    }
}

pub(crate) const fn outcome(outcome: ReceiptOutcome) -> u8 {
    match outcome {
        ReceiptOutcome::Acknowledged => RAKWIRE_OUTCOME_ACKNOWLEDGED,
        ReceiptOutcome::Lost => RAKWIRE_OUTCOME_LOST,
    }
}

pub(crate) const fn is_outgoing(direction: Direction) -> bool {
    match direction {
        Direction::Sending => true,
        Direction::Receiving => false,
    }
}

/// Returns the number of the reason why a server refused a client.
const fn refused(refusal: Refusal) -> i32 {
    match refusal {
        Refusal::AttemptFailed => RAKWIRE_FAILURE_ATTEMPT_FAILED,
        Refusal::AlreadyConnected => RAKWIRE_FAILURE_ALREADY_CONNECTED,
        Refusal::NoFreeIncomingConnections => RAKWIRE_FAILURE_SERVER_FULL,
        Refusal::Banned => RAKWIRE_FAILURE_BANNED,
        Refusal::RecentlyConnected => RAKWIRE_FAILURE_RECENTLY_CONNECTED,
    }
}

/// Returns the number of a connect failure, and the server's version if the failure concerns versions.
pub(crate) const fn failure(failure: ConnectFailure) -> (i32, u8) {
    let reason = match failure {
        ConnectFailure::NoAnswer => RAKWIRE_FAILURE_NO_ANSWER,
        ConnectFailure::Unreachable => RAKWIRE_FAILURE_UNREACHABLE,
        ConnectFailure::HandshakeTimeout => RAKWIRE_FAILURE_HANDSHAKE_TIMEOUT,
        ConnectFailure::Refused(refusal) => refused(refusal),
        ConnectFailure::IncompatibleProtocol { server }
        | ConnectFailure::NoAnswerAfterIncompatible { server } => return (RAKWIRE_FAILURE_VERSION, server),
        ConnectFailure::SecurityRequired => RAKWIRE_FAILURE_SECURITY_REQUIRED,
        ConnectFailure::ServerWithoutSecurity => RAKWIRE_FAILURE_NO_SECURITY,
        ConnectFailure::IdentityRequired => RAKWIRE_FAILURE_IDENTITY_REQUIRED,
        ConnectFailure::InvalidIdentity => RAKWIRE_FAILURE_INVALID_IDENTITY,
        ConnectFailure::PublicKeyMismatch => RAKWIRE_FAILURE_PUBLIC_KEY,
        ConnectFailure::InvalidPassword => RAKWIRE_FAILURE_PASSWORD,
        ConnectFailure::Closed => RAKWIRE_FAILURE_CLOSED,
        ConnectFailure::Cancelled => RAKWIRE_FAILURE_CANCELLED,
        _ => RAKWIRE_REASON_OTHER,
    };
    (reason, 0)
}

pub(crate) const fn disconnect(reason: DisconnectReason) -> i32 {
    match reason {
        DisconnectReason::Local => RAKWIRE_DISCONNECT_LOCAL,
        DisconnectReason::Remote => RAKWIRE_DISCONNECT_REMOTE,
        DisconnectReason::Lost => RAKWIRE_DISCONNECT_LOST,
        DisconnectReason::MessageTooLarge => RAKWIRE_DISCONNECT_MESSAGE_TOO_LARGE,
        DisconnectReason::SentTooLarge => RAKWIRE_DISCONNECT_SENT_TOO_LARGE,
        DisconnectReason::PathTooNarrow => RAKWIRE_DISCONNECT_PATH_TOO_NARROW,
        DisconnectReason::ReceiveMemory => RAKWIRE_DISCONNECT_RECEIVE_MEMORY,
        _ => RAKWIRE_REASON_OTHER,
    }
}

pub(crate) const fn refusal(reason: RefuseReason) -> i32 {
    match reason {
        RefuseReason::WrongPassword => RAKWIRE_REFUSED_PASSWORD,
        RefuseReason::NoIdentity => RAKWIRE_REFUSED_NO_IDENTITY,
        RefuseReason::InvalidIdentity => RAKWIRE_REFUSED_IDENTITY,
        RefuseReason::NoToken => RAKWIRE_REFUSED_NO_TOKEN,
        RefuseReason::TokenExpired => RAKWIRE_REFUSED_TOKEN_EXPIRED,
        RefuseReason::TokenForOtherServer => RAKWIRE_REFUSED_TOKEN_SERVER,
        RefuseReason::TokenOfOtherClient => RAKWIRE_REFUSED_TOKEN_CLIENT,
        RefuseReason::TokenUsed => RAKWIRE_REFUSED_TOKEN_USED,
        RefuseReason::TokenStoreFull => RAKWIRE_REFUSED_TOKEN_STORE,
        _ => RAKWIRE_REASON_OTHER,
    }
}

#[cold]
pub(crate) fn send_error(error: SendError) -> Failure {
    let code = match error {
        SendError::NotConnected => RAKWIRE_ERROR_NOT_CONNECTED,
        SendError::Empty => RAKWIRE_ERROR_EMPTY,
        SendError::ReservedId => RAKWIRE_ERROR_RESERVED_ID,
        SendError::TooLong | SendError::NeverFits => RAKWIRE_ERROR_TOO_LONG,
        SendError::QuotaExceeded | SendError::PoolExhausted => RAKWIRE_ERROR_NO_ROOM,
        SendError::FeatureDisabled => RAKWIRE_ERROR_UNSUPPORTED,
        SendError::Filtered | _ => return Failure::with(RAKWIRE_ERROR_ARGUMENT, error),
    };
    // The general description of a code needs no allocation.
    Failure::new(code)
}

pub(crate) fn connect_error(error: &ConnectError) -> Failure {
    let code = match error {
        ConnectError::AlreadyConnected => RAKWIRE_ERROR_ALREADY_CONNECTED,
        ConnectError::Full => RAKWIRE_ERROR_FULL,
        ConnectError::AddressFamily => RAKWIRE_ERROR_ADDRESS_FAMILY,
        ConnectError::UnassignedAddress => RAKWIRE_ERROR_ADDRESS,
        ConnectError::PasswordTooLong => RAKWIRE_ERROR_TOO_LONG,
        ConnectError::NoSecurity | ConnectError::IdentityWithoutTrust | ConnectError::InvalidIdentityData => {
            RAKWIRE_ERROR_SECURITY
        }
        ConnectError::InvalidMtu | _ => RAKWIRE_ERROR_ARGUMENT,
    };
    Failure::with(code, error)
}

pub(crate) fn set_error(error: SetError) -> Failure {
    let code = match error {
        SetError::AdvertisementTooLong | SetError::PasswordTooLong => RAKWIRE_ERROR_TOO_LONG,
        SetError::NoConnection => RAKWIRE_ERROR_NO_CONNECTION,
        SetError::TooManyAddresses | SetError::NoMemory | _ => RAKWIRE_ERROR_ARGUMENT,
    };
    Failure::with(code, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_conversion_to_c_and_back() {
        for text in ["192.0.2.1:7", "[2001:db8::1]:65535", "[fe80::1%3]:9", "0.0.0.0:0"] {
            let address: SocketAddr = text.parse().expect("an address");
            assert_eq!(socket_address(&address_of(address)).expect("a family"), address);
        }
    }

    #[test]
    fn unknown_reliabilities_channels_and_priorities_are_refused() {
        assert!(delivery(7, 31, 3).is_ok());
        assert!(delivery(8, 0, 0).is_err() && delivery(0, 32, 0).is_err() && delivery(0, 0, 4).is_err());
        for reliability in 0..8 {
            let read = delivery(reliability, 5, 1).expect("a delivery");
            assert_eq!(read.reliability as u8, reliability);
            assert_eq!((read.channel.number(), read.priority), (5, Priority::High));
        }
    }
}
