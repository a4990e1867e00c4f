//! Checks of the quickstarts in docs/: their commands run and print the documented output. The stage `docs` checks their
//! programs.
//!
//! A comment before a fenced block selects the check:
//!
//! - `<!-- starts -->`: the command starts a server that runs until the end of the document.
//! - `<!-- runs -->`: the commands run to completion.
//!
//! A `text` block after the last two is the expected output; `…` in it matches anything.

use std::env;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::artifacts;
use crate::service::Service;
use crate::shell::Shell;

/// One per audience: servers in Rust, pages, operators of relays, boards, maintainers.
const DOCUMENTS: [&str; 5] = ["server", "page", "operator", "board", "maintainer"];
const README: &str = "README.md";
/// The first page of the guide, in which the same is checked.
const GUIDE: &str = "docs/guide-echo.md";
/// The examples of `rakwire-native` in the documents.
const EXAMPLES: [&str; 2] = ["echo", "guide_echo"];
/// Maximum number of lines of a document.
const LONGEST: usize = 80;
/// The ports in the documents. Other programs may use them here.
const USED_PORTS: [&str; 3] = ["19132", "8999", "8080"];
/// Comments before programs, which the stage `docs` checks.
const PROGRAMS: [&str; 2] = ["<!-- file: ", "<!-- part: "];
/// Long enough for a busy machine.
const LIMIT: Duration = Duration::from_secs(300);

/// Checks every quickstart.
pub fn check(shell: &Shell) -> Result<()> {
    let readme = shell.read(README)?;
    let mut checked = 0;
    for user in DOCUMENTS {
        let path = format!("docs/quickstart-{user}.md");
        let text = shell.read(&path)?;
        if !readme.contains(&format!("]({path})")) {
            bail!("{README} does not link to {path}");
        }
        let lines = text.lines().count();
        if lines > LONGEST {
            bail!("{path} has {lines} lines, more than {LONGEST}");
        }
        checked += check_document(shell, &text).with_context(|| path.clone())?;
    }
    checked += check_document(shell, &shell.read(GUIDE)?).context(GUIDE)?;
    shell.print(format_args!(
        "{checked} blocks of {} quickstarts and of {GUIDE} are correct",
        DOCUMENTS.len()
    ));
    Ok(())
}

/// Checks a document and returns the number of checked blocks.
fn check_document(shell: &Shell, text: &str) -> Result<usize> {
    let here = Here::new(shell)?;
    let mut running = Vec::new();
    let mut checked = 0;
    for step in steps(text)? {
        let line = step.line();
        let done = match step {
            Step::Start { command, printed, .. } => {
                here.start(shell, &command, &printed).map(|server| running.push(server))
            }
            Step::Run { script, printed, .. } => here.run(shell, &script, &printed),
        };
        done.with_context(|| format!("the block in line {line}"))?;
        running.iter_mut().try_for_each(Service::check)?;
        checked += 1;
    }
    // The stage `docs` checks a page that has only programs.
    if checked == 0 && !PROGRAMS.iter().any(|program| text.contains(program)) {
        bail!("no block is checked");
    }
    Ok(checked)
}

/// Replacements for commands and addresses of the documents on this machine, during this run.
struct Here(Vec<(String, String)>);

impl Here {
    fn new(shell: &Shell) -> Result<Self> {
        let programs = artifacts::built_programs(shell)?;
        let folder = programs.rakwire.parent().context("a program has no folder")?;
        let own = env::current_exe().context("this program has no path")?;
        let name = |path: &Path| path.display().to_string();
        let mut replaced = vec![
            ("./rakwire-relay --".to_owned(), format!("{} --", name(&programs.relay))),
            ("./rakwire ".to_owned(), format!("{} ", name(&programs.rakwire))),
            ("cargo run -p rakwire-cli --".to_owned(), name(&programs.rakwire)),
            ("cargo xtask".to_owned(), name(&own)),
        ];
        replaced.extend(EXAMPLES.map(|example| {
            let command = format!("cargo run -p rakwire-native --example {example} --");
            (command, name(&folder.join("examples").join(example)))
        }));
        // All ports are bound before any is released, so that they differ.
        let bound = USED_PORTS.map(|port| (port, free_port()));
        for (port, bound) in bound {
            replaced.push((format!(":{port}"), format!(":{}", bound?.0)));
        }
        Ok(Self(replaced))
    }

    fn translate(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    }

    fn start(&self, shell: &Shell, command: &str, printed: &[String]) -> Result<Service> {
        let command = self.translate(command);
        let mut words = command.split_whitespace();
        let program = words.next().context("the block has no command")?;
        let server = Service::start(shell, "a server", Path::new(program), &words.collect::<Vec<_>>())?;
        self.compare(printed, &server.first_line)?;
        Ok(server)
    }

    fn run(&self, shell: &Shell, script: &str, printed: &[String]) -> Result<()> {
        let script = self.translate(script);
        let output = shell.cmd("sh", ["-euc", &script]).limit(LIMIT).output()?;
        if !output.status.success() {
            bail!("it failed, and printed {:?}", output.stdout);
        }
        self.compare(printed, &output.stdout)
    }

