//! Signed tokens that admit clients, and the keys that sign and verify them.
//!
//! A token is a JSON Web Token (RFC 7519, in the compact form of RFC 7515), so any JWT library can create one. It is
//! signed with Ed25519 (`EdDSA`, RFC 8037) or HMAC-SHA256 (`HS256`). The keys of the relay determine the algorithm, and
//! the header of the token must agree with it.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ed25519_dalek::Signer;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{
    DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey, KeypairBytes,
};
use hmac::{Hmac, KeyInit, Mac};
use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize};
use sha2::Sha256;
use thiserror::Error;

use crate::addresses::TargetName;
use crate::admission::Origin;
use crate::syntax;

/// The maximum length of an id in bytes.
const ID_MAX: usize = 128;

/// The claims of a token. Unknown claims are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Claims {
    /// Expiry, in seconds since 1970.
    pub exp: u64,
    /// Start of validity, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbf: Option<u64>,
    /// The id of the token, 1 to 128 bytes.
    pub jti: String,
    /// The name of the target for which the token is valid.
    pub target: String,
    /// The address or network of the client; any if absent.
    #[serde(default, deserialize_with = "network", skip_serializing_if = "Option::is_none")]
    pub addr: Option<IpNet>,
    /// The origin of the page for which the token was issued; any if absent. Data channels do not reveal the origin of
    /// a page. They therefore require this claim if the relay has a list of allowed origins.
    #[serde(default, with = "page", skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// The reason why claims cannot become a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClaimsError {
    /// The name is not a valid target name.
    #[error("no target can have this name: give one of 1 to 64 bytes without '='")]
    Target,
    /// The id is empty or longer than 128 bytes.
    #[error("give an id of 1 to 128 bytes")]
    Id,
    /// The expiry is before 1970.
    #[error("give a time after 1970")]
    Time,
    /// The system has no random numbers.
    #[error("the system provides no random numbers")]
    Random,
}

impl Claims {
    /// Creates claims with a random id.
    ///
    /// # Errors
    ///
    /// If the name is not a valid target name, or the expiry is out of range.
    pub fn new(target: &str, expires: SystemTime) -> Result<Self, ClaimsError> {
        let target: TargetName = target.parse().map_err(|_| ClaimsError::Target)?;
        let exp = expires.duration_since(UNIX_EPOCH).map_err(|_| ClaimsError::Time)?.as_secs();
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|_| ClaimsError::Random)?;
        let jti = BASE64_URL_SAFE_NO_PAD.encode(id);
        Ok(Self { exp, nbf: None, jti, target: target.as_str().to_owned(), addr: None, origin: None })
    }

    fn check(&self) -> Result<(), ClaimsError> {
        if (1..=ID_MAX).contains(&self.jti.len()) { Ok(()) } else { Err(ClaimsError::Id) }
    }

    /// Returns the expiry, or `None` if it exceeds the range of the system's time.
    pub(crate) fn expires(&self) -> Option<SystemTime> {
        UNIX_EPOCH.checked_add(Duration::from_secs(self.exp))
    }

    /// Returns the start of validity.
    pub(crate) fn begins(&self) -> Option<SystemTime> {
        UNIX_EPOCH.checked_add(Duration::from_secs(self.nbf.unwrap_or(0)))
    }
}

fn network<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<IpNet>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| syntax::network(&text).map_err(serde::de::Error::custom)).transpose()
}

/// Serializes the origin of a page as text.
mod page {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::admission::Origin;

    pub(super) fn serialize<S: Serializer>(
        origin: &Option<Origin>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match origin {
            Some(origin) => serializer.collect_str(origin),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Origin>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(serde::de::Error::custom)).transpose()
    }
}

/// The maximum length of a token in bytes. Longer tokens are rejected unread.
const TOKEN_MAX: usize = 2048;

/// The length of generated secrets in bytes, and the minimum for others: as long as the hash (RFC 7518 section 3.2).
const SECRET_LEN: usize = 32;
const SECRET_PREFIX: &str = "hmac-sha256:";
const PRIVATE_LABEL: &str = "-----BEGIN PRIVATE KEY-----";
const PUBLIC_LABEL: &str = "-----BEGIN PUBLIC KEY-----";

