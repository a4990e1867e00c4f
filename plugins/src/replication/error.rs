//! Errors of spawning and changing entities.

/// The reason why an entity was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetError {
    /// There is no such entity.
    Unknown,
    /// Another peer owns the entity.
    NotOwner,
    /// The entity has no such field.
    NoField,
}

impl core::fmt::Display for SetError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Unknown => "there is no such entity",
            Self::NotOwner => "another peer owns the entity",
            Self::NoField => "the entity has no such field",
        })
    }
}

impl core::error::Error for SetError {}

/// The reason why no entity was spawned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpawnError {
    /// There is no such class, or it has a different number of fields.
    BadClass,
    /// The maximum number of entities is reached: despawn one, or choose a higher maximum.
    TooMany,
}

impl core::fmt::Display for SpawnError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::BadClass => "there is no such class, or it has a different number of fields",
            Self::TooMany => "the maximum number of entities exists; despawn one, or choose a higher maximum",
        })
    }
}

impl core::error::Error for SpawnError {}
