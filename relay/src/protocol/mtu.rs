//! The MTU of RakNet's handshake, clamped to what a path carries.
//!
//! The length of request 1 names the MTU: the client pads the request, and what arrives is what the path carries. So a
//! request that is longer than the way back to the client allows is cut, and the server proposes no more than that. The
//! other three messages of the handshake name the MTU in a field.

use rakwire::wire::offline::{ClientSecurity, MAGIC, Offline, ServerSecurity};
use rakwire::wire::{IP_UDP_OVERHEAD, MAX_DATAGRAM, MIN_MTU};

use super::verdict::Change;

/// The longest datagram of RakNet in bytes, without IP and UDP headers: 1,464.
pub const LARGEST_PAYLOAD: u16 = MAX_DATAGRAM as u16;

/// The longest datagram of RakNet behind `header` bytes that go to the server before it: both together are no longer than
/// [`LARGEST_PAYLOAD`].
pub(crate) fn largest_behind(header: usize) -> u16 {
    LARGEST_PAYLOAD.saturating_sub(u16::try_from(header).unwrap_or(u16::MAX))
}

/// Bytes of the id and the magic, with which all four messages begin.
const HEAD: usize = 1 + MAGIC.len();
const GUID: usize = 8;
const SECURITY_FLAG: usize = 1;
const COOKIE: usize = 4;
const ADDRESS_V4: usize = 7;
const ADDRESS_V6: usize = 29;

/// What must change in `datagram`, which is `message`, so that its MTU fits a path for `payload_max` bytes.
pub(super) fn clamp(message: &Offline<'_>, datagram: &[u8], payload_max: u16) -> Change {
    let limit = payload_max.min(LARGEST_PAYLOAD).saturating_add(IP_UDP_OVERHEAD).max(MIN_MTU);
    match *message {
        Offline::Request1 { .. } => {
            let length = usize::from(limit - IP_UDP_OVERHEAD);
            if datagram.len() > length { Change::Cut(length) } else { Change::None }
        }
        Offline::Reply1 { security, mtu, .. } => at_most(limit, mtu, HEAD + GUID + server_security(security)),
        Offline::Request2 { security, mtu, .. } => {
            let address = HEAD + client_security(security);
            at_most(limit, mtu, address + address_at(datagram, address))
        }
        Offline::Reply2 { mtu, .. } => {
            let address = HEAD + GUID;
            at_most(limit, mtu, address + address_at(datagram, address))
        }
        Offline::Ping { .. }
        | Offline::Pong { .. }
        | Offline::IncompatibleProtocol { .. }
        | Offline::OutOfBand { .. }
        | Offline::Refused { .. }
        | _ => Change::None,
    }
}

const fn at_most(limit: u16, mtu: u16, at: usize) -> Change {
    if mtu > limit { Change::Mtu { at, mtu: limit } } else { Change::None }
}

const fn server_security(security: ServerSecurity<'_>) -> usize {
    match security {
        ServerSecurity::None => SECURITY_FLAG,
        ServerSecurity::Cookie(_) => SECURITY_FLAG + COOKIE,
        ServerSecurity::PublicKey { key, .. } => SECURITY_FLAG + COOKIE + key.len(),
    }
}

const fn client_security(security: ClientSecurity<'_>) -> usize {
    match security {
        ClientSecurity::None => 0,
        ClientSecurity::Cookie(_) => COOKIE + SECURITY_FLAG,
        ClientSecurity::Challenge { challenge, .. } => COOKIE + SECURITY_FLAG + challenge.len(),
    }
}

/// The length of the address that begins at a position; as in the original, any version but 4 is 6.
fn address_at(datagram: &[u8], at: usize) -> usize {
    if datagram.get(at) == Some(&4) { ADDRESS_V4 } else { ADDRESS_V6 }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use rakwire::raknet::Guid;
    use rakwire::wire::{Reader, Wire, Writer};

    use super::*;

    const PAYLOAD: u16 = 1_200;
    const LIMIT: u16 = PAYLOAD + IP_UDP_OVERHEAD;

    /// The message as the other end reads it after it was clamped.
    fn clamped(message: &Offline<'_>) -> Vec<u8> {
        let mut buffer = [0; 2_048];
        let mut writer = Writer::new(&mut buffer);
        message.write(&mut writer).unwrap();
        let mut bytes = writer.finish().to_vec();
        let change = clamp(message, &bytes, PAYLOAD);
        change.apply(&mut bytes).to_vec()
    }

    fn mtu_of(bytes: &[u8]) -> u16 {
        let (Offline::Request1 { mtu, .. }
        | Offline::Reply1 { mtu, .. }
        | Offline::Request2 { mtu, .. }
        | Offline::Reply2 { mtu, .. }) = Offline::read(&mut Reader::new(bytes)).unwrap()
        else {
            panic!("there is no MTU in {bytes:02x?}")
        };
        mtu
    }

    fn messages(mtu: u16) -> Vec<Offline<'static>> {
        let guid = Guid(0x0102_0304_0506_0708);
        let addresses: [SocketAddr; 2] =
            ["192.0.2.1:19132".parse().unwrap(), "[2001:db8::1]:19132".parse().unwrap()];
        let servers = [
            ServerSecurity::None,
            ServerSecurity::Cookie(7),
            ServerSecurity::PublicKey { cookie: 7, key: &[9; 64] },
        ];
        let clients = [
            ClientSecurity::None,
            ClientSecurity::Cookie(7),
            ClientSecurity::Challenge { cookie: 7, challenge: &[9; 64] },
        ];
        let mut all = vec![Offline::Request1 { protocol: 11, mtu }];
        all.extend(servers.map(|security| Offline::Reply1 { guid, security, mtu }));
        for address in addresses {
            all.extend(clients.map(|security| Offline::Request2 { security, server: address, mtu, guid }));
            all.push(Offline::Reply2 { guid, client: address, mtu, answer: None });
            all.push(Offline::Reply2 { guid, client: address, mtu, answer: Some(&[5; 128]) });
        }
        all
    }

    #[test]
    fn every_mtu_of_the_handshake_is_clamped_and_nothing_else_changes() {
        for (message, expected) in messages(1_492).iter().zip(&messages(LIMIT)) {
            let bytes = clamped(message);
            assert_eq!(mtu_of(&bytes), LIMIT, "{message:?}");
            assert_eq!(Offline::read(&mut Reader::new(&bytes)).as_ref(), Ok(expected));
        }
    }

    #[test]
    fn an_mtu_that_fits_stays() {
        for mtu in [576, 1_000, LIMIT] {
            for message in messages(mtu) {
                let mut buffer = [0; 2_048];
                let mut writer = Writer::new(&mut buffer);
                message.write(&mut writer).unwrap();
                assert_eq!(clamp(&message, writer.finish(), PAYLOAD), Change::None, "{message:?}");
            }
        }
    }

    #[test]
    fn no_path_is_too_narrow_for_the_smallest_mtu_nor_too_wide_for_the_largest() {
        let request = Offline::Request1 { protocol: 6, mtu: 2_000 };
        assert_eq!(clamp(&request, &[0; 1_972], 100), Change::Cut(usize::from(MIN_MTU - IP_UDP_OVERHEAD)));
        assert_eq!(clamp(&request, &[0; 1_972], u16::MAX), Change::Cut(1_464));
    }

    #[test]
    fn messages_without_an_mtu_stay() {
        let ping = Offline::OutOfBand { guid: Guid(1), data: &[1] };
        assert_eq!(clamp(&ping, &[0; 1_500], 576), Change::None);
    }
}
