//! Macros that define an enum and its trait impls from one list of variants, and a `Debug` that omits secrets.

/// Defines an error or reason enum with a `Display` that writes the text given with each variant.
macro_rules! error_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$value_meta:meta])* $value:ident => $text:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$value_meta])* $value,)+
        }

        // defmt interns these texts, so they take no flash.
        #[cfg(feature = "defmt")]
        impl defmt::Format for $name {
            fn format(&self, f: defmt::Formatter<'_>) {
                match self {
                    $(Self::$value => defmt::write!(f, $text),)+
                }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(match self {
                    $(Self::$value => $text,)+
                })
            }
        }

        impl core::error::Error for $name {}
    };
}

/// Defines a protocol's enum of drop reasons. The trait `DropReasons` must be in scope.
macro_rules! drop_reasons {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$value_meta:meta])* $value:ident,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$value_meta])* $value,)+
        }

        impl $name {
            /// All reasons, in the order of their declaration.
            pub const ALL: [Self; [$(stringify!($value)),+].len()] = [$(Self::$value),+];
        }

        impl DropReasons for $name {
            const REASONS: &'static [Self] = &Self::ALL;
            type Counts = [u64; if cfg!(feature = "full") { Self::ALL.len() } else { 0 }];

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

/// Implements `Debug` with every field of a struct except its secrets.
macro_rules! debug_without_secrets {
    ($type:ty as $name:literal; shown: $($(#[$condition:meta])* $shown:ident),+; hidden: $($hidden:ident),+;) => {
        impl core::fmt::Debug for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                // Exhaustive, so a new field does not compile until it is in one of the two lists.
                let Self { $($(#[$condition])* $shown,)+ $($hidden: _),+ } = self;
                let mut debug = f.debug_struct($name);
                $($(#[$condition])* debug.field(stringify!($shown), $shown);)+
                debug.finish_non_exhaustive()
            }
        }
    };
}
