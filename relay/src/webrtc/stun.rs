//! Answers to the connectivity checks of ICE (RFC 8445), as an agent of the lite kind that keeps nothing.

use std::net::{IpAddr, SocketAddr};

use crc::{CRC_32_ISO_HDLC, Crc};
use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use sha1::Sha1;

use super::fingerprint::Fingerprint;

/// The user name of the relay in ICE. It names nobody: a check is told from others by its password.
pub(crate) const USERNAME: &str = "rakwire";

/// The longest check that is looked at. Browsers send about 100 bytes.
const LONGEST: usize = 512;

const HEADER: usize = 20;
const BINDING_REQUEST: u16 = 0x0001;
const BINDING_RESPONSE: u16 = 0x0101;
const ATTRIBUTE_USERNAME: u16 = 0x0006;
const ATTRIBUTE_INTEGRITY: u16 = 0x0008;
const ATTRIBUTE_ADDRESS: u16 = 0x0020;
const ATTRIBUTE_FINGERPRINT: u16 = 0x8028;
const INTEGRITY: usize = 20;

/// RFC 8489 section 14.7.
const FINGERPRINT_MASK: u32 = 0x5354_554e;

const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// The password of the relay in ICE, which is the fingerprint of its certificate in lower case without colons.
///
/// Who has the fingerprint may connect, and who connects needs it. So there is no second thing to tell a page, and a check of
/// somebody who does not know it is not answered.
#[derive(Debug)]
pub(crate) struct Password(Hmac<Sha1>);

/// Why a check is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// It is no binding request, or one without what ICE demands of it.
    Unreadable,
    /// It was made with another password.
    WrongPassword,
    /// The answer would be longer than the request, whose source may be forged.
    WouldAmplify,
}

impl Password {
    pub(crate) fn new(fingerprint: &Fingerprint) -> Option<Self> {
        let password = fingerprint.to_string().replace(':', "").to_ascii_lowercase();
        Hmac::new_from_slice(password.as_bytes()).ok().map(Self)
    }

    /// The answer to a binding request of `from`. The sender can only be told where it seems to be.
    pub(super) fn answer(&self, request: &[u8], from: SocketAddr) -> Result<Vec<u8>, Unanswered> {
        let transaction = self.verify(request)?;
        let answer = self.response(transaction, from);
        if answer.len() > request.len() { Err(Unanswered::WouldAmplify) } else { Ok(answer) }
    }

    /// The cookie and the id of the transaction.
    fn verify<'r>(&self, request: &'r [u8]) -> Result<&'r [u8], Unanswered> {
        let unreadable = Unanswered::Unreadable;
        if request.len() > LONGEST || read_u16(request, 0) != Some(BINDING_REQUEST) {
            return Err(unreadable);
        }
        if read_u16(request, 2).map(usize::from) != request.len().checked_sub(HEADER) {
            return Err(unreadable);
        }
        let Attributes { is_for_us, integrity, fingerprint } = attributes(request).ok_or(unreadable)?;
        let (at, sum) = fingerprint.ok_or(unreadable)?;
        // Before the integrity, which takes more time.
        if !is_for_us || CRC.checksum(&request[..at]) ^ FINGERPRINT_MASK != sum {
            return Err(unreadable);
        }
        let (at, sent) = integrity.ok_or(unreadable)?;
        self.mac(&request[..at]).verify_slice(sent).map_err(|_| Unanswered::WrongPassword)?;
        Ok(&request[4..HEADER])
    }

    fn response(&self, transaction: &[u8], from: SocketAddr) -> Vec<u8> {
        let mut message = Vec::with_capacity(96);
        message.extend(BINDING_RESPONSE.to_be_bytes());
        message.extend([0, 0]);
        message.extend(transaction);
        let address = xor_address(transaction, from);
        push_attribute(&mut message, ATTRIBUTE_ADDRESS, &address);
        let mac = self.mac(&message).finalize().into_bytes();
        push_attribute(&mut message, ATTRIBUTE_INTEGRITY, &mac);
        set_len(&mut message, 8);
        let sum = CRC.checksum(&message) ^ FINGERPRINT_MASK;
        push_attribute(&mut message, ATTRIBUTE_FINGERPRINT, &sum.to_be_bytes());
        message
    }

    /// The integrity of a message that ends before the attribute for it, whose length counts in the header.
    fn mac(&self, message: &[u8]) -> Hmac<Sha1> {
        let len = (message.len() - HEADER + 4 + INTEGRITY) as u16;
        let mut mac = self.0.clone();
        mac.update(&message[..2]);
        mac.update(&len.to_be_bytes());
        mac.update(&message[4..]);
        mac
    }
}

