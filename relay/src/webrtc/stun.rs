//! The connectivity checks of ICE (RFC 8445): answers to those of pages, and the relay's own, which show that a page is where
//! its check came from. Nothing is kept for either. Their password is the fingerprint of the relay's certificate, and the first
//! bytes of a datagram tell them from other protocols on the same port (RFC 7983, RFC 9443).

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crc::{CRC_32_ISO_HDLC, Crc};
use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// How the user name of the relay in ICE begins. The page's own password follows, with which the relay can check the page. A page
/// writes both user names of the session itself, so it can say this without signalling.
pub(crate) const USERNAME: &str = "rakwire/";

/// How long passwords in ICE are at least (RFC 8445 section 5.3).
const PASSWORD_MIN: usize = 22;

/// The longest check that is looked at. Browsers send about 100 bytes.
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

/// The priority of a host candidate (RFC 8445 section 5.1.2). There is no other one at the relay.
const PRIORITY: u32 = 2_130_706_431;

/// RFC 8489 section 14.7.
const FINGERPRINT_MASK: u32 = 0x5354_554e;

const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// The password of the relay in ICE, which is the fingerprint of its certificate in lower case without colons.
///
/// A page needs the fingerprint to connect, and may connect with it. So there is no second secret to pass on to a page, and a check
/// made without it is not answered.
#[derive(Debug)]
pub(crate) struct Password(Hmac<Sha1>);

/// The id of a transaction.
pub(super) type Transaction = [u8; 12];

/// A connectivity check of a page that has the relay's password.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Check<'r> {
    /// How long the check is. Its source may be forged, so no reply is longer.
    len: usize,
    /// The cookie and the id of the transaction.
    transaction: &'r [u8],
    /// Both user names, which are those of one session alone.
    pub(super) username: &'r [u8],
}

/// What a STUN message is for the relay.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stun<'r> {
    Check(Check<'r>),
    /// An answer to a check with this transaction. One that says that the check was wrong came from its receiver, too.
    Answer(&'r Transaction),
}

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

    /// Reads a message. The password of an answer is not looked at, since its transaction is harder to guess.
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
        // Before the integrity, which takes more time.
        if CRC.checksum(&request[..at]) ^ FINGERPRINT_MASK != sum {
            return Err(unreadable);
        }
        let (at, sent) = integrity.ok_or(unreadable)?;
        mac(&self.0, &request[..at]).verify_slice(sent).map_err(|_| Unanswered::WrongPassword)?;
        Ok(Check { len: request.len(), transaction: &request[4..HEADER], username })
    }

    /// The answer to a check of `from`, which says where its sender seems to be.
    pub(super) fn answer(&self, check: &Check<'_>, from: SocketAddr) -> Result<Vec<u8>, Unanswered> {
        let mut message = header(BINDING_RESPONSE, check.transaction);
        push_attribute(&mut message, ATTRIBUTE_ADDRESS, &xor_address(check.transaction, from));
        check.reply(seal(message, &self.0))
    }
}

impl Check<'_> {
    /// A check of the page that sent this one, with a transaction that nothing but the page's answer can tell.
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

/// The user name of a page, and the password that it has written into that of the relay.
fn names(username: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = username.strip_prefix(USERNAME.as_bytes())?;
    let colon = rest.iter().position(|byte| *byte == b':')?;
    let (password, own) = (&rest[..colon], &rest[colon + 1..]);
    (password.len() >= PASSWORD_MIN && !own.is_empty()).then_some((own, password))
}

/// The beginning of a message with the cookie and the id of its transaction.
fn header(kind: u16, transaction: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(128);
    message.extend(kind.to_be_bytes());
    message.extend([0, 0]);
    message.extend(transaction);
    message
}

/// Adds the integrity and the fingerprint, with which a message ends.
fn seal(mut message: Vec<u8>, key: &Hmac<Sha1>) -> Vec<u8> {
    let sum = mac(key, &message).finalize().into_bytes();
    push_attribute(&mut message, ATTRIBUTE_INTEGRITY, &sum);
    set_len(&mut message, 8);
    let sum = CRC.checksum(&message) ^ FINGERPRINT_MASK;
    push_attribute(&mut message, ATTRIBUTE_FINGERPRINT, &sum.to_be_bytes());
    message
}