/// The reason why a text is not a valid key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The text has none of the known forms.
    #[error("this is not a key: create one with 'rakwire-relay keygen'")]
    Form,
    /// The text is PEM, but contains no Ed25519 key.
    #[error("this is not an Ed25519 key in PEM: create one with 'rakwire-relay keygen'")]
    Ed25519,
    /// The secret is not base64url, or is shorter than 32 bytes.
    #[error(
        "the secret must be at least 32 bytes in base64url: create one with 'rakwire-relay keygen --algorithm \
         hmac-sha256'"
    )]
    Secret,
    /// The text is a private key, where a public key is expected.
    #[error(
        "this is the private key, which belongs to the issuer of tokens: give the relay the public one, FILE.pub"
    )]
    Private,
    /// The text is a public key, where a private key is expected.
    #[error("this is the public key, which cannot sign: use the private one")]
    Public,
    /// The system has no random numbers.
    #[error("the system provides no random numbers")]
    Random,
}

/// A key that signs tokens. `Debug` does not show the key.
pub struct SigningKey(Signing);

enum Signing {
    Ed25519(Box<ed25519_dalek::SigningKey>),
    Hmac(Box<[u8]>),
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Generates an Ed25519 key.
    ///
    /// # Errors
    ///
    /// If the system has no random numbers.
    pub fn ed25519() -> Result<Self, KeyError> {
        Ok(Self(Signing::Ed25519(Box::new(ed25519_dalek::SigningKey::from_bytes(&random()?)))))
    }

    /// Generates a secret for HMAC-SHA256.
    ///
    /// # Errors
    ///
    /// If the system has no random numbers.
    pub fn hmac_sha256() -> Result<Self, KeyError> {
        Ok(Self(Signing::Hmac(Box::new(random()?))))
    }

    /// Parses a private key in PEM (PKCS #8), or `hmac-sha256:` followed by the secret in base64url.
    ///
    /// # Errors
    ///
    /// If the text is neither.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        if let Some(secret) = text.strip_prefix(SECRET_PREFIX) {
            return Ok(Self(Signing::Hmac(decode_secret(secret)?)));
        }
        if text.starts_with(PUBLIC_LABEL) {
            return Err(KeyError::Public);
        }
        if !text.starts_with(PRIVATE_LABEL) {
            return Err(KeyError::Form);
        }
        let key = ed25519_dalek::SigningKey::from_pkcs8_pem(text).map_err(|_| KeyError::Ed25519)?;
        Ok(Self(Signing::Ed25519(Box::new(key))))
    }

    /// Formats the key so that [`SigningKey::from_text`] can parse it.
    #[must_use]
    pub fn to_text(&self) -> String {
        match &self.0 {
            Signing::Ed25519(key) => {
                // The public key is omitted, because some PKCS #8 parsers do not accept it.
                let pair = KeypairBytes { secret_key: key.to_bytes(), public_key: None };
                pair.to_pkcs8_pem(LineEnding::LF).map(|pem| pem.to_string()).unwrap_or_default()
            }
            Signing::Hmac(secret) => format!("{SECRET_PREFIX}{}\n", BASE64_URL_SAFE_NO_PAD.encode(secret)),
        }
    }

    /// Returns the public key in PEM, or `None` for a secret.
    #[must_use]
    pub fn public_text(&self) -> Option<String> {
        match &self.0 {
            Signing::Ed25519(key) => key.verifying_key().to_public_key_pem(LineEnding::LF).ok(),
            Signing::Hmac(_) => None,
        }
    }

    /// Signs a token with these claims.
    ///
    /// # Errors
    ///
    /// If the id is empty or longer than 128 bytes.
    pub fn sign(&self, claims: &Claims) -> Result<String, ClaimsError> {
        claims.check()?;
        let alg = match &self.0 {
            Signing::Ed25519(_) => Algorithm::EdDsa,
            Signing::Hmac(_) => Algorithm::Hs256,
        };
        let header = Header { alg, typ: Some("JWT".to_owned()), kid: None };
        let part =
            |json: Result<String, serde_json::Error>| BASE64_URL_SAFE_NO_PAD.encode(json.unwrap_or_default());
        let signed =
            format!("{}.{}", part(serde_json::to_string(&header)), part(serde_json::to_string(claims)));
        let signature = match &self.0 {
            Signing::Ed25519(key) => key.sign(signed.as_bytes()).to_bytes().to_vec(),
            Signing::Hmac(secret) => mac(secret, signed.as_bytes()).finalize().into_bytes().to_vec(),
        };
        Ok(format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// A key that verifies tokens. `Debug` does not show the key.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyingKey(Verifying);

#[derive(Clone, PartialEq, Eq)]
enum Verifying {
    Ed25519(ed25519_dalek::VerifyingKey),
    Hmac(Box<[u8]>),
}

impl VerifyingKey {
    /// Returns true if the key can also sign tokens, and must therefore stay secret.
    pub(crate) const fn is_secret(&self) -> bool {
        matches!(self.0, Verifying::Hmac(_))
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyingKey").finish_non_exhaustive()
    }
}

/// The algorithms of RFC 7518 and RFC 8037 that the relay accepts. `none` is not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Algorithm {
    #[serde(rename = "EdDSA")]
    EdDsa,
    #[serde(rename = "HS256")]
    Hs256,
}

/// The header of a token. A token with unknown fields is refused, because they could change its meaning (RFC 7515
/// section 4.1).
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    alg: Algorithm,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    typ: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kid: Option<String>,
}

