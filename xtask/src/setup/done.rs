//! How a step of the set-up ends.

/// What a step of the set-up found or did.
pub(crate) enum Done {
    Present(String),
    Installed(String),
}
