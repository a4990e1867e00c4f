//! Repeats failed tests once in isolation. A test that then passes is flaky: a fault to fix, but not one caused by the
//! change under test.

use anyhow::{Result, bail};

use crate::artifacts;
use crate::results::{AGAIN, FLAKY, Failed};
use crate::shell::Shell;
use crate::targets::WASM;

/// More failures than these are caused by a change rather than by chance.
const FEW: usize = 5;

/// A test runner that can run selected tests.
#[derive(Clone, Copy)]
pub enum Runner {
    /// Cargo, with the tests of all crates.
    Cargo,
    /// Node, in this folder.
    Node(&'static str),
}

impl Runner {
    /// Repeats the failed tests once. Succeeds if they are few and all pass.
    pub fn run_again(self, shell: &Shell, failed: &[Failed]) -> Result<()> {
        if failed.is_empty() || failed.len() > FEW {
            bail!("{} tests failed", failed.len());
        }
        shell.note(AGAIN);
        match self {
            Self::Cargo => {
                let names = failed.iter().map(|test| test.name.as_str());
                let args = artifacts::HOST_TESTS.into_iter().chain(["--", "--exact"]).chain(names);
                shell.cmd("cargo", args).run()?;
            }
            Self::Node(folder) => {
                let mut files: Vec<_> = failed.iter().filter_map(|test| test.file.as_deref()).collect();
                files.dedup();
                let args = ["--test", "--test-concurrency=1", "--test-reporter=spec"];
                // The tests build an example for browsers.
                shell.cmd_for(WASM, folder, "node", args.into_iter().chain(files)).run()?;
            }
        }
        failed.iter().for_each(|test| shell.note(format_args!("{FLAKY}{}", test.name)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_failures_and_no_failures_are_not_repeated() {
        let shell = Shell::new().unwrap();
        let failed = |count| vec![Failed { name: "a".to_owned(), file: None }; count];
        for count in [0, FEW + 1] {
            let error = Runner::Cargo.run_again(&shell, &failed(count)).unwrap_err();
            assert_eq!(error.to_string(), format!("{count} tests failed"));
        }
    }
}
