//! How a step of the set-up ends.

/// What a step of the set-up found or did.
pub enum Done {
    Present(String),
    Installed(String),
}
