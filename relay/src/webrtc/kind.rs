//! What a datagram on a port of several protocols belongs to, by its first bytes (RFC 7983, RFC 9443).

/// The longest datagram of the network that is looked at. A path with a larger MTU is rare, and no browser uses it.
pub(super) const RECEIVE_MAX: usize = 2_048;

/// See [`DatagramKind::of`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatagramKind {
    /// A STUN message (RFC 8489): how ICE finds out whether the relay can be reached.
    Stun,
    /// A DTLS record (RFC 6347, RFC 9147).
    Dtls,
    /// Neither, such as QUIC.
    Other,
}

/// Every STUN message has it, which tells it from the packets of RakNet that begin with the same numbers.
const STUN_COOKIE: [u8; 4] = 0x2112_a442_u32.to_be_bytes();

impl DatagramKind {
    /// The kind of a datagram.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match bytes.first() {
            Some(0..=3) if bytes.get(4..8) == Some(&STUN_COOKIE[..]) => Self::Stun,
            Some(20..=63) => Self::Dtls,
            _ => Self::Other,
        }
    }
}

/// Whether a datagram begins with a DTLS client hello: the only record that may come from an unknown source.
///
/// RFC 6347 section 4.3.1: type, version, epoch (2), number (6), length (2), then the type of the handshake message.
pub(super) fn is_client_hello(bytes: &[u8]) -> bool {
    const HANDSHAKE: u8 = 22;
    const CLIENT_HELLO: u8 = 1;
    bytes.first() == Some(&HANDSHAKE)
        && bytes.get(3..5) == Some(&[0, 0])
        && bytes.get(13) == Some(&CLIENT_HELLO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_the_protocols_apart() {
        let stun = [&[0, 1, 0, 0][..], &STUN_COOKIE, &[0; 12]].concat();
        assert_eq!(DatagramKind::of(&stun), DatagramKind::Stun);
        // An unconnected ping of RakNet, whose time stands where STUN has its cookie.
        assert_eq!(DatagramKind::of(&[1, 0, 0, 0, 0, 0, 0, 0, 0]), DatagramKind::Other);
        for first in [20, 22, 23, 63] {
            assert_eq!(DatagramKind::of(&[first]), DatagramKind::Dtls);
        }
        // QUIC: short headers from 64, long ones from 192.
        for first in [19, 64, 127, 128, 192, 255] {
            assert_eq!(DatagramKind::of(&[first; 20]), DatagramKind::Other, "{first}");
        }
        assert_eq!(DatagramKind::of(&[]), DatagramKind::Other);
    }

    #[test]
    fn only_a_client_hello_of_epoch_0_begins_a_session() {
        let record = |kind: u8, epoch: u8, message: u8| {
            [&[kind, 0xfe, 0xfd, 0, epoch][..], &[0; 6], &[0, 40], &[message], &[0; 40]].concat()
        };
        assert!(is_client_hello(&record(22, 0, 1)));
        assert!(!is_client_hello(&record(22, 0, 2)));
        assert!(!is_client_hello(&record(22, 1, 1)));
        assert!(!is_client_hello(&record(23, 0, 1)));
        assert!(!is_client_hello(&record(22, 0, 1)[..13]));
    }
}
