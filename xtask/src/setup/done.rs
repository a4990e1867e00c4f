//! How a step of the set-up ends.

/// What a step of the set-up found or did.
pub enum Done {
    /// It was there already, as this text says.
    Present(String),
    /// It was installed or built, as this text says.
    Installed(String),
}