impl VerifyingKey {
    /// Parses a public key in PEM, or `hmac-sha256:` followed by the secret in base64url.
    ///
    /// # Errors
    ///
    /// If the text is neither.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        if let Some(secret) = text.strip_prefix(SECRET_PREFIX) {
            return Ok(Self(Verifying::Hmac(decode_secret(secret)?)));
        }
        if text.starts_with(PRIVATE_LABEL) {
            return Err(KeyError::Private);
        }
        if !text.starts_with(PUBLIC_LABEL) {
            return Err(KeyError::Form);
        }
        let key = ed25519_dalek::VerifyingKey::from_public_key_pem(text).map_err(|_| KeyError::Ed25519)?;
        // A weak public key has signatures that match any message.
        if key.is_weak() { Err(KeyError::Ed25519) } else { Ok(Self(Verifying::Ed25519(key))) }
    }

    /// Returns the claims of a token that was signed with this key. The claims themselves are not checked.
    #[must_use]
    pub fn verify(&self, token: &str) -> Option<Claims> {
        if token.len() > TOKEN_MAX {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let header: Header = decode_json(header)?;
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).ok()?;
        let is_signed = match (&self.0, header.alg) {
            (Verifying::Ed25519(key), Algorithm::EdDsa) => {
                let signature = ed25519_dalek::Signature::from_slice(&signature).ok()?;
                key.verify_strict(signed.as_bytes(), &signature).is_ok()
            }
            (Verifying::Hmac(secret), Algorithm::Hs256) => {
                mac(secret, signed.as_bytes()).verify_slice(&signature).is_ok()
            }
            (Verifying::Ed25519(_), Algorithm::Hs256) | (Verifying::Hmac(_), Algorithm::EdDsa) => false,
        };
        let claims: Claims = if is_signed { decode_json(claims)? } else { return None };
        claims.check().is_ok().then_some(claims)
    }
}

