//! What an enum of reasons for dropping needs in order to be counted.

/// The reasons of a protocol for dropping what arrived.
pub trait DropReasons: Copy + 'static {
    /// Every reason, in the order of [`index`](Self::index).
    const REASONS: &'static [Self];
    /// One counter a reason.
    type Counts: Copy + core::fmt::Debug + Default + AsRef<[u64]> + AsMut<[u64]> + Send + Sync;

    /// Where the counter of this reason stands.
    fn index(self) -> usize;
}

/// Defines the reasons of a protocol for dropping what arrived.
macro_rules! drop_reasons {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$value_meta:meta])* $value:ident,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$value_meta])* $value,)+
        }

        impl $name {
            /// Every reason.
            pub const ALL: [Self; [$(stringify!($value)),+].len()] = [$(Self::$value),+];
        }

        impl $crate::endpoint::DropReasons for $name {
            const REASONS: &'static [Self] = &Self::ALL;
            type Counts = [u64; Self::ALL.len()];

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

pub(crate) use drop_reasons;