    fn compare(&self, expected: &[String], printed: &str) -> Result<()> {
        let mut lines = printed.lines();
        for expected in expected {
            let expected = self.translate(expected);
            if !lines.any(|line| is_like(&expected, line)) {
                bail!("it did not print {expected:?}, but {printed:?}");
            }
        }
        Ok(())
    }
}

/// Returns a port that is free for UDP and TCP, with the sockets that reserve it.
fn free_port() -> Result<(u16, TcpListener, UdpSocket)> {
    let tcp = TcpListener::bind("127.0.0.1:0").context("there is no free port")?;
    let port = tcp.local_addr()?.port();
    let udp = UdpSocket::bind(("127.0.0.1", port)).context("the port is not free for UDP")?;
    Ok((port, tcp, udp))
}

/// Returns true if a line matches the expected one, in which `…` matches anything.
fn is_like(expected: &str, line: &str) -> bool {
    let mut parts = expected.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// A step of a document, with the line of its block.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Start { line: usize, command: String, printed: Vec<String> },
    Run { line: usize, script: String, printed: Vec<String> },
}

impl Step {
    const fn line(&self) -> usize {
        match self {
            Self::Start { line, .. } | Self::Run { line, .. } => *line,
        }
    }
}

/// Returns the blocks of a document that follow a comment.
fn steps(text: &str) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut comment = None;
    let mut lines = (1..).zip(text.lines());
    while let Some((line, text)) = lines.next() {
        let Some(language) = text.strip_prefix("```") else {
            let is_comment =
                text.starts_with("<!-- ") && !PROGRAMS.iter().any(|start| text.starts_with(start));
            if is_comment && comment.replace(text).is_some() || !is_comment && comment.is_some() {
                bail!("there is no block after the comment in line {}", line - 1);
            }
            if !is_comment && !text.is_empty() {
                // Text ends the reach of a command, so a later output block does not belong to it.
                steps.push(None);
            }
            continue;
        };
        let body: Vec<_> = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        let body: String = body.iter().flat_map(|line| [line, "\n"]).collect();
        match comment.take() {
            Some(comment) => steps.push(Some(step(line, comment, body)?)),
            None => match steps.last_mut() {
                Some(Some(Step::Start { printed, .. } | Step::Run { printed, .. })) if language == "text" => {
                    printed.extend(body.lines().map(str::to_owned));
                }
                _ => steps.push(None),
            },
        }
    }
    Ok(steps.into_iter().flatten().collect())
}

fn step(line: usize, comment: &str, body: String) -> Result<Step> {
    match comment.trim_start_matches("<!-- ").trim_end_matches(" -->") {
        "starts" => Ok(Step::Start { line, command: body.trim().to_owned(), printed: Vec::new() }),
        "runs" => Ok(Step::Run { line, script: body, printed: Vec::new() }),
        _ => bail!("line {line} follows {comment:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "\
Text.

```sh
cargo gone
```

<!-- starts -->
```sh
serve 127.0.0.1:8080
```

```text
listening
```

<!-- runs -->
```sh
one
two
```

Text.

```text
not printed
```

<!-- file: a/b.rs -->
```rust
fn main() {}
```
";

    #[test]
    fn blocks_with_a_comment_are_steps() {
        let expected = [
            Step::Start {
                line: 8,
                command: "serve 127.0.0.1:8080".to_owned(),
                printed: vec!["listening".to_owned()],
            },
            Step::Run { line: 17, script: "one\ntwo\n".to_owned(), printed: Vec::new() },
        ];
        assert_eq!(steps(DOCUMENT).unwrap(), expected);
        assert!(steps("<!-- runs -->\ntext\n").is_err());
        assert!(steps("<!-- gone -->\n```sh\n```\n").is_err());
    }

    #[test]
    fn commands_run_with_the_ports_of_this_run() {
        let shell = Shell::new().unwrap();
        let here = Here(vec![(":8080".to_owned(), ":4711".to_owned())]);
        let printed = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        here.run(&shell, "echo at :8080; echo in 5 ms", &printed(&["at :8080", "in … ms"])).unwrap();
        let error = here.run(&shell, "echo a", &printed(&["b"])).unwrap_err();
        assert_eq!(error.to_string(), "it did not print \"b\", but \"a\\n\"");
        assert!(here.run(&shell, "echo a; exit 3", &[]).is_err());
        assert!(here.start(&shell, "false :8080", &[]).is_err());
    }

    #[test]
    fn an_ellipsis_matches_anything() {
        for (expected, line) in
            [("a", "a"), ("a … c", "a b c"), ("…c", "abc"), ("a…", "abc"), ("a…b…c", "a1b2c")]
        {
            assert!(is_like(expected, line), "{expected} {line}");
        }
        for (expected, line) in [("a", "ab"), ("a … c", "a b d"), ("a…b…c", "a1c"), ("b…", "abc")] {
            assert!(!is_like(expected, line), "{expected} {line}");
        }
    }
}
