//! Tests the original and rakwire in every pairing, and deliberate faults that the comparison must find.

mod comparison;
mod pairings;
