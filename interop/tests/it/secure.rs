//! A second implementation of secure connections, written in Python from `docs/secure.md` alone.

use std::path::Path;

use crate::support::{peer, run, text};

#[test]
fn another_implementation_agrees_with_the_vectors() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/secure.json");
    let output =
        run(&peer("secure"), &[vectors.to_str().expect("a path in UTF-8")]).expect("the program starts");
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}
