//! Waiting with a deadline.

use std::time::Duration;

/// A timeout longer than any step of these tests takes on a slow machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// Waits until `condition` holds.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(DEADLINE, wait).await.unwrap_or_else(|_| panic!("timed out waiting until {what}"));
}
