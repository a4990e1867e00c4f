//! The connectivity checks of ICE (RFC 8445): answers to the checks of pages, and the relay's own checks, which
//! validate the address of a page. No state is kept for either.
//!
//! The password is the fingerprint of the relay's certificate. The first bytes of a datagram distinguish checks from
//! other protocols at the same port (RFC 7983, RFC 9443).

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crc::{CRC_32_ISO_HDLC, Crc};
use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// The prefix of the relay's ICE user name. It is followed by the page's password, with which the relay creates checks
/// of the page. A page chooses both user names of the session itself, so no signalling is needed.
pub(crate) const USERNAME: &str = "rakwire/";

/// The minimum length of ICE passwords (RFC 8445 section 5.3).
const PASSWORD_MIN: usize = 22;

/// The maximum length of a check that is parsed, in bytes. Browsers send about 100 bytes.
const LONGEST: usize = 512;

const HEADER: usize = 20;
const BINDING_REQUEST: u16 = 0x0001;
const BINDING_RESPONSE: u16 = 0x0101;
const BINDING_ERROR: u16 = 0x0111;
const ATTRIBUTE_USERNAME: u16 = 0x0006;
const ATTRIBUTE_INTEGRITY: u16 = 0x0008;
const ATTRIBUTE_ADDRESS: u16 = 0x0020;
const ATTRIBUTE_PRIORITY: u16 = 0x0024;
const ATTRIBUTE_FINGERPRINT: u16 = 0x8028;
const ATTRIBUTE_CONTROLLED: u16 = 0x8029;
const INTEGRITY: usize = 20;

/// The magic cookie of every message (RFC 8489 section 5).
const COOKIE: [u8; 4] = 0x2112_a442_u32.to_be_bytes();

/// The priority of a host candidate (RFC 8445 section 5.1.2), the only candidate of the relay.
const PRIORITY: u32 = 2_130_706_431;

/// The value that is XORed with the CRC (RFC 8489 section 14.7).
const FINGERPRINT_MASK: u32 = 0x5354_554e;

const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// The relay's ICE password: the fingerprint of its certificate, in lower case without colons.
///
/// A page needs the fingerprint to connect, and a page that has it is allowed to connect. A second secret is therefore
/// unnecessary. A check that was created without the fingerprint is not answered.
#[derive(Debug)]
pub(crate) struct Password(Hmac<Sha1>);

/// A transaction id.
pub(super) type Transaction = [u8; 12];

/// A connectivity check of a page that has the relay's password.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Check<'r> {
    /// The length of the check. No reply is longer, because the source may be forged.
    len: usize,
    /// The magic cookie and the transaction id.
    transaction: &'r [u8],
    /// The user names of both sides, which are unique to one session.
    pub(super) username: &'r [u8],
}

/// A parsed STUN message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stun<'r> {
    Check(Check<'r>),
    /// An answer to a check with this transaction. An error response also proves receipt of the check.
    Answer(&'r Transaction),
}

/// The reason why a check is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The message is not a binding request, or lacks an attribute that ICE requires.
    Unreadable,
    /// The check was created with another password.
    WrongPassword,
    /// The answer would be longer than the request, which may have a forged source.
    WouldAmplify,
}

impl Password {
    pub(crate) fn new(fingerprint: &Fingerprint) -> Option<Self> {
        let password = fingerprint.to_string().replace(':', "").to_ascii_lowercase();
        Hmac::new_from_slice(password.as_bytes()).ok().map(Self)
    }

    /// Parses a message. The integrity of an answer is not checked, because its transaction id is sufficient proof: the
    /// id contains a keyed hash.
    pub(super) fn read<'r>(&self, message: &'r [u8]) -> Result<Stun<'r>, Unanswered> {
        let unreadable = Unanswered::Unreadable;
        let len = read_u16(message, 2).map(usize::from);
        if message.len() > LONGEST || len != message.len().checked_sub(HEADER) {
            return Err(unreadable);
        }
        match read_u16(message, 0) {
            Some(BINDING_REQUEST) => self.verify(message).map(Stun::Check),
            Some(BINDING_RESPONSE | BINDING_ERROR) => {
                message.get(8..).and_then(<[u8]>::first_chunk).map(Stun::Answer).ok_or(unreadable)
            }
            _ => Err(unreadable),
        }
    }

    fn verify<'r>(&self, request: &'r [u8]) -> Result<Check<'r>, Unanswered> {
        let unreadable = Unanswered::Unreadable;
        let Attributes { username, integrity, fingerprint } = attributes(request).ok_or(unreadable)?;
        let (at, sum) = fingerprint.ok_or(unreadable)?;
        let username = username.filter(|username| names(username).is_some()).ok_or(unreadable)?;
        // The fingerprint is checked before the integrity, which takes longer.
        if CRC.checksum(&request[..at]) ^ FINGERPRINT_MASK != sum {
            return Err(unreadable);
        }
        let (at, sent) = integrity.ok_or(unreadable)?;
        mac(&self.0, &request[..at]).verify_slice(sent).map_err(|_| Unanswered::WrongPassword)?;
        Ok(Check { len: request.len(), transaction: &request[4..HEADER], username })
    }

    /// Creates the answer to a check, with the apparent address of its sender.
    pub(super) fn answer(&self, check: &Check<'_>, from: SocketAddr) -> Result<Vec<u8>, Unanswered> {
        let mut message = header(BINDING_RESPONSE, check.transaction);
        push_attribute(&mut message, ATTRIBUTE_ADDRESS, &xor_address(check.transaction, from));
        check.reply(seal(message, &self.0))
    }
}

