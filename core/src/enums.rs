//! The macro for enums whose values would otherwise be listed twice.

/// Defines an enum of errors or of reasons, in which each value has the text that its `Display` writes.
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
