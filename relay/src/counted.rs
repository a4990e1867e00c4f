//! Enums of what is counted.

/// Defines an enum, and all its values in the order in which they are counted.
macro_rules! counted {
    ($(#[$doc:meta])+ pub enum $name:ident { $($(#[$value_doc:meta])+ $value:ident,)+ }) => {
        $(#[$doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$value_doc])+ $value,)+
        }

        impl $name {
            /// All of them, in the order in which they are counted.
            pub const ALL: [Self; [$(stringify!($value)),+].len()] = [$(Self::$value),+];
        }
    };
}