impl Check<'_> {
    /// Creates a check of the page that sent this one. Only that page can know the transaction.
    pub(super) fn challenge(&self, transaction: &Transaction) -> Result<Vec<u8>, Unanswered> {
        let (own, password) = names(self.username).ok_or(Unanswered::Unreadable)?;
        let key = Hmac::new_from_slice(password).map_err(|_| Unanswered::Unreadable)?;
        let username = [own, b":", USERNAME.as_bytes(), password].concat();
        let mut message = header(BINDING_REQUEST, &[&COOKIE[..], transaction].concat());
        push_attribute(&mut message, ATTRIBUTE_USERNAME, &username);
        push_attribute(&mut message, ATTRIBUTE_CONTROLLED, &transaction[..8]);
        push_attribute(&mut message, ATTRIBUTE_PRIORITY, &PRIORITY.to_be_bytes());
        self.reply(seal(message, &key))
    }

    fn reply(&self, message: Vec<u8>) -> Result<Vec<u8>, Unanswered> {
        if message.len() > self.len { Err(Unanswered::WouldAmplify) } else { Ok(message) }
    }
}

/// Parses the USERNAME attribute, `<relay ufrag>:<page ufrag>`. Returns the page's ufrag and the page's password, which
/// the relay's ufrag contains.
fn names(username: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = username.strip_prefix(USERNAME.as_bytes())?;
    let colon = rest.iter().position(|byte| *byte == b':')?;
    let (password, own) = (&rest[..colon], &rest[colon + 1..]);
    (password.len() >= PASSWORD_MIN && !own.is_empty()).then_some((own, password))
}

/// Creates the header of a message, with the magic cookie and its transaction id.
fn header(kind: u16, transaction: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(128);
    message.extend(kind.to_be_bytes());
    message.extend([0, 0]);
    message.extend(transaction);
    message
}

/// Appends the integrity and the fingerprint, the last attributes of a message.
fn seal(mut message: Vec<u8>, key: &Hmac<Sha1>) -> Vec<u8> {
    let sum = mac(key, &message).finalize().into_bytes();
    push_attribute(&mut message, ATTRIBUTE_INTEGRITY, &sum);
    set_len(&mut message, 8);
    let sum = CRC.checksum(&message) ^ FINGERPRINT_MASK;
    push_attribute(&mut message, ATTRIBUTE_FINGERPRINT, &sum.to_be_bytes());
    message
}

/// Computes the integrity of the message before that attribute. The header's length includes the attribute.
fn mac(key: &Hmac<Sha1>, message: &[u8]) -> Hmac<Sha1> {
    let len = (message.len() - HEADER + 4 + INTEGRITY) as u16;
    let mut mac = key.clone();
    mac.update(&message[..2]);
    mac.update(&len.to_be_bytes());
    mac.update(&message[4..]);
    mac
}

/// The relevant attributes of a request, with their offsets.
#[derive(Debug, Default)]
struct Attributes<'r> {
    username: Option<&'r [u8]>,
    integrity: Option<(usize, &'r [u8])>,
    fingerprint: Option<(usize, u32)>,
}

/// Parses the attributes. Returns `None` if they do not end with the message, or if the fingerprint is not the last
/// one.
fn attributes(request: &[u8]) -> Option<Attributes<'_>> {
    let mut found = Attributes::default();
    let mut at = HEADER;
    while at < request.len() {
        let kind = read_u16(request, at)?;
        let len = usize::from(read_u16(request, at + 2)?);
        let value = request.get(at + 4..at + 4 + len)?;
        let next = at + 4 + len.next_multiple_of(4);
        match kind {
            // Attributes after the integrity are not protected by it.
            ATTRIBUTE_USERNAME if found.integrity.is_none() => {
                found.username = found.username.or(Some(value))
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

/// Encodes the address, XORed with the cookie and the transaction (RFC 8489 section 14.2).
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
    message.resize(message.len().next_multiple_of(4), 0);
    set_len(message, 0);
}

/// Writes the length of the attributes into the header, including `more` bytes that will be appended.
fn set_len(message: &mut [u8], more: usize) {
    let len = (message.len() - HEADER + more) as u16;
    message[2..4].copy_from_slice(&len.to_be_bytes());
}

fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The SHA-256 fingerprint of a certificate, formatted as in session descriptions: 32 pairs of hexadecimal digits with
/// colons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    #[cfg(test)]
    pub(super) const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) fn of(certificate: &[u8]) -> Self {
        Self(Sha256::digest(certificate).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            let colon = if index == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02X}")?;
        }
        Ok(())
    }
}

