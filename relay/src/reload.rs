//! Reading the configuration of a running relay again.

use std::fmt;
use std::net::SocketAddr;
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
    /// The address of the listening socket, which stays whatever a configuration says.
    local_addr: SocketAddr,
    /// The configuration that is in force. It is locked during a reload, so that there is one at a time.
    current: Arc<Mutex<Config>>,
    load: Arc<Load>,
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
        local_addr: SocketAddr,
        current: Arc<Mutex<Config>>,
        load: impl Fn() -> Result<Loaded, LoadError> + Send + Sync + 'static,
    ) -> Self {
        Self { admission, tls, set_cookie_keys, local_addr, current, load: Arc::new(load) }
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
        let keys = loaded.config.cookie_keys().map_err(located)?;
        let in_force = Config { listen: self.local_addr, ..loaded.config.clone() };
        self.admission.reload(&in_force, targets).map_err(located)?;
        if let (Some(set_keys), Some(keys)) = (&self.set_cookie_keys, keys) {
            set_keys(keys);
        }
        let changes = Changes::between(&current, &loaded.config);
        *current = loaded.config;
        Ok(changes)
    }
}
