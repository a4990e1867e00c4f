//! Empty: this package only contains tests.