/// The maximum length of a datagram that is received. A path with a larger MTU is rare, and no browser uses it.
pub(super) const RECEIVE_MAX: usize = 2_048;

/// The protocol of a datagram; see [`DatagramKind::of`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatagramKind {
    /// A STUN message (RFC 8489), by which ICE checks connectivity.
    Stun,
    /// A DTLS record (RFC 6347, RFC 9147).
    Dtls,
    /// Any other protocol, such as QUIC.
    Other,
}

/// The magic cookie of every STUN message, which distinguishes STUN from RakNet packets with the same first bytes.
const STUN_COOKIE: [u8; 4] = 0x2112_a442_u32.to_be_bytes();

impl DatagramKind {
    /// Returns the kind of a datagram.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match bytes.first() {
            Some(0..=3) if bytes.get(4..8) == Some(&STUN_COOKIE[..]) => Self::Stun,
            Some(20..=63) => Self::Dtls,
            _ => Self::Other,
        }
    }
}

/// Returns true for a DTLS ClientHello, the only record accepted from a source without a session.
///
/// Layout (RFC 6347 section 4.3.1): type, version, epoch (2), number (6), length (2), then the type of the handshake
/// message.
pub(super) fn is_client_hello(bytes: &[u8]) -> bool {
    const HANDSHAKE: u8 = 22;
    const CLIENT_HELLO: u8 = 1;
    bytes.first() == Some(&HANDSHAKE)
        && bytes.get(3..5) == Some(&[0, 0])
        && bytes.get(13) == Some(&CLIENT_HELLO)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn fingerprint(first: u8) -> Fingerprint {
        Fingerprint::new([first; 32])
    }

    /// Returns the user name in a check of a page with this user name and the password of [`page_password`].
    pub(crate) fn username(own: &str) -> String {
        format!("{USERNAME}{}:{own}", page_password())
    }

    fn page_password() -> &'static str {
        "p4ssw0rdOfThePage/0123"
    }

    /// Creates a check as browsers send it, with `room` bytes for the additional attributes that they include.
    pub(crate) fn check(password: &Password, username: &str, room: usize) -> Vec<u8> {
        let mut message = header(BINDING_REQUEST, &[&COOKIE[..], &[7; 12]].concat());
        push_attribute(&mut message, ATTRIBUTE_USERNAME, username.as_bytes());
        push_attribute(&mut message, 0xc057, &vec![0; room]);
        push_attribute(&mut message, 0x802a, &[9; 8]);
        push_attribute(&mut message, ATTRIBUTE_PRIORITY, &[1; 4]);
        seal(message, &password.0)
    }

    /// Creates the page's answer to a check of the relay.
    pub(crate) fn page_answer(challenge: &[u8]) -> Vec<u8> {
        let answer = header(BINDING_RESPONSE, challenge.get(4..HEADER).unwrap_or_default());
        seal(answer, &Hmac::new_from_slice(page_password().as_bytes()).unwrap())
    }

    fn from() -> SocketAddr {
        ([192, 0, 2, 1], 32_853).into()
    }

    fn password() -> Password {
        Password::new(&fingerprint(7)).unwrap()
    }

    fn answer(request: &[u8], from: SocketAddr) -> Result<Vec<u8>, Unanswered> {
        let password = password();
        let Stun::Check(check) = password.read(request)? else { panic!("no check") };
        password.answer(&check, from)
    }

    /// Verifies the integrity and the fingerprint of a message.
    fn is_sealed(message: &[u8], key: &Hmac<Sha1>) -> bool {
        let found = attributes(message).unwrap();
        let (at, sum) = found.fingerprint.unwrap();
        let (until, sent) = found.integrity.unwrap();
        CRC.checksum(&message[..at]) ^ FINGERPRINT_MASK == sum
            && mac(key, &message[..until]).verify_slice(sent).is_ok()
    }

    #[test]
    fn a_check_is_answered_with_its_source_address() {
        let answer = answer(&check(&password(), &username("Wx4z"), 16), from()).unwrap();
        assert_eq!(answer[..2], BINDING_RESPONSE.to_be_bytes());
        assert_eq!(answer[4..8], [0x21, 0x12, 0xa4, 0x42]);
        // RFC 5769 section 2.2 has the same address. Its port and its bytes are XORed with the cookie.
        assert_eq!(answer[20..32], [0, 0x20, 0, 8, 0, 1, 0xa1, 0x47, 0xe1, 0x12, 0xa6, 0x43]);
        assert!(is_sealed(&answer, &password().0));
    }

    #[test]
    fn answers_may_contain_ipv6_addresses() {
        let request = check(&password(), &username("Wx4z"), 40);
        let answer = answer(&request, "[2001:db8::1]:9".parse().unwrap()).unwrap();
        assert_eq!(answer[20..26], [0, 0x20, 0, 20, 0, 2]);
    }

    #[test]
    fn a_challenge_uses_the_names_and_password_of_the_page() {
        let request = check(&password(), &username("Wx4z"), 0);
        let password = password();
        let Stun::Check(check) = password.read(&request).unwrap() else { panic!("no check") };
        let challenge = check.challenge(&[5; 12]).unwrap();
        assert!(challenge.len() <= request.len(), "{} of {}", challenge.len(), request.len());
        let found = attributes(&challenge).unwrap();
        let name = format!("Wx4z:rakwire/{}", page_password());
        assert_eq!(found.username, Some(name.as_bytes()));
        assert!(is_sealed(&challenge, &Hmac::new_from_slice(page_password().as_bytes()).unwrap()));
        assert_eq!(password.read(&page_answer(&challenge)), Ok(Stun::Answer(&[5; 12])));
    }

    #[test]
    fn an_error_response_counts_as_an_answer() {
        let mut refusal = page_answer(&header(BINDING_REQUEST, &[6; 16]));
        refusal[..2].copy_from_slice(&BINDING_ERROR.to_be_bytes());
        assert_eq!(password().read(&refusal), Ok(Stun::Answer(&[6; 12])));
        assert_eq!(password().read(&refusal[..12]), Err(Unanswered::Unreadable));
    }

    #[test]
    fn wrong_passwords_and_names_are_not_answered() {
        let other = Password::new(&fingerprint(8)).unwrap();
        let answer = |request: &[u8]| answer(request, from()).err();
        assert_eq!(answer(&check(&other, &username("Wx4z"), 16)), Some(Unanswered::WrongPassword));
        let short = "rakwire/p4ssw0rdOfThePage/012:Wx4z";
        for name in ["other:Wx4z", "rakwire", "rakwire:Wx4z", "rakwire/:Wx4z", short, &username(""), ""] {
            assert_eq!(answer(&check(&password(), name, 16)), Some(Unanswered::Unreadable), "{name}");
        }
    }

    #[test]
    fn no_reply_is_longer_than_the_check() {
        let password = password();
        let username = username("Wx4z");
        let short = Check { len: 70, transaction: &[0x21; 16], username: username.as_bytes() };
        assert_eq!(
            password.answer(&short, "[2001:db8::1]:9".parse().unwrap()),
            Err(Unanswered::WouldAmplify)
        );
        assert_eq!(short.challenge(&[1; 12]), Err(Unanswered::WouldAmplify));
        assert!(password.answer(&short, from()).unwrap().len() <= 70);
    }

    #[test]
    fn damaged_checks_are_dropped() {
        let request = check(&password(), &username("Wx4z"), 16);
        for len in 0..request.len() {
            assert!(password().read(&request[..len]).is_err(), "{len}");
        }
        for at in 0..request.len() {
            let mut damaged = request.clone();
            damaged[at] ^= 0x40;
            assert!(password().read(&damaged).is_err(), "{at}");
        }
        assert!(password().read(&[&request[..], &[0; 4]].concat()).is_err());
        assert!(password().read(&check(&password(), &username("Wx4z"), 600)).is_err());
    }

    #[test]
    fn a_fingerprint_is_formatted_as_in_session_descriptions() {
        let text = Fingerprint::new([0xa5; 32]).to_string();
        assert_eq!((text.len(), &text[..6]), (95, "A5:A5:"));
    }

    #[test]
    fn the_first_bytes_identify_the_protocol() {
        let stun = [&[0, 1, 0, 0][..], &STUN_COOKIE, &[0; 12]].concat();
        assert_eq!(DatagramKind::of(&stun), DatagramKind::Stun);
        // An unconnected ping of RakNet, with its time at the offset of the STUN cookie.
        assert_eq!(DatagramKind::of(&[1, 0, 0, 0, 0, 0, 0, 0, 0]), DatagramKind::Other);
        for first in [20, 22, 23, 63] {
            assert_eq!(DatagramKind::of(&[first]), DatagramKind::Dtls);
        }
        // QUIC: short headers from 64, long headers from 192.
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
