//! The list of servers as it was written last.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a list that was written is used: the pongs in it are not younger.
const KEPT: Duration = Duration::from_secs(1);

/// The list as it was written last, and when.
#[derive(Debug, Default)]
pub(crate) struct ListCache(Mutex<Option<(Instant, Arc<str>)>>);

impl ListCache {
    /// The list, which `write` writes if there is none that is young enough.
    pub(super) fn get(&self, now: Instant, write: impl FnOnce() -> String) -> Arc<str> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((at, list)) if now.saturating_duration_since(*at) < KEPT => Arc::clone(list),
            Some(_) | None => {
                let list: Arc<str> = write().into();
                *kept = Some((now, Arc::clone(&list)));
                list
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_written_once_a_second() {
        let (cache, start) = (ListCache::default(), Instant::now());
        let get = |after, text: &str| cache.get(start + after, || text.to_owned());
        assert_eq!(&*get(Duration::ZERO, "one"), "one");
        assert_eq!(&*get(KEPT - Duration::from_millis(1), "two"), "one");
        assert_eq!(&*get(KEPT, "three"), "three");
    }
}
