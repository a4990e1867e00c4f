//! What becomes of a datagram.

use super::kind::ProtocolKind;

/// What becomes of a datagram of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It goes to the server, changed as this says.
    Pass(Change),
    /// It does not go to the server; this goes to the client.
    Answer(Vec<u8>),
    /// It goes nowhere.
    Drop(Refusal),
}

/// What changes in a datagram that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// Only this many bytes of it pass, fewer than it has.
    Cut(usize),
    /// The MTU that stands at a position, as a big-endian `u16`, becomes this one.
    Mtu {
        /// The position of its first byte.
        at: usize,
        /// The MTU.
        mtu: u16,
    },
}

impl Change {
    /// Applies the change to a copy of the datagram that it was made for, and returns what passes of it.
    ///
    /// ```
    /// use rakwire_relay::protocol::Change;
    ///
    /// assert_eq!(Change::Cut(2).apply(&mut [1, 2, 3]), [1, 2]);
    /// assert_eq!(Change::Mtu { at: 1, mtu: 0x0485 }.apply(&mut [1, 0xFF, 0xFF]), [1, 0x04, 0x85]);
    /// ```
    #[must_use]
    pub fn apply(self, datagram: &mut [u8]) -> &mut [u8] {
        match self {
            Self::None => datagram,
            Self::Cut(length) => {
                let length = length.min(datagram.len());
                &mut datagram[..length]
            }
            Self::Mtu { at, mtu } => {
                if let Some(field) = datagram.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
                    *field = mtu.to_be_bytes();
                }
                datagram
            }
        }
    }
}

/// Why a datagram of a client goes nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It is no part of a handshake, and the server has not answered one.
    NoHandshake,
    /// The client has sent more of handshakes than its budget.
    HandshakeBudget,
    /// It begins a handshake of another protocol than the target's, which is this one.
    OtherProtocol(ProtocolKind),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_reaches_no_further_than_the_datagram() {
        assert_eq!(Change::None.apply(&mut [1]), [1]);
        assert_eq!(Change::Cut(9).apply(&mut [1, 2]), [1, 2]);
        for at in 1..4 {
            assert_eq!(Change::Mtu { at, mtu: 0 }.apply(&mut [1, 2]), [1, 2]);
        }
        assert!(Change::Mtu { at: usize::MAX, mtu: 0 }.apply(&mut []).is_empty());
    }
}
