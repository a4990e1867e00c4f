//! A certificate from a certificate authority that speaks ACME, by `rustls-acme`.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use futures_util::StreamExt;
use rakwire_udp::printable;
use rustls::server::ResolvesServerCert;
use rustls_acme::acme::{AcmeError, Identifier, LETS_ENCRYPT_PRODUCTION_DIRECTORY, Problem};
use rustls_acme::{AcmeConfig, AcmeState, EventError, EventOk, OrderError};
use tokio::sync::Mutex;
use tracing::{info, warn};

use super::TlsError;
use super::acme_cache::{Expiry, WatchedCache};
use crate::config::TlsConfig;
use crate::trust::client_config;

/// See the module.
pub(super) struct Acme {
    state: Mutex<AcmeState<io::Error>>,
    resolver: Arc<dyn ResolvesServerCert>,
    expiry: Arc<Expiry>,
    is_ready: AtomicBool,
}

impl Acme {
    pub(super) fn new(config: &TlsConfig) -> Result<Self, TlsError> {
        let contact = config.acme_contact.iter().map(|address| format!("mailto:{address}"));
        let directory = config.acme_directory.as_deref().unwrap_or(LETS_ENCRYPT_PRODUCTION_DIRECTORY);
        let expiry = Arc::new(Expiry::default());
        let acme = AcmeConfig::new_with_client_config(&config.acme_domains, Arc::new(client_config(None)?))
            .directory(directory)
            .contact(contact)
            .cache(WatchedCache::new(config.acme_cache.clone(), Arc::clone(&expiry)));
        if config.acme_cache.is_none() {
            warn!(
                "no --acme-cache: every start requests a new certificate, of which authorities give out few in a week"
            );
        }
        let state = acme.state();
        let resolver = state.resolver();
        Ok(Self { state: Mutex::new(state), resolver, expiry, is_ready: AtomicBool::new(false) })
    }

    /// What has the certificate in use, and the proof of a domain for the authority.
    pub(super) fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        Arc::clone(&self.resolver)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    /// When the certificate in use expires, once there is one.
    pub(super) fn expires(&self) -> Option<SystemTime> {
        self.expiry.get().filter(|_| self.is_ready())
    }

    /// Requests a certificate, and another one before it expires. Failures are tried again, later and later.
    pub(super) async fn run(&self) {
        let mut state = self.state.lock().await;
        while let Some(event) = state.next().await {
            match event {
                Ok(EventOk::DeployedCachedCert) => self.deployed("from the cache"),
                Ok(EventOk::DeployedNewCert) => self.deployed("from the authority"),
                Ok(EventOk::CertCacheStore | EventOk::AccountCacheStore) => {}
                Err(error) => warn!("{}", printable(&explain(&error))),
            }
        }
    }

    fn deployed(&self, source: &str) {
        self.is_ready.store(true, Ordering::Relaxed);
        info!(source, "certificate in use");
    }
}

/// What an error means to an operator. The library shows some of its errors as Rust holds them.
fn explain(error: &EventError<io::Error, io::Error>) -> String {
    let said = |problem: Option<&Problem>| {
        let detail = problem.and_then(|problem| problem.detail.clone());
        detail.unwrap_or_else(|| "it gives no reason".to_owned())
    };
    let reason = match error {
        EventError::AccountCacheLoad(error) | EventError::CertCacheLoad(error) => {
            return format!("tls.acme_cache cannot be read ({error}): check the permissions of its files");
        }
        EventError::AccountCacheStore(error) | EventError::CertCacheStore(error) => {
            return format!(
                "tls.acme_cache cannot be written ({error}): the next start requests a new certificate"
            );
        }
        EventError::Order(OrderError::BadAuth(auth)) => {
            let Identifier::Dns(domain) = &auth.identifier;
            let problem = auth.challenges.iter().find_map(|challenge| challenge.error.as_ref());
            format!("the authority did not reach this relay at port 443 of {domain}: {}", said(problem))
        }
        EventError::Order(OrderError::BadOrder(order) | OrderError::ProcessingTimeout(order)) => {
            format!("the authority refuses the order: {}", said(order.error.as_ref()))
        }
        EventError::Order(OrderError::Acme(AcmeError::HttpRequest(error))) => {
            format!("the authority cannot be asked: {}", innermost(&error.to_string()))
        }
        EventError::Order(error) => error.to_string(),
        EventError::CachedCertParse(error) | EventError::NewCertParse(error) => error.to_string(),
    };
    format!("no certificate by ACME yet, and it is tried again: {reason}")
}

/// The text that an error has deep inside, of one that is shown as Rust holds it.
fn innermost(shown: &str) -> &str {
    [r#"\"detail\":\""#, r#"\"detail\": \""#, "error: \"", "message: \""]
        .iter()
        .find_map(|begin| shown.rsplit_once(begin)?.1.split(['"', '\\']).next())
        .unwrap_or(shown)
}

impl fmt::Debug for Acme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acme").field("is_ready", &self.is_ready).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use rustls_acme::acme::{Auth, AuthStatus, Challenge, ChallengeType};

    use super::*;

    #[test]
    fn errors_of_the_library_are_shown_without_its_rust() {
        for (shown, said) in [
            (
                r#"http error: ConnectError(TcpConnect(Custom { kind: Uncategorized, error: "no such name" }))"#,
                "no such name",
            ),
            (
                r#"http error: ConnectError(TcpConnect(Os { code: 111, kind: ConnectionRefused, message: "Connection refused" }))"#,
                "Connection refused",
            ),
            (
                r#"non 2xx http status: 429 "{\"type\":\"urn:ietf:params:acme:error:rateLimited\",\"detail\":\"too many certificates\"}""#,
                "too many certificates",
            ),
            ("could not determine host from url", "could not determine host from url"),
        ] {
            assert_eq!(innermost(shown), said);
        }
    }

    #[test]
    fn an_authority_that_does_not_reach_the_relay_is_told_of_with_its_reason() {
        let problem = Problem { typ: None, detail: Some("connection refused".to_owned()) };
        let typ = ChallengeType::TlsAlpn01;
        let challenge = Challenge { typ, url: String::new(), token: String::new(), error: Some(problem) };
        let identifier = Identifier::Dns("play.example.org".to_owned());
        let auth = Auth { status: AuthStatus::Invalid, identifier, challenges: vec![challenge] };
        assert_eq!(
            explain(&EventError::Order(OrderError::BadAuth(auth))),
            "no certificate by ACME yet, and it is tried again: the authority did not reach this relay at port 443 of \
             play.example.org: connection refused"
        );
        let full = explain(&EventError::CertCacheStore(io::ErrorKind::StorageFull.into()));
        assert!(full.starts_with("tls.acme_cache cannot be written (no storage space)"), "{full}");
    }
}
