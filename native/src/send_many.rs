//! Datagrams to many addresses, by one call of the system.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::AsFd;

use heapless::Vec;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, sendmmsg};

use crate::outgoing::Transmit;

/// How many a call sends at most.
pub(crate) const MOST: usize = 64;

/// Up to that many, each in a transmit of its own.
pub(crate) type Datagrams<'b> = Vec<Transmit<'b>, MOST>;

/// Sends the first of these datagrams, and as many of the others as there is room for, each to the address that `route` names.
/// Returns how many; an error is about the first. Nothing is allocated.
pub(crate) fn send(
    socket: impl AsFd,
    datagrams: &Datagrams<'_>,
    route: impl Fn(SocketAddr) -> SocketAddr,
) -> io::Result<usize> {
    let to: Vec<SocketAddrAny, MOST> = datagrams.iter().map(|datagram| route(datagram.to).into()).collect();
    let slices: Vec<[IoSlice<'_>; 1], MOST> =
        datagrams.iter().map(|datagram| [IoSlice::new(datagram.bytes)]).collect();
    let mut control: Vec<SendAncillaryBuffer<'_, '_, '_>, MOST> =
        datagrams.iter().map(|_| SendAncillaryBuffer::default()).collect();
    let parts = to.iter().zip(&slices).zip(&mut control);
    let mut messages: Vec<MMsgHdr<'_>, MOST> =
        parts.map(|((to, slice), control)| MMsgHdr::new_with_addr(to, slice, control)).collect();
    Ok(sendmmsg(socket, &mut messages, SendFlags::empty())?)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;

    #[test]
    fn one_call_sends_to_many_addresses_until_it_fails() {
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let receivers = [1, 2].map(|_| UdpSocket::bind("127.0.0.1:0").expect("a free port"));
        let addresses = receivers.each_ref().map(|receiver| receiver.local_addr().expect("it is bound"));
        let transmit = |to, bytes: &'static [u8]| Transmit { to, size: bytes.len(), count: 1, bytes };
        let nowhere = transmit(([127, 0, 0, 1], 0).into(), &[9]);
        let datagrams =
            Vec::from_array([transmit(addresses[0], &[1, 1]), transmit(addresses[1], &[2]), nowhere.clone()]);
        let sent = send(&sender, &datagrams, |to| to);
        assert_eq!(sent.expect("the first is sent"), 2);
        assert!(send(&sender, &Vec::from_iter([nowhere]), |to| to).is_err());
        for (receiver, datagram) in receivers.iter().zip(&datagrams) {
            receiver.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
            let mut buffer = [0; 8];
            let length = receiver.recv(&mut buffer).expect("a datagram");
            assert_eq!(&buffer[..length], datagram.bytes);
        }
    }
}
