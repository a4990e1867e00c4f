//! Reloads the configuration of a running relay, and keeps the target behind its front, which no reload changes.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, watch};

use crate::addresses::TargetName;
use crate::admission::{Admission, Targets};
use crate::config::{Changes, Config, ConfigError, ExposedFile, LoadError, Loaded, is_at};
use crate::front::{CookieKeys, FrontProtocol};
use crate::tls::{Tls, TlsError};

/// Replaces the cookie keys of a running front.
pub(crate) type SetCookieKeys = Arc<dyn Fn(CookieKeys) + Send + Sync>;

pub(crate) type Load = dyn Fn() -> Result<Loaded, LoadError> + Send + Sync;

/// Reloads a running relay. Clones reload the same relay.
#[derive(Clone)]
pub struct Reloader(Arc<Reloadable>);

/// The parts of a relay that a reload changes or depends on.
pub(crate) struct Reloadable {
    pub(crate) admission: Arc<Admission>,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) drain_timeout: Arc<watch::Sender<Duration>>,
    /// The target behind the running front.
    pub(crate) front: Option<FrontTarget>,
    pub(crate) set_cookie_keys: Option<SetCookieKeys>,
    /// A listening address, which a reload cannot change. It is one that other machines can reach, if there is such an
    /// address.
    pub(crate) local_addr: SocketAddr,
    /// The addresses of all listening sockets.
    pub(crate) local_addrs: Vec<SocketAddr>,
    /// The current configuration. It is locked during a reload, so that reloads do not overlap.
    pub(crate) current: Arc<Mutex<Config>>,
    pub(crate) load: Arc<Load>,
}

/// The resolved names of a configuration.
pub(crate) struct Prepared {
    pub(crate) targets: Targets,
    /// The addresses to listen on.
    pub(crate) listen: Vec<SocketAddr>,
}

/// Checks everything in a configuration that can be checked before it is applied, and resolves its targets.
///
/// Targets that existed `before` keep their addresses if their names cannot be resolved now. A name to listen on is
/// checked with the addresses already `listening`, or else with those that it resolves to.
pub(crate) async fn prepare(
    config: &Config,
    before: &Targets,
    listening: Option<&[SocketAddr]>,
) -> Result<Prepared, ConfigError> {
    let unresolvable = |source| ConfigError::ListenUnresolvable { listen: config.listen.clone(), source };
    let listen = match listening.filter(|_| config.listen.address().is_none()) {
        Some(listening) => listening.to_vec(),
        None => config.listen.resolve().await.map_err(unresolvable)?,
    };
    for address in &listen {
        Config { listen: (*address).into(), ..config.clone() }.check()?;
    }
    Tls::check(&config.tls).map_err(|error| error.of(&config.tls))?;
    let targets = Targets::resolve(config, before).await?;
    if let Some((name, _)) = config.front_target()?
        && let Some(target) = targets.find(name.as_str())
    {
        for address in &target.addresses {
            config.check_address_of_front(name, *address)?;
        }
    }
    if let Some(own) = config.webtransport_address(&listen) {
        for target in targets.iter() {
            if let Some((address, key)) = target.find_address(|address| is_at(own, address)) {
                return Err(ConfigError::TargetOnWebTransport { name: target.name.clone(), address, key });
            }
        }
    }
    Ok(Prepared { targets, listen })
}

/// Returns the next cookie keys of the front: those of the file, or random ones if the file was removed. Returns `None`
/// if the current random keys stay in use.
fn next_cookie_keys(current: &Config, next: &Config) -> Result<Option<CookieKeys>, ConfigError> {
    match next.cookie_keys()? {
        None if current.udp.cookie_keys.is_some() => {
            // Random numbers are available, because a front cannot start without them.
            Ok(CookieKeys::random().ok())
        }
        keys => Ok(keys),
    }
}

/// Describes the restart that is needed if the target behind the front has changed its protocol. Until then, the new
/// protocol applies only to clients of pages.
fn kind_of_front(front: &FrontTarget, next: &Config, changes: &Changes) -> Option<String> {
    let kind = format!("targets.{}.kind", front.name);
    let is_other = next.targets.get(&front.name).is_some_and(|target| target.kind != front.protocol.kind());
    (is_other && changes.applied.contains(&kind)).then(|| format!("{kind} for the front"))
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").finish_non_exhaustive()
    }
}

impl Reloader {
    pub(crate) fn new(relay: Reloadable) -> Self {
        Self(Arc::new(relay))
    }

