//! The last pong of a server, which answers pings in its place for a short time.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rakwire::raknet::Guid;
use rakwire::wire::offline::{MAX_PONG_DATA, Offline, PingScope};
use rakwire::wire::{Wire, Writer};

/// How long a pong answers pings: 3 s.
pub const PONG_LIFETIME: Duration = Duration::from_secs(3);

/// Bytes of a pong without its data.
const PONG_HEAD: usize = 33;

/// What a server said in a pong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pong {
    /// The GUID of the server.
    pub guid: u64,
    /// What it says of itself, at most 399 bytes.
    pub data: Vec<u8>,
    /// When it arrived.
    pub at: Instant,
    /// How long it took to come, if the ping was one of the relay's own.
    pub latency: Option<Duration>,
}

impl Pong {
    fn is_fresh(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < PONG_LIFETIME
    }
}

/// The last pongs of a target, shared by all its flows.
#[derive(Debug, Default)]
pub struct PongCache(Mutex<Pongs>);

#[derive(Default)]
struct Pongs {
    /// The last one.
    any: Option<Pong>,
    /// When one came that answers pings which ask for room.
    open_at: Option<Instant>,
}

impl fmt::Debug for Pongs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pongs").field("any", &self.any).field("open_at", &self.open_at).finish()
    }
}

impl PongCache {
    /// Keeps a pong. `scope` is that of the ping which it answers: a server without room answers only
    /// [`PingScope::Any`].
    pub fn learn(&self, scope: PingScope, pong: Pong) {
        if pong.data.len() > MAX_PONG_DATA {
            return;
        }
        let mut pongs = self.lock();
        if scope == PingScope::OpenConnections {
            pongs.open_at = Some(pong.at);
        }
        let latency = pong.latency.or_else(|| pongs.any.as_ref().and_then(|last| last.latency));
        pongs.any = Some(Pong { latency, ..pong });
    }

    /// The last pong, while it is fresh.
    #[must_use]
    pub fn last(&self, now: Instant) -> Option<Pong> {
        self.lock().any.as_ref().filter(|pong| pong.is_fresh(now)).cloned()
    }

    /// The GUID of the server, if it ever said so.
    #[must_use]
    pub fn guid(&self) -> Option<u64> {
        self.lock().any.as_ref().map(|pong| pong.guid)
    }

    /// The datagram that answers a ping, if a fresh pong is there. `time` is what the ping carries.
    #[must_use]
    pub fn answer(&self, now: Instant, scope: PingScope, time: u64) -> Option<Vec<u8>> {
        let pongs = self.lock();
        let pong = pongs.any.as_ref().filter(|pong| pong.is_fresh(now))?;
        let has_room = pongs.open_at.is_some_and(|at| now.saturating_duration_since(at) < PONG_LIFETIME);
        if scope == PingScope::OpenConnections && !has_room {
            return None;
        }
        let mut buffer = [0; PONG_HEAD + MAX_PONG_DATA];
        let mut writer = Writer::new(&mut buffer);
        let message = Offline::Pong { time, guid: Guid(pong.guid), data: &pong.data };
        message.write(&mut writer).ok()?;
        Some(writer.finish().to_vec())
    }

    fn lock(&self) -> MutexGuard<'_, Pongs> {
        // Nothing that holds the lock can leave a pong half written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use rakwire::wire::Reader;

    use super::*;

    fn pong(at: Instant) -> Pong {
        Pong { guid: 9, data: b"MCPE;a".to_vec(), at, latency: None }
    }

    #[test]
    fn a_fresh_pong_answers_with_the_time_of_the_ping() {
        let (cache, now) = (PongCache::default(), Instant::now());
        assert_eq!(cache.answer(now, PingScope::Any, 5), None);
        cache.learn(PingScope::Any, pong(now));
        let answer = cache.answer(now, PingScope::Any, 5).unwrap();
        let expected = Offline::Pong { time: 5, guid: Guid(9), data: b"MCPE;a" };
        assert_eq!(Offline::read(&mut Reader::new(&answer)), Ok(expected));
    }

    #[test]
    fn an_old_pong_answers_nothing_but_its_guid_is_known() {
        let (cache, now) = (PongCache::default(), Instant::now());
        cache.learn(PingScope::OpenConnections, pong(now));
        let later = now + PONG_LIFETIME;
        assert_eq!(cache.answer(later, PingScope::Any, 5), None);
        assert_eq!(cache.last(later), None);
        assert_eq!(cache.guid(), Some(9));
    }

    #[test]
    fn a_server_without_room_is_not_said_to_have_some() {
        let (cache, now) = (PongCache::default(), Instant::now());
        cache.learn(PingScope::Any, pong(now));
        assert_eq!(cache.answer(now, PingScope::OpenConnections, 5), None);
        cache.learn(PingScope::OpenConnections, pong(now));
        assert!(cache.answer(now, PingScope::OpenConnections, 5).is_some());
        // It filled up since: only pings that any server answers keep the cache fresh.
        let later = now + PONG_LIFETIME;
        cache.learn(PingScope::Any, pong(later));
        assert_eq!(cache.answer(later, PingScope::OpenConnections, 5), None);
        assert!(cache.answer(later, PingScope::Any, 5).is_some());
    }

    #[test]
    fn what_is_too_long_for_a_pong_is_not_kept() {
        let (cache, now) = (PongCache::default(), Instant::now());
        cache.learn(PingScope::Any, Pong { data: vec![1; MAX_PONG_DATA + 1], ..pong(now) });
        assert_eq!(cache.last(now), None);
        cache.learn(PingScope::Any, Pong { data: vec![1; MAX_PONG_DATA], ..pong(now) });
        assert_eq!(
            cache.answer(now, PingScope::Any, 0).map(|bytes| bytes.len()),
            Some(PONG_HEAD + MAX_PONG_DATA)
        );
    }

    #[test]
    fn the_latency_is_that_of_the_last_ping_that_was_timed() {
        let (cache, now) = (PongCache::default(), Instant::now());
        cache.learn(PingScope::Any, Pong { latency: Some(Duration::from_millis(4)), ..pong(now) });
        cache.learn(PingScope::Any, pong(now));
        assert_eq!(cache.last(now).unwrap().latency, Some(Duration::from_millis(4)));
    }
}
