//! The signals that end the relay.

use std::io;

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
