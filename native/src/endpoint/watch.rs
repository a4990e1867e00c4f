//! Attempts and pings that end when the network reports that nothing can be reached at their address.

use std::sync::Arc;

use rakwire::endpoint::Protocol;

use super::shared::Shared;
use crate::socket::Socket;

/// Has the socket hear of errors about what is sent, as long as it exists. A socket without attempts and pings does not, so that
/// ICMP messages cost it nothing.
#[derive(Debug)]
pub(crate) struct Watch<'s, P: Protocol> {
    shared: &'s Shared<P>,
    /// There is none if the application does not want it. After the socket was replaced, nothing is heard any more.
    socket: Option<Arc<Socket>>,
}

impl<'s, P: Protocol> Watch<'s, P> {
    pub(crate) fn new(shared: &'s Shared<P>) -> Self {
        let socket = if shared.hears_unreachable { shared.io.reader().socket() } else { None };
        if let Some(socket) = &socket {
            socket.watch();
        }
        Self { shared, socket }
    }

    /// Waits for a future, and handles what is heard meanwhile.
    pub(crate) async fn during<T>(&self, future: impl Future<Output = T>) -> T {
        let Some(socket) = &self.socket else { return future.await };
        let mut future = std::pin::pin!(future);
        loop {
            tokio::select! {
                biased;
                output = &mut future => return output,
                addresses = socket.unreachable() => self.shared.on_unreachable(&addresses),
            }
        }
    }
}

impl<P: Protocol> Drop for Watch<'_, P> {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            socket.unwatch();
        }
    }
}
