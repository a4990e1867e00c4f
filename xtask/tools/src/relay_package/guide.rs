//! The instructions of docs/relay.md for operators: first steps, and socket activation by systemd.

use anyhow::{Context, Result, bail};

use xtask::shell::Shell;

const GUIDE: &str = "docs/relay.md";
const FIRST: &str = "## From nothing to a hardened public relay";
const SYSTEMD: &str = "### systemd";
/// The origin that the guide's configuration admits.
pub(super) const ORIGIN: &str = "https://play.example.org";

/// Returns the guide's configuration.
pub(super) fn config(shell: &Shell) -> Result<String> {
    let config = blocks(&shell.read(GUIDE)?, FIRST, "toml").into_iter().next().unwrap_or_default();
    if !config.contains(ORIGIN) {
        bail!("{GUIDE} does not begin with a configuration for {ORIGIN}");
    }
    Ok(config)
}

/// Returns the guide's configuration with a certificate from files.
pub(super) fn config_with_files(shell: &Shell) -> Result<String> {
    let config = config(shell)?;
    let (before, rest) = config.split_once("[tls]\n").context("the configuration of the guide has no TLS")?;
    let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
    let tls = "[tls]\ncertificate = \"/etc/rakwire-relay/fullchain.pem\"\nkey = \"/etc/rakwire-relay/privkey.pem\"\n";
    Ok(format!("{before}{tls}\n{after}"))
}

/// Returns the guide's commands after the installation of the package.
pub(super) fn commands(shell: &Shell) -> Result<String> {
    let blocks = blocks(&shell.read(GUIDE)?, FIRST, "sh");
    let after = blocks.get(1..).filter(|blocks| blocks.len() == 3);
    Ok(after.context("the number of commands in the guide has changed")?.join("\n"))
}

/// Returns the guide's commands for socket activation.
pub(super) fn socket_commands(shell: &Shell) -> Result<String> {
    let block = blocks(&shell.read(GUIDE)?, SYSTEMD, "sh").into_iter().next();
    block
        .filter(|block| block.contains("rakwire-relay.socket"))
        .context("the guide does not start the socket")
}

/// Returns the code blocks in this language in the section, up to the next heading.
fn blocks(text: &str, section: &str, language: &str) -> Vec<String> {
    let is_heading = |line: &str| line.starts_with("## ") || line.starts_with("### ");
    let from_section = text.lines().skip_while(|line| *line != section).skip(1);
    let mut lines = from_section.take_while(|line| !is_heading(line));
    let begin = format!("```{language}");
    let mut blocks = Vec::new();
    while lines.any(|line| line.trim() == begin) {
        let block = lines.by_ref().take_while(|line| line.trim() != "```").map(str::trim_start);
        blocks.push(block.collect::<Vec<_>>().join("\n") + "\n");
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_selected_by_section_and_language() {
        let text = format!(
            "```sh\nno\n```\n{FIRST}\n1. x\n   ```sh\n   a\n   b\n   ```\n```toml\nt\n```\n```sh\nc\n```\n## Next\n```sh\nd\n```\n"
        );
        assert_eq!(blocks(&text, FIRST, "sh"), ["a\nb\n", "c\n"]);
        assert_eq!(blocks(&text, FIRST, "toml"), ["t\n"]);
        let text = format!("## Before\n{SYSTEMD}\n```sh\na\n```\n### Next\n```sh\nb\n```\n");
        assert_eq!(blocks(&text, SYSTEMD, "sh"), ["a\n"]);
    }
}
