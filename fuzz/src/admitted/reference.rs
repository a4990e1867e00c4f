//! A second, independent implementation of the check of tokens.

use std::net::IpAddr;
use std::time::Duration;

use crate::token::Claims;

/// The relay's default maximum lifetime of a token in seconds.
const LIFETIME_MAX: u64 = 3_600;
/// The relay's default tolerance for clock differences between issuer and relay.
pub(super) const LEEWAY: Duration = Duration::from_secs(5);

/// The reason why a token does not admit a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Untrusted,
    TooLong,
    Expired,
    Early,
    Target,
    Address,
}

pub(super) fn refusal(
    claims: &Claims,
    is_trusted: bool,
    target: &str,
    ip: IpAddr,
    now: u64,
) -> Option<Refused> {
    let leeway = LEEWAY.as_secs();
    let reasons = [
        (!is_trusted, Refused::Untrusted),
        (claims.exp > now + LIFETIME_MAX + leeway, Refused::TooLong),
        (now > claims.exp.saturating_add(leeway), Refused::Expired),
        (claims.nbf.is_some_and(|begins| begins > now + leeway), Refused::Early),
        (claims.target != target, Refused::Target),
        (claims.addr.is_some_and(|network| !network.contains(&ip)), Refused::Address),
    ];
    reasons.into_iter().find(|(holds, _)| *holds).map(|(_, reason)| reason)
}
