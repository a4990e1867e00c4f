//! Results of set-up steps.

/// The result of a set-up step.
pub enum Done {
    /// It was already there; the text describes it.
    Present(String),
    /// It was installed or built; the text describes it.
    Installed(String),
}
