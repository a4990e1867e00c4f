//! `Debug` of types with secrets.

/// Shows all fields of a struct but its secrets.
macro_rules! debug_without_secrets {
    ($type:ty as $name:literal; shown: $($(#[$condition:meta])* $shown:ident),+; hidden: $($hidden:ident),+;) => {
        impl core::fmt::Debug for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                // A new field does not compile until it is in one of the lists.
                let Self { $($(#[$condition])* $shown,)+ $($hidden: _),+ } = self;
                let mut debug = f.debug_struct($name);
                $($(#[$condition])* debug.field(stringify!($shown), $shown);)+
                debug.finish_non_exhaustive()
            }
        }
    };
}