/// The integrity of a message that ends before the attribute for it, whose length counts in the header.
fn mac(key: &Hmac<Sha1>, message: &[u8]) -> Hmac<Sha1> {
    let len = (message.len() - HEADER + 4 + INTEGRITY) as u16;
    let mut mac = key.clone();
    mac.update(&message[..2]);
    mac.update(&len.to_be_bytes());
    mac.update(&message[4..]);
    mac
}

/// What counts of the attributes of a request. Positions are those of the attributes.
#[derive(Debug, Default)]
struct Attributes<'r> {
    username: Option<&'r [u8]>,
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
    message.resize(message.len().next_multiple_of(4), 0);
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

/// The SHA-256 of a certificate, written as session descriptions have it: 32 pairs of hexadecimal digits with colons.
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
pub(crate) mod tests {
    use super::*;

    pub(crate) fn fingerprint(first: u8) -> Fingerprint {
        Fingerprint::new([first; 32])
    }

    /// The user name of a check of a page with this user name and the password of [`page_password`].
    pub(crate) fn username(own: &str) -> String {
        format!("{USERNAME}{}:{own}", page_password())
    }

    fn page_password() -> &'static str {
        "p4ssw0rdOfThePage/0123"
    }

    /// A check as browsers send it, with room that they fill with attributes of their own.
    pub(crate) fn check(password: &Password, username: &str, room: usize) -> Vec<u8> {
        let mut message = header(BINDING_REQUEST, &[&COOKIE[..], &[7; 12]].concat());
        push_attribute(&mut message, ATTRIBUTE_USERNAME, username.as_bytes());
        push_attribute(&mut message, 0xc057, &vec![0; room]);
        push_attribute(&mut message, 0x802a, &[9; 8]);
        push_attribute(&mut message, ATTRIBUTE_PRIORITY, &[1; 4]);
        seal(message, &password.0)
    }

    /// The answer of a page to a check of the relay, or a datagram that is no such check.
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

    /// Whether integrity and fingerprint of a message are right.
    fn is_sealed(message: &[u8], key: &Hmac<Sha1>) -> bool {
        let found = attributes(message).unwrap();
        let (at, sum) = found.fingerprint.unwrap();
        let (until, sent) = found.integrity.unwrap();
        CRC.checksum(&message[..at]) ^ FINGERPRINT_MASK == sum
            && mac(key, &message[..until]).verify_slice(sent).is_ok()
    }

    #[test]
    fn a_check_is_answered_with_the_address_it_came_from() {
        let answer = answer(&check(&password(), &username("Wx4z"), 16), from()).unwrap();
        assert_eq!(answer[..2], BINDING_RESPONSE.to_be_bytes());
        assert_eq!(answer[4..8], [0x21, 0x12, 0xa4, 0x42]);
        // RFC 5769 section 2.2 has the same address: its port and its bytes, XORed with the cookie.
        assert_eq!(answer[20..32], [0, 0x20, 0, 8, 0, 1, 0xa1, 0x47, 0xe1, 0x12, 0xa6, 0x43]);
        assert!(is_sealed(&answer, &password().0));
    }

    #[test]
    fn answers_have_addresses_of_ipv6() {
        let request = check(&password(), &username("Wx4z"), 40);
        let answer = answer(&request, "[2001:db8::1]:9".parse().unwrap()).unwrap();
        assert_eq!(answer[20..26], [0, 0x20, 0, 20, 0, 2]);
    }

    #[test]
    fn a_challenge_is_a_check_with_the_names_and_the_password_of_the_page() {
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
    fn an_answer_that_refuses_a_challenge_is_an_answer() {
        let mut refusal = page_answer(&header(BINDING_REQUEST, &[6; 16]));
        refusal[..2].copy_from_slice(&BINDING_ERROR.to_be_bytes());
        assert_eq!(password().read(&refusal), Ok(Stun::Answer(&[6; 12])));
        assert_eq!(password().read(&refusal[..12]), Err(Unanswered::Unreadable));
    }

    #[test]
    fn other_passwords_and_other_names_are_not_answered() {
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
    fn damaged_checks_are_dropped_whatever_is_wrong_with_them() {
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
    fn a_fingerprint_is_written_as_session_descriptions_have_it() {
        let text = Fingerprint::new([0xa5; 32]).to_string();
        assert_eq!((text.len(), &text[..6]), (95, "A5:A5:"));
    }

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
