//! What cannot be derived is said where it stands.

#[test]
fn what_has_no_encoding_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