    /// Reads the configuration and the files that it names, and applies every change that a running relay supports.
    /// Changes affect clients that connect afterwards; existing flows continue unchanged.
    ///
    /// # Errors
    ///
    /// If the configuration is invalid. The current configuration then stays in force as a whole.
    pub async fn reload(&self) -> Result<Changes, LoadError> {
        let relay = &*self.0;
        let mut current = relay.current.lock().await;
        let loaded = (relay.load)()?;
        let located = |error| loaded.locate(&error);
        loaded.exposed_files().iter().for_each(ExposedFile::log);
        let listening = Some(&*relay.local_addrs).filter(|_| loaded.config.listen == current.listen);
        let before = relay.admission.targets();
        let Prepared { targets, .. } = prepare(&loaded.config, &before, listening).await.map_err(located)?;
        let tls_error = |error: TlsError| located(error.of(&loaded.config.tls));
        let certificate = relay.tls.as_ref().map(|tls| tls.read_again(&loaded.config.tls)).transpose();
        let certificate = certificate.map_err(tls_error)?.flatten();
        let keys = next_cookie_keys(&current, &loaded.config).map_err(located)?;
        let in_force = Config { listen: relay.local_addr.into(), ..loaded.config.clone() };
        relay.admission.reload(&in_force, targets).map_err(located)?;
        let mut changes = Changes::between(&current, &loaded.config);
        changes.defer(|key| certificate.is_none() && ["tls.certificate", "tls.key"].contains(&key));
        let kind = relay.front.as_ref().and_then(|front| kind_of_front(front, &loaded.config, &changes));
        changes.after_restart.extend(kind);
        // Nothing can fail from here on, so a configuration is applied as a whole.
        if let Some(certificate) = certificate {
            certificate.apply();
        }
        if let (Some(set_keys), Some(keys)) = (&relay.set_cookie_keys, keys) {
            set_keys(keys);
        }
        relay.drain_timeout.send_replace(loaded.config.drain_timeout);
        *current = loaded.config;
        Ok(changes)
    }
}

/// The target behind a running front. A reload changes neither the target nor the protocol of the front.
#[derive(Debug, Clone)]
pub(crate) struct FrontTarget {
    pub(crate) name: TargetName,
    pub(crate) protocol: FrontProtocol,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::FrontProtocol;
    use crate::protocol::ProtocolKind;

    /// Returns a configuration with two targets of these kinds, and a front for one of them.
    fn config(kinds: [ProtocolKind; 2], front: &str) -> Config {
        let mut config = Config::new("127.0.0.1:0".parse().unwrap());
        for name in ["a", "b"] {
            config = config.with_target(format!("{name}=127.0.0.1:1").parse().unwrap());
        }
        config.targets.values_mut().zip(kinds).for_each(|(target, kind)| target.kind = kind);
        config.udp.listen = config.listen.address();
        config.udp.target = Some(front.parse().unwrap());
        config
    }

    #[test]
    fn a_changed_protocol_behind_the_front_requires_a_restart() {
        use ProtocolKind::{GameProtocol, RakNet};
        let front = FrontTarget { name: "a".parse().unwrap(), protocol: FrontProtocol::RakNet };
        let told =
            |before: &Config, next: &Config| kind_of_front(&front, next, &Changes::between(before, next));
        let (start, other) = (config([RakNet, RakNet], "a"), config([GameProtocol, RakNet], "a"));
        assert_eq!(told(&start, &other).as_deref(), Some("targets.a.kind for the front"));
        assert_eq!(told(&other, &other), None);
        assert_eq!(told(&other, &start), None, "front and target have the same protocol again");
        // A front moves to another target only at a restart.
        let (moved, changed) = (config([RakNet, RakNet], "b"), config([RakNet, GameProtocol], "b"));
        assert_eq!(told(&moved, &changed), None);
        let changed = config([GameProtocol, RakNet], "b");
        assert_eq!(told(&moved, &changed).as_deref(), Some("targets.a.kind for the front"));
    }

    #[test]
    fn unsetting_the_cookie_keys_option_installs_a_random_key() {
        let path = std::env::temp_dir().join(format!("rakwire-relay-{}-cookies", std::process::id()));
        std::fs::write(&path, "000102030405060708090a0b0c0d0e0f").unwrap();
        let without = Config::new("127.0.0.1:0".parse().unwrap());
        let mut with = without.clone();
        with.udp.cookie_keys = Some(path.clone());
        let of_file = next_cookie_keys(&without, &with).unwrap();
        assert!(of_file.is_some());
        let random = next_cookie_keys(&with, &without).unwrap();
        assert!(random.is_some() && random != of_file);
        assert_eq!(next_cookie_keys(&without, &without).unwrap(), None, "a random key stays in use");
        std::fs::remove_file(path).unwrap();
    }
}
