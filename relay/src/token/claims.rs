//! What a token says.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

use crate::admission::Origin;
use crate::syntax;
use crate::target::TargetName;

/// The most bytes of an id.
const ID_MAX: usize = 128;

/// The claims of a token. Others are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Claims {
    /// When it ends to admit, in seconds since 1970.
    pub exp: u64,
    /// When it begins to admit, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbf: Option<u64>,
    /// Its id, of 1 to 128 bytes.
    pub jti: String,
    /// The target that it admits to.
    pub target: String,
    /// The address or network of the client; without it any.
    #[serde(default, deserialize_with = "network", skip_serializing_if = "Option::is_none")]
    pub addr: Option<IpNet>,
    /// The origin of the page that it was given to; without it any. Data channels, which do not tell where a page is from, need it
    /// where a list has the origins of pages that may connect.
    #[serde(default, with = "page", skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// The claims cannot be made into a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClaimsError {
    /// The name cannot be that of a target.
    #[error("no target can have this name: give one of 1 to 64 bytes without '='")]
    Target,
    /// The id is empty or too long.
    #[error("give an id of 1 to 128 bytes")]
    Id,
    /// The expiry is before 1970.
    #[error("give a time after 1970")]
    Time,
    /// The system has no random numbers.
    #[error("the system gives no random numbers")]
    Random,
}

impl Claims {
    /// Claims with a random id.
    ///
    /// # Errors
    ///
    /// If no target can have this name, or the expiry is out of range.
    pub fn new(target: &str, expires: SystemTime) -> Result<Self, ClaimsError> {
        let target: TargetName = target.parse().map_err(|_| ClaimsError::Target)?;
        let exp = expires.duration_since(UNIX_EPOCH).map_err(|_| ClaimsError::Time)?.as_secs();
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|_| ClaimsError::Random)?;
        let jti = BASE64_URL_SAFE_NO_PAD.encode(id);
        Ok(Self { exp, nbf: None, jti, target: target.as_str().to_owned(), addr: None, origin: None })
    }

    pub(super) fn check(&self) -> Result<(), ClaimsError> {
        if (1..=ID_MAX).contains(&self.jti.len()) { Ok(()) } else { Err(ClaimsError::Id) }
    }

    /// When it ends to admit.
    pub(crate) fn expires(&self) -> Option<SystemTime> {
        UNIX_EPOCH.checked_add(Duration::from_secs(self.exp))
    }

    /// When it begins to admit.
    pub(crate) fn begins(&self) -> Option<SystemTime> {
        UNIX_EPOCH.checked_add(Duration::from_secs(self.nbf.unwrap_or(0)))
    }
}

fn network<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<IpNet>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| syntax::network(&text).map_err(serde::de::Error::custom)).transpose()
}

/// The origin of a page as its text.
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
