//! Empty: this package exists for its tests.
