//! The service manager: sockets that it opened, and what it wants to be told. Without one nothing here has an effect.

use std::io;
use std::net::TcpListener;

use listenfd::ListenFd;
use tokio::time::interval;
use tracing::debug;

/// The listening socket that the service manager opened, if it did (`LISTEN_FDS`).
///
/// # Errors
///
/// If what it passed is no TCP socket.
pub fn inherited_listener() -> io::Result<Option<TcpListener>> {
    ListenFd::from_env().take_tcp_listener(0)
}

/// What the service manager is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Clients can connect.
    Ready,
    /// The configuration is read again; [`Event::Ready`] follows.
    Reloading,
    /// The relay ends.
    Stopping,
}

/// Tells the service manager (`NOTIFY_SOCKET`).
pub fn notify(event: Event) {
    if let Err(error) = send(event) {
        debug!(%error, ?event, "the service manager cannot be told");
    }
}

#[cfg(unix)]
fn send(event: Event) -> io::Result<()> {
    use sd_notify::NotifyState;

    match event {
        Event::Ready => sd_notify::notify(&[NotifyState::Ready]),
        Event::Reloading => sd_notify::notify(&[NotifyState::Reloading, NotifyState::monotonic_usec_now()?]),
        Event::Stopping => sd_notify::notify(&[NotifyState::Stopping]),
    }
}

#[cfg(not(unix))]
fn send(_: Event) -> io::Result<()> {
    Ok(())
}

/// Tells the service manager again and again that the relay still runs, if it wants to know (`WATCHDOG_USEC`).
#[cfg(unix)]
pub(crate) async fn feed_watchdog() {
    let Some(limit) = sd_notify::watchdog_enabled() else { return std::future::pending().await };
    let mut ticks = interval(limit / 2);
    loop {
        ticks.tick().await;
        if let Err(error) = sd_notify::notify(&[sd_notify::NotifyState::Watchdog]) {
            debug!(%error, "the service manager cannot be told");
        }
    }
}

#[cfg(not(unix))]
pub(crate) async fn feed_watchdog() {
    std::future::pending().await
}
