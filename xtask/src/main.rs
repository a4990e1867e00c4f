//! The program behind `cargo xtask COMMAND`.

use std::process::ExitCode;

fn main() -> ExitCode {
    xtask::main()
}