fn decode_json<T: for<'de> Deserialize<'de>>(part: &str) -> Option<T> {
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

fn decode_secret(text: &str) -> Result<Box<[u8]>, KeyError> {
    let secret = BASE64_URL_SAFE_NO_PAD.decode(text.trim()).map_err(|_| KeyError::Secret)?;
    if secret.len() < SECRET_LEN { Err(KeyError::Secret) } else { Ok(secret.into()) }
}

fn mac(secret: &[u8], message: &[u8]) -> Hmac<Sha256> {
    // A secret may have any length (RFC 2104 section 3).
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC accepts keys of any length");
    mac.update(message);
    mac
}

fn random() -> Result<[u8; SECRET_LEN], KeyError> {
    let mut bytes = [0; SECRET_LEN];
    getrandom::fill(&mut bytes).map_err(|_| KeyError::Random)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn claims() -> Claims {
        Claims::new("game", SystemTime::now() + Duration::from_secs(60)).unwrap()
    }

    fn verifying(key: &SigningKey) -> VerifyingKey {
        VerifyingKey::from_text(&key.public_text().unwrap_or_else(|| key.to_text())).unwrap()
    }

    fn keys() -> [SigningKey; 2] {
        [SigningKey::ed25519().unwrap(), SigningKey::hmac_sha256().unwrap()]
    }

    #[test]
    fn only_the_matching_key_verifies_a_token() {
        let claims = claims();
        for (key, other) in keys().into_iter().zip(keys()) {
            let token = key.sign(&claims).unwrap();
            assert_eq!(verifying(&key).verify(&token), Some(claims.clone()));
            assert_eq!(verifying(&other).verify(&token), None);
            let again = SigningKey::from_text(&key.to_text()).unwrap();
            assert_eq!(again.sign(&claims).unwrap(), token, "both algorithms are deterministic");
        }
    }

    #[test]
    fn a_token_with_a_changed_byte_is_rejected() {
        for key in keys() {
            let (token, verifying) = (key.sign(&claims()).unwrap(), verifying(&key));
            for index in 0..token.len() {
                let mut bytes = token.clone().into_bytes();
                bytes[index] = if bytes[index] == b'A' { b'B' } else { b'A' };
                assert_eq!(verifying.verify(&String::from_utf8(bytes).unwrap()), None, "{index}");
            }
            for end in 0..token.len() {
                assert_eq!(verifying.verify(&token[..end]), None, "{end}");
            }
        }
    }

    /// Creates a token with any header and claims, signed with HMAC-SHA256 and `secret`.
    fn forged(header: &str, claims: &str, secret: &[u8]) -> String {
        let part = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = mac(secret, signed.as_bytes()).finalize().into_bytes();
        format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }

    #[test]
    fn the_token_header_does_not_choose_the_algorithm() {
        let claims = serde_json::to_string(&claims()).unwrap();
        let key = SigningKey::ed25519().unwrap();
        let public = key.public_text().unwrap();
        let verifying_key = verifying(&key);
        let Verifying::Ed25519(raw) = &verifying_key.0 else { panic!("another key") };
        // The public key is public: it must not be accepted as a secret.
        for secret in [public.as_bytes(), public.trim().as_bytes(), raw.as_bytes()] {
            for alg in ["HS256", "EdDSA", "none"] {
                let header = format!(r#"{{"alg":"{alg}","typ":"JWT"}}"#);
                assert_eq!(verifying_key.verify(&forged(&header, &claims, secret)), None, "{alg}");
            }
        }
        let part = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
        for alg in ["none", "None", "NONE", "", "hs256", "HS512", "ES256"] {
            let header = part(&format!(r#"{{"alg":"{alg}"}}"#));
            assert_eq!(verifying_key.verify(&format!("{header}.{}.", part(&claims))), None, "{alg}");
        }
    }

    #[test]
    fn unknown_token_header_fields_are_refused() {
        let secret = [7; 32];
        let key = VerifyingKey(Verifying::Hmac(Box::new(secret)));
        let claims = serde_json::to_string(&claims()).unwrap();
        assert!(key.verify(&forged(r#"{"alg":"HS256","kid":"a"}"#, &claims, &secret)).is_some());
        for header in [
            r#"{"alg":"HS256","crit":["exp"]}"#,
            r#"{"alg":"HS256","b64":false}"#,
            r#"{"alg":"HS256","jwk":{}}"#,
            r#"{"alg":"HS256","alg":"none"}"#,
            r#"{"typ":"JWT"}"#,
            "[]",
            "",
        ] {
            assert_eq!(key.verify(&forged(header, &claims, &secret)), None, "{header}");
        }
    }

    #[test]
    fn incomplete_or_malformed_claims_are_refused() {
        let secret = [7; 32];
        let key = VerifyingKey(Verifying::Hmac(Box::new(secret)));
        let verify = |claims: &str| key.verify(&forged(r#"{"alg":"HS256"}"#, claims, &secret));
        assert!(verify(r#"{"exp":1,"jti":"a","target":"game","sub":"ignored"}"#).is_some());
        assert!(verify(r#"{"exp":1,"jti":"a","target":"game","addr":"192.0.2.1"}"#).unwrap().addr.is_some());
        for claims in [
            r#"{"jti":"a","target":"game"}"#,
            r#"{"exp":1,"target":"game"}"#,
            r#"{"exp":1,"jti":"","target":"game"}"#,
            r#"{"exp":1,"jti":"a"}"#,
            r#"{"exp":-1,"jti":"a","target":"game"}"#,
            r#"{"exp":"1","jti":"a","target":"game"}"#,
            r#"{"exp":1,"exp":9999999999,"jti":"a","target":"game"}"#,
            r#"{"exp":1,"jti":"a","target":"game","addr":"anywhere"}"#,
            r#"{"exp":1,"jti":"a","target":"game","addr":5}"#,
        ] {
            assert_eq!(verify(claims), None, "{claims}");
        }
        let long = format!(r#"{{"exp":1,"jti":"a","target":"game","sub":"{}"}}"#, "x".repeat(TOKEN_MAX));
        assert_eq!(verify(&long), None);
    }

    #[test]
    fn malformed_keys_are_rejected() {
        let key = SigningKey::ed25519().unwrap();
        let public = key.public_text().unwrap();
        assert_eq!(VerifyingKey::from_text(&key.to_text()), Err(KeyError::Private));
        assert!(matches!(SigningKey::from_text(&public), Err(KeyError::Public)));
        assert_eq!(VerifyingKey::from_text(""), Err(KeyError::Form));
        assert_eq!(VerifyingKey::from_text("hmac-sha256:c2hvcnQ"), Err(KeyError::Secret));
        assert_eq!(
            VerifyingKey::from_text(&format!("{PUBLIC_LABEL}\nAAAA\n-----END PUBLIC KEY-----")),
            Err(KeyError::Ed25519)
        );
        assert!(format!("{key:?} {:?}", verifying(&key)).len() < 60, "nothing of a key is shown");
    }
}
