//! Reading the configuration of a running relay again.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Mutex;

use crate::admission::{Admission, Targets};
use crate::config::{Changes, Config, ConfigError, LoadError, Loaded};
use crate::front::CookieKeys;
use crate::tls::Tls;

/// Replaces the keys of a running front.
pub(crate) type SetCookieKeys = Arc<dyn Fn(CookieKeys) + Send + Sync>;

type Load = dyn Fn() -> Result<Loaded, LoadError> + Send + Sync;

/// Reloads a running relay. Clones reload the same relay.
#[derive(Clone)]
pub struct Reloader {
    admission: Arc<Admission>,
    tls: Option<Arc<Tls>>,
    set_cookie_keys: Option<SetCookieKeys>,
    /// The configuration that is in force. It is locked during a reload, so that there is one at a time.
    current: Arc<Mutex<Config>>,
    load: Arc<Load>,
}

/// The keys of the front from now on: those of the file, and random ones once there is no file any more. None if the
/// random ones stay.
fn next_cookie_keys(current: &Config, next: &Config) -> Result<Option<CookieKeys>, ConfigError> {
    match next.cookie_keys()? {
        None if current.udp.cookie_keys.is_some() => {
            // Without random numbers no front would have started.
            Ok(CookieKeys::random().ok())
        }
        keys => Ok(keys),
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").finish_non_exhaustive()
    }
}

impl Reloader {
    pub(crate) fn new(
        admission: Arc<Admission>,
        tls: Option<Arc<Tls>>,
        set_cookie_keys: Option<SetCookieKeys>,
        current: Arc<Mutex<Config>>,
        load: impl Fn() -> Result<Loaded, LoadError> + Send + Sync + 'static,
    ) -> Self {
        Self { admission, tls, set_cookie_keys, current, load: Arc::new(load) }
    }

    /// Reads the configuration, with the files that it names, and applies what can change in a running relay to the
    /// clients that connect from now on. Flows go on as they are.
    ///
    /// # Errors
    ///
    /// If the configuration has a mistake; then the old one stays in force as a whole.
    pub async fn reload(&self) -> Result<Changes, LoadError> {
        let mut current = self.current.lock().await;
        let loaded = (self.load)()?;
        let located = |error| loaded.locate(&error);
        let targets = Targets::resolve(&loaded.config, &self.admission.targets()).await.map_err(located)?;
        // The certificate first: a new one does no harm if the rest is refused.
        if let Some(tls) = &self.tls {
            tls.reload(&loaded.config.tls).map_err(|error| located(ConfigError::Tls(error.to_string())))?;
        }
        let keys = next_cookie_keys(&current, &loaded.config).map_err(located)?;
        self.admission.reload(&loaded.config, targets).map_err(located)?;
        if let (Some(set_keys), Some(keys)) = (&self.set_cookie_keys, keys) {
            set_keys(keys);
        }
        let changes = Changes::between(&current, &loaded.config);
        *current = loaded.config;
        Ok(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_cookie_keys_that_is_left_out_gives_way_to_a_random_key() {
        let path = std::env::temp_dir().join(format!("rakwire-relay-{}-cookies", std::process::id()));
        std::fs::write(&path, "000102030405060708090a0b0c0d0e0f").unwrap();
        let without = Config::new("127.0.0.1:0".parse().unwrap());
        let mut with = without.clone();
        with.udp.cookie_keys = Some(path.clone());
        let of_file = next_cookie_keys(&without, &with).unwrap();
        assert!(of_file.is_some());
        let random = next_cookie_keys(&with, &without).unwrap();
        assert!(random.is_some() && random != of_file);
        assert_eq!(next_cookie_keys(&without, &without).unwrap(), None, "a random key stays");
        std::fs::remove_file(path).unwrap();
    }
}
