//! The symbolic models of secure connections, in which Verifpal searches for attacks
//! (docs/secure.md#tests).

use anyhow::{Result, bail};

use crate::files;
use crate::setup::Need;
use crate::shell::Shell;

/// The needs of the stage.
pub const NEEDS: [Need; 1] = [Need::Verifpal];

/// Each model with its number of queries.
const MODELS: [(&str, usize); 2] = [("docs/models/secure-nk.vp", 2), ("docs/models/secure-xk.vp", 6)];
/// The line of a model that gives the client the server's key in advance, and its replacement.
const PINNED: &str = "Server -> Client: [gs]";
const UNPINNED: &str = "Server -> Client: gs";

/// The stage of `cargo xtask nightly`.
pub fn stage(shell: &Shell) -> Result<()> {
    for (model, queries) in MODELS {
        let said = verify(shell, model)?;
        if !said.contains(&format!("All {queries} queries pass.")) {
            bail!("{model} has failed queries:\n{said}");
        }
        shell.print(format_args!("{model}: no attack on {queries} queries"));
    }
    finds_attacks(shell)
}

/// Checks that Verifpal finds an attack on a model in which the attacker can change the server's key in transit.
/// Otherwise the passing models would prove nothing.
fn finds_attacks(shell: &Shell) -> Result<()> {
    let (name, _) = MODELS[0];
    let text = shell.read(name)?;
    if !text.contains(PINNED) {
        bail!("{name} has no pinned key");
    }
    let text = text.replace(PINNED, UNPINNED);
    let folder = shell.path("target/models");
    let model = folder.join("unpinned.vp");
    files::write(&model, text)?;
    let said = verify(shell, &model.to_string_lossy())?;
    if !said.contains("FAIL") || said.contains("queries pass.") {
        bail!("no attack was found although the server's key is not pinned:\n{said}");
    }
    shell.print(format_args!("an attack was found without a pinned server key, as expected"));
    Ok(())
}

/// Returns Verifpal's output for a model. The exit code does not show whether it found an attack.
fn verify(shell: &Shell, model: &str) -> Result<String> {
    let said = shell.cmd("verifpal", ["verify", model]).output()?.stdout;
    if !said.contains("Verification completed") {
        bail!("verifpal did not finish {model}:\n{said}");
    }
    Ok(said)
}
