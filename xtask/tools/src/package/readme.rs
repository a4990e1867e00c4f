//! The examples of a README, as a user has them who knows nothing else: in a project of its own, with what it says to add.

use anyhow::{Result, bail};

/// The examples in Rust, each a program.
pub(super) fn programs(readme: &str) -> Result<Vec<String>> {
    let (mut programs, mut block) = (Vec::new(), None::<Vec<&str>>);
    for line in readme.lines() {
        match (&mut block, line) {
            (None, "```rust") => block = Some(Vec::new()),
            (None, _) => {}
            (Some(lines), "```") => {
                programs.push(program(lines));
                block = None;
            }
            // What rustdoc hides belongs to the example.
            (Some(lines), line) => lines.push(line.strip_prefix("# ").unwrap_or(line)),
        }
    }
    if block.is_some() {
        bail!("an example has no end");
    }
    Ok(programs)
}

/// The rest of `cargo add` for what the README needs from others.
pub(super) fn additions(readme: &str) -> Vec<Vec<String>> {
    let commands = readme.lines().filter_map(|line| line.strip_prefix("cargo add "));
    let commands = commands.filter(|command| !command.starts_with("--path"));
    let words = |command: &str| {
        let command = command.split(" #").next().unwrap_or_default();
        command.split_whitespace().map(str::to_owned).collect()
    };
    commands.map(words).collect()
}

/// An example that is no program alone becomes one.
fn program(lines: &[&str]) -> String {
    let code = lines.join("\n");
    if code.contains("fn main(") {
        return format!("{code}\n");
    }
    let code: Vec<_> = lines.iter().filter(|line| !line.starts_with("Ok::<(), ")).copied().collect();
    format!(
        "async fn readme() -> Result<(), Box<dyn std::error::Error>> {{\n{}\nOk(())\n}}\n\nfn main() {{\n    drop(readme());\n}}\n",
        code.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_become_programs() {
        let readme = "```sh\ncargo add --path ../x\ncargo add tokio --features rt   # why\n```\n```rust\nlet a = b()?;\n\
                      # Ok::<(), E>(())\n```\n```rust\n# fn main() {\nc();\n# }\n```\n";
        let programs = programs(readme).expect("two");
        assert_eq!(programs.len(), 2);
        assert!(programs[0].contains("{\nlet a = b()?;\nOk(())\n}"), "{}", programs[0]);
        assert_eq!(programs[1], "fn main() {\nc();\n}\n");
        assert_eq!(additions(readme), [["tokio", "--features", "rt"]]);
        assert!(super::programs("```rust\n").is_err());
    }
}
