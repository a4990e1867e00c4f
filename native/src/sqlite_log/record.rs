//! What waits to be written.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use rakwire::endpoint::{Direction, Protocol};

#[derive(Debug)]
pub(super) enum Record {
    Datagram(Datagram),
    Samples(Samples),
    /// Told when everything before it is in the file.
    Flush(SyncSender<()>),
}

#[derive(Debug)]
pub(super) struct Datagram {
    /// Since 1970, as everywhere here.
    pub(super) at: Duration,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) direction: Direction,
    pub(super) kind: &'static str,
    pub(super) description: String,
    pub(super) length: u32,
    pub(super) bytes: Option<Box<[u8]>>,
}

#[derive(Debug)]
pub(super) struct Samples {
    pub(super) at: Duration,
    pub(super) local: SocketAddr,
    pub(super) remote: Option<SocketAddr>,
    pub(super) values: Vec<(String, f64)>,
}

/// What a datagram is, with the most important numbers.
pub(super) fn describe<P: Protocol>(datagram: &[u8]) -> String {
    struct Description<'d, P>(&'d [u8], PhantomData<P>);

    impl<P: Protocol> fmt::Display for Description<'_, P> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            P::describe(self.0, f)
        }
    }

    Description::<P>(datagram, PhantomData).to_string()
}
