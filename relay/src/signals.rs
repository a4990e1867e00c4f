//! The signals that end the relay, and the one that reloads it.

use std::io;

use rakwire_relay::{Reloader, systemd};

/// What ends the relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// At once: Ctrl-C.
    Now,
    /// After a time for clients: SIGTERM.
    Drain,
}

/// The signals that end the relay. They are caught from the first call on, not only once they are awaited.
#[cfg(unix)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    pub(crate) async fn next(&mut self) -> End {
        tokio::select! {
            _ = self.interrupt.recv() => End::Now,
            _ = self.terminate.recv() => End::Drain,
        }
    }
}

/// The signals that end the relay. They are caught from the first call on, not only once they are awaited.
#[cfg(windows)]
pub(crate) struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    pub(crate) async fn next(&mut self) -> End {
        self.0.recv().await;
        End::Now
    }
}

/// Reloads at every hang-up: without this it would end the program. It is caught from this call on.
#[cfg(unix)]
pub(crate) fn reload_at_hangups(reloader: Reloader) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    use tracing::{error, info};

    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            systemd::notify(systemd::Event::Reloading);
            match reloader.reload().await {
                Ok(changes) => info!("SIGHUP: configuration read again; {changes}"),
                Err(error) => error!("SIGHUP: configuration refused, the old one stays: {error}"),
            }
            systemd::notify(systemd::Event::Ready);
        }
    });
    Ok(())
}

/// Windows sends no such signal.
#[cfg(windows)]
pub(crate) fn reload_at_hangups(_: Reloader) -> io::Result<()> {
    Ok(())
}
