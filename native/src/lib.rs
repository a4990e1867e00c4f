//! rakwire-native
