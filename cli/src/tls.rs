//! TLS certificates and keys from files.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use rakwire_extras::tcp::rustls::crypto::{CryptoProvider, ring};
use rakwire_extras::tcp::rustls::pki_types::pem::{Error, PemObject};
use rakwire_extras::tcp::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rakwire_extras::tcp::rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::failure::Failure;

/// Configures a server with the certificate of `--tls-cert` and the key of `--tls-key`.
pub(crate) fn server(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, Failure> {
    let chain = certificates("--tls-cert", certificate)?;
    let unusable = |error: &dyn Display| {
        unusable("--tls-key", key, error, "use a PEM file with the key of the certificate")
    };
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(&describe(&error)))?;
    let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let builder = builder.map_err(Failure::runtime)?.with_no_client_auth();
    builder.with_single_cert(chain, secret).map(Arc::new).map_err(|error| unusable(&error))
}

/// Configures a client that trusts the certificates in the file of `--tls-ca`, or those that the system trusts.
pub(crate) fn client(authorities: Option<&Path>) -> Result<Arc<ClientConfig>, Failure> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = authorities {
        for certificate in certificates("--tls-ca", file)? {
            roots.add(certificate).map_err(|error| {
                unusable("--tls-ca", file, &error, "use a PEM file with certificates of authorities")
            })?;
        }
    } else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err(Failure::usage("the system trusts no certificate authority; name one with --tls-ca"));
        }
    }
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let builder = builder.map_err(Failure::runtime)?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// Returns the name that the certificate must be valid for: the host of HOST:PORT.
pub(crate) fn name_of(target: &str) -> Result<ServerName<'static>, Failure> {
    let host = target.rsplit_once(':').map_or(target, |(host, _)| host);
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    ServerName::try_from(host.to_owned()).map_err(|error| {
        Failure::usage(format!(
            "no certificate can be valid for {host:?}: {error}; use a host name or an address"
        ))
    })
}

/// Reads at least one certificate from the PEM file that `option` names.
fn certificates(option: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let found = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = match found {
        Ok(found) if found.is_empty() => Err(Error::NoItemsFound),
        other => other,
    };
    found.map_err(|error| unusable(option, file, &describe(&error), "use a PEM file with certificates"))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn describe(error: &Error) -> String {
    if let Error::Io(error) = error {
        error.to_string()
    } else if matches!(error, Error::NoItemsFound) {
        "the file has no such PEM section".to_owned()
    } else {
        error.to_string()
    }
}

fn unusable(option: &str, file: &Path, error: &dyn Display, advice: &str) -> Failure {
    Failure::usage(format!("{option} {}: {error}; {advice}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::name_of;

    #[test]
    fn the_certificate_must_match_the_host() {
        for (target, host) in [
            ("example.org:19132", "example.org"),
            ("192.0.2.1:1", "192.0.2.1"),
            ("[2001:db8::1]:19132", "2001:db8::1"),
        ] {
            assert_eq!(name_of(target).expect("a name").to_str(), host);
        }
        assert!(name_of("no name:1").is_err());
    }
}
