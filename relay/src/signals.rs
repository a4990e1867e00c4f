//! The signals that end the relay, and the one that reloads it.

use std::io;

use rakwire_relay::Reloader;

/// Completes at Ctrl-C or SIGTERM. Signals are caught from this call on, not only once it is awaited.
#[cfg(unix)]
pub(crate) fn shutdown() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Completes at Ctrl-C. It is caught from this call on, not only once it is awaited.
#[cfg(windows)]
pub(crate) fn shutdown() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupt.recv().await;
    })
}

/// Reloads at every hang-up: without this it would end the program. It is caught from this call on.
#[cfg(unix)]
pub(crate) fn reload_at_hangups(reloader: Reloader) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    use tracing::{error, info};

    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            match reloader.reload().await {
                Ok(changes) => info!("SIGHUP: configuration read again; {changes}"),
                Err(error) => error!("SIGHUP: configuration refused, the old one stays: {error}"),
            }
        }
    });
    Ok(())
}

/// Windows sends no such signal.
#[cfg(windows)]
pub(crate) fn reload_at_hangups(_: Reloader) -> io::Result<()> {
    Ok(())
}
