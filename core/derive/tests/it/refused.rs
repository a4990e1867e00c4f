//! Unsupported types cause compile errors that point to the unsupported part.

#[test]
fn types_without_an_encoding_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
