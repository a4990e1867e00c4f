//! Runs work on several threads.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

/// Does the work for each item on several threads. Returns the results in the order of the items.
///
/// # Errors
///
/// Returns an error if the work for an item fails or panics, because a missing result must not look like a
/// passed one.
pub fn for_each<T: Send, R: Send>(
    threads: u8,
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<R, String> + Sync,
) -> Result<Vec<R>, String> {
    let waiting = Mutex::new(items.into_iter().enumerate().collect::<VecDeque<_>>());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let worker = || {
        let mut done = Vec::new();
        while let Some((index, item)) = next() {
            done.push((index, work(item)));
        }
        done
    };
    let ended: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let mut done = Vec::new();
    for results in ended {
        done.extend(results.map_err(|_| "a worker panicked, and its results are lost".to_owned())?);
    }
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Waits for threads to finish.
///
/// # Errors
///
/// Returns an error if a thread panicked.
pub fn join_all(threads: Vec<JoinHandle<()>>) -> std::io::Result<()> {
    // All threads are joined before the first panic is reported.
    let ended: Vec<_> = threads.into_iter().map(JoinHandle::join).collect();
    match ended.into_iter().any(|end| end.is_err()) {
        true => Err(std::io::Error::other("a thread of the proxy panicked, and its capture has gaps")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items() {
        let squares = for_each(3, 0..20, |number| Ok(number * number));
        assert_eq!(squares, Ok((0..20).map(|number| number * number).collect()));
        assert_eq!(for_each(2, 0..3, |number| Err::<(), _>(number.to_string())), Err("0".to_owned()));
    }

    #[test]
    fn a_panic_of_a_worker_is_an_error() {
        let result = for_each(2, 0..4, |number| {
            assert_ne!(number, 2, "planted");
            Ok(number)
        });
        assert!(result.is_err_and(|error| error.contains("panicked")));
        let threads = vec![std::thread::spawn(|| panic!("planted")), std::thread::spawn(|| {})];
        assert!(join_all(threads).is_err());
        assert!(join_all(vec![std::thread::spawn(|| {})]).is_ok());
    }
}
