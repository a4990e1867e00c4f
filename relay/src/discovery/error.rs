//! Why there is nothing from the store.

use thiserror::Error;

use super::announcement::PREFIX;

/// The most bytes of one answer. Whoever may write into the store can give keys any length, and a store may say anything.
pub(super) const ANSWER_MAX: usize = 512 * 1_024;

/// Why servers cannot be found or announced.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// The URL of the store cannot be used. It may have a password, so it is not repeated.
    #[error(
        "the URL of the store cannot be used; write it as redis://HOST:PORT/, rediss://HOST:PORT/ or unix:///PATH"
    )]
    Url,
    /// There is an authority for certificates, but no TLS.
    #[error(
        "the URL of the store asks for no TLS, so no authority is needed: write rediss://, or leave the file out"
    )]
    NoTls,
    /// Certificates of the store could not be checked: the authority's file cannot be used, or the machine trusts none.
    #[error("{0}")]
    Tls(String),
    /// There is no connection to the store.
    #[error("the store of servers cannot be reached: {0}")]
    Unreachable(String),
    /// The store refuses a command, or does not answer it.
    #[error("the store of servers: {0}")]
    Store(String),
    /// An answer of the store is too long: keys have been given great lengths, or it is no store of servers.
    #[error(
        "the store of servers answers with more than {ANSWER_MAX} bytes at once: give announcements a database of their own, and \
         look who may write keys there that begin with {PREFIX}"
    )]
    TooLong,
}
