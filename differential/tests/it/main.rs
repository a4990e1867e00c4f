//! The original and rakwire in every pairing, and faults that the comparison must find.

mod comparison;
mod pairings;
