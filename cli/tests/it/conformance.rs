//! `rakwire conformance`, which starts the suite where it is installed.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::text;

/// Runs the command with a folder as the only place for programs.
fn conformance(programs: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rakwire"))
        .arg("conformance")
        .args(arguments)
        .env("PATH", programs)
        .output()
        .expect("the program starts")
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn the_suite_receives_all_arguments_and_its_exit_status_is_returned() {
    let folder = folder("conformance-installed");
    let suite = folder.join("rakwire-conformance");
    fs::write(&suite, "#!/bin/sh\necho \"got $*\"\nexit 1\n").expect("a file");
    fs::set_permissions(&suite, Permissions::from_mode(0o755)).expect("a program");
    let output = conformance(&folder, &["127.0.0.1:1", "--only", "5", "--help"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "got 127.0.0.1:1 --only 5 --help\n");
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_missing_suite_is_reported_with_its_install_command() {
    let output = conformance(&folder("conformance-missing"), &["127.0.0.1:1"]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("cargo install --path conformance"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}