/// What counts of the attributes of a request. Positions are those of the attributes.
#[derive(Debug, Default)]
struct Attributes<'r> {
    is_for_us: bool,
    integrity: Option<(usize, &'r [u8])>,
    fingerprint: Option<(usize, u32)>,
}

/// `None` if they do not end where the message does, or if the fingerprint is not the last one.
fn attributes(request: &[u8]) -> Option<Attributes<'_>> {
    let mut found = Attributes::default();
    let mut at = HEADER;
    while at < request.len() {
        let kind = read_u16(request, at)?;
        let len = usize::from(read_u16(request, at + 2)?);
        let value = request.get(at + 4..at + 4 + len)?;
        let next = at + 4 + len.next_multiple_of(4);
        match kind {
            // Nothing behind the integrity is protected by it.
            ATTRIBUTE_USERNAME if found.integrity.is_none() => {
                let rest = value.strip_prefix(USERNAME.as_bytes());
                found.is_for_us = rest.is_some_and(|rest| rest.starts_with(b":"));
            }
            ATTRIBUTE_INTEGRITY if found.integrity.is_none() => found.integrity = Some((at, value)),
            ATTRIBUTE_FINGERPRINT => {
                found.fingerprint = Some((at, u32::from_be_bytes(value.try_into().ok()?)));
                if next != request.len() {
                    return None;
                }
            }
            _ => {}
        }
        at = next;
    }
    (at == request.len()).then_some(found)
}

/// The address, XORed with the cookie and the transaction, as RFC 8489 section 14.2 has it.
fn xor_address(transaction: &[u8], address: SocketAddr) -> Vec<u8> {
    let (family, mut bytes) = match address.ip().to_canonical() {
        IpAddr::V4(ip) => (1, ip.octets().to_vec()),
        IpAddr::V6(ip) => (2, ip.octets().to_vec()),
    };
    bytes.splice(0..0, address.port().to_be_bytes());
    let (port, ip) = bytes.split_at_mut(2);
    port.iter_mut().zip(transaction).for_each(|(byte, mask)| *byte ^= mask);
    ip.iter_mut().zip(transaction).for_each(|(byte, mask)| *byte ^= mask);
    bytes.splice(0..0, [0, family]);
    bytes
}

fn push_attribute(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend(kind.to_be_bytes());
    message.extend((value.len() as u16).to_be_bytes());
    message.extend(value);
    set_len(message, 0);
}

/// Writes the length of the attributes into the header, with `more` that are still to come.
fn set_len(message: &mut [u8], more: usize) {
    let len = (message.len() - HEADER + more) as u16;
    message[2..4].copy_from_slice(&len.to_be_bytes());
}

fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn fingerprint(first: u8) -> Fingerprint {
        Fingerprint::new([first; 32])
    }

    /// A check as browsers send it, with room that they fill with attributes of their own.
    pub(crate) fn check(password: &Password, username: &str, room: usize) -> Vec<u8> {
        let mut message = Vec::from([0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42]);
        message.extend(1..=12);
        let mut padded = username.as_bytes().to_vec();
        let len = padded.len();
        padded.resize(len.next_multiple_of(4), 0);
        push_attribute(&mut message, ATTRIBUTE_USERNAME, &padded);
        message[22..24].copy_from_slice(&(len as u16).to_be_bytes());
        push_attribute(&mut message, 0xc057, &vec![0; room]);
        let mac = password.mac(&message).finalize().into_bytes();
        push_attribute(&mut message, ATTRIBUTE_INTEGRITY, &mac);
        set_len(&mut message, 8);
        let sum = CRC.checksum(&message) ^ FINGERPRINT_MASK;
        push_attribute(&mut message, ATTRIBUTE_FINGERPRINT, &sum.to_be_bytes());
        message
    }

    fn from() -> SocketAddr {
        ([192, 0, 2, 1], 32_853).into()
    }

    #[test]
    fn a_check_is_answered_with_the_address_it_came_from() {
        let password = Password::new(&fingerprint(7)).unwrap();
        let answer = password.answer(&check(&password, "rakwire:Wx4z", 16), from()).unwrap();
        assert_eq!(answer[..2], BINDING_RESPONSE.to_be_bytes());
        assert_eq!(answer[4..8], [0x21, 0x12, 0xa4, 0x42]);
        // RFC 5769 section 2.2 has the same address: its port and its bytes, XORed with the cookie.
        assert_eq!(answer[20..32], [0, 0x20, 0, 8, 0, 1, 0xa1, 0x47, 0xe1, 0x12, 0xa6, 0x43]);
        let found = attributes(&answer).unwrap();
        let (at, mac) = found.integrity.unwrap();
        assert!(password.mac(&answer[..at]).verify_slice(mac).is_ok());
        let (at, sum) = found.fingerprint.unwrap();
        assert_eq!(CRC.checksum(&answer[..at]) ^ FINGERPRINT_MASK, sum);
    }

    #[test]
    fn addresses_of_ipv6_are_told_too() {
        let password = Password::new(&fingerprint(7)).unwrap();
        let answer = password
            .answer(&check(&password, "rakwire:Wx4z", 40), "[2001:db8::1]:9".parse().unwrap())
            .unwrap();
        assert_eq!(answer[20..26], [0, 0x20, 0, 20, 0, 2]);
    }

    #[test]
    fn other_passwords_and_other_names_are_not_answered() {
        let (password, other) =
            (Password::new(&fingerprint(7)).unwrap(), Password::new(&fingerprint(8)).unwrap());
        let answer = |request: &[u8]| password.answer(request, from()).err();
        assert_eq!(answer(&check(&other, "rakwire:Wx4z", 16)), Some(Unanswered::WrongPassword));
        for name in ["other:Wx4z", "rakwire", "rakwireWx4z", ""] {
            assert_eq!(answer(&check(&password, name, 16)), Some(Unanswered::Unreadable), "{name}");
        }
    }

    #[test]
    fn an_answer_is_never_longer_than_the_check() {
        let password = Password::new(&fingerprint(7)).unwrap();
        let short = check(&password, "rakwire:W", 0);
        assert_eq!(
            password.answer(&short, "[2001:db8::1]:9".parse().unwrap()).err(),
            Some(Unanswered::WouldAmplify)
        );
        assert!(password.answer(&short, from()).unwrap().len() <= short.len());
    }

    #[test]
    fn damaged_checks_are_dropped_whatever_is_wrong_with_them() {
        let password = Password::new(&fingerprint(7)).unwrap();
        let request = check(&password, "rakwire:Wx4z", 16);
        for len in 0..request.len() {
            assert!(password.answer(&request[..len], from()).is_err(), "{len}");
        }
        for at in 0..request.len() {
            let mut damaged = request.clone();
            damaged[at] ^= 0x40;
            assert!(password.answer(&damaged, from()).is_err(), "{at}");
        }
        assert!(password.answer(&[&request[..], &[0; 4]].concat(), from()).is_err());
        assert!(password.answer(&check(&password, "rakwire:Wx4z", 600), from()).is_err());
    }
}
