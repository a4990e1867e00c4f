//! The signals that end the relay, and the one that does not.

use std::io;

use tracing::info;

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

/// Logs what a hang-up changes, at every one: without this it would end the program. It is caught from this call on.
#[cfg(unix)]
pub(crate) fn log_hangups() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            info!(
                "SIGHUP: nothing to reload. Files of --serve are read at every request; options and RUST_LOG take effect \
                 at a restart"
            );
        }
    });
    Ok(())
}

/// Windows sends no such signal.
#[cfg(windows)]
pub(crate) fn log_hangups() -> io::Result<()> {
    Ok(())
}
