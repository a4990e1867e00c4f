//! Tests of `rakwire` with a minimal set of features. The library itself is empty.
