//! The symbolic models of secure connections, in which Verifpal looks for attacks (docs/secure.md#how-it-is-checked).

use std::fs;

use anyhow::{Context, Result, bail};

use crate::setup::Need;
use crate::shell::Shell;

/// The needs of the stage.
pub const NEEDS: [Need; 1] = [Need::Verifpal];

/// Each model, with as many queries as it has.
const MODELS: [(&str, usize); 2] = [("docs/models/secure-nk.vp", 2), ("docs/models/secure-xk.vp", 6)];
/// Where a model says that the client knows the server's key before, and the same without that.
const PINNED: &str = "Server -> Client: [gs]";
const UNPINNED: &str = "Server -> Client: gs";

/// The stage of `cargo xtask nightly`.
pub fn stage(shell: &Shell) -> Result<()> {
    for (model, queries) in MODELS {
        let said = verify(shell, model)?;
        if !said.contains(&format!("All {queries} queries pass.")) {
            bail!("{model} is not as safe as it should be:\n{said}");
        }
        shell.print(format_args!("{model}: no attack on {queries} queries"));
    }
    finds_attacks(shell)
}

/// A model in which the attacker can change the server's key on its way has an attack, or those above would say nothing.
fn finds_attacks(shell: &Shell) -> Result<()> {
    let (name, _) = MODELS[0];
    let text = unpinned(&shell.read(name)?).with_context(|| format!("{name} pins no key"))?;
    let folder = shell.path("target/models");
    fs::create_dir_all(&folder)?;
    let model = folder.join("unpinned.vp");
    fs::write(&model, text)?;
    let said = verify(shell, &model.to_string_lossy())?;
    if !said.contains("FAIL") || said.contains("queries pass.") {
        bail!("no attack was found where the server's key is not known before:\n{said}");
    }
    shell.print(format_args!("an attack where the server's key is not known before"));
    Ok(())
}

fn unpinned(model: &str) -> Option<String> {
    model.contains(PINNED).then(|| model.replace(PINNED, UNPINNED))
}

/// What Verifpal says of a model. Whether it found an attack is in the text, not in the exit code.
fn verify(shell: &Shell, model: &str) -> Result<String> {
    let said = shell.cmd("verifpal", ["verify", model]).output()?.stdout;
    if !said.contains("Verification completed") {
        bail!("verifpal did not finish {model}:\n{said}");
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_without_a_pinned_key_is_made_of_one_with_it() {
        let text = "a\nServer -> Client: [gs]\nb";
        assert_eq!(unpinned(text).as_deref(), Some("a\nServer -> Client: gs\nb"));
        assert_eq!(unpinned("Server -> Client: gs"), None);
    }
}
