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

/// The quickstarts by their audience: servers in Rust, pages, operators of relays, boards, maintainers.
const DOCUMENTS: [&str; 5] = ["server", "page", "operator", "board", "maintainer"];
const README: &str = "README.md";
/// The first page of the guide, which is checked like a quickstart.
const GUIDE: &str = "docs/guide-echo.md";
/// The examples of `rakwire-native` in the documents.
const EXAMPLES: [&str; 2] = ["echo", "guide_echo"];
/// Maximum number of lines of a document.
const LONGEST: usize = 90;
/// The ports in the documents, which are replaced because other programs may use them on this machine.
const USED_PORTS: [&str; 3] = ["19132", "8999", "8080"];
/// Comments before programs, which the stage `docs` checks.
const PROGRAMS: [&str; 2] = ["<!-- file: ", "<!-- part: "];
/// The time limit of a command, long enough for a busy machine.
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
    let steps = steps(text)?;
    for step in &steps {
        let done = match step.kind {
            "starts" => here.start(shell, step).map(|server| running.push(server)),
            "runs" => here.run(shell, step),
            other => bail!("line {} follows {other:?}", step.line),
        };
        done.with_context(|| format!("the block in line {}", step.line))?;
        running.iter_mut().try_for_each(Service::check)?;
    }
    // A page with programs but no commands is checked by the stage `docs`.
    if steps.is_empty() && !PROGRAMS.iter().any(|program| text.contains(program)) {
        bail!("no block is checked");
    }
    Ok(steps.len())
}

/// The replacements for commands and addresses of the documents in this run.
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

    fn start(&self, shell: &Shell, step: &Step<'_>) -> Result<Service> {
        let command = self.translate(&step.body);
        let mut words = command.split_whitespace();
        let program = words.next().context("the block has no command")?;
        let server = Service::start(shell, "a server", Path::new(program), &words.collect::<Vec<_>>())?;
        self.compare(&step.printed, &server.first_line)?;
        Ok(server)
    }

    fn run(&self, shell: &Shell, step: &Step<'_>) -> Result<()> {
        let script = self.translate(&step.body);
        let output = shell.cmd("sh", ["-euc", &script]).limit(LIMIT).output()?;
        if !output.status.success() {
            bail!("the commands failed, and printed {:?}", output.stdout);
        }
        self.compare(&step.printed, &output.stdout)
    }

    fn compare(&self, expected: &str, printed: &str) -> Result<()> {
        let mut lines = printed.lines();
        for expected in self.translate(expected).lines() {
            if !lines.any(|line| is_like(expected, line)) {
                bail!("the commands printed {printed:?}, not {expected:?}");
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

/// A block after a comment, with its line number and the expected output.
#[derive(Debug, Default, PartialEq, Eq)]
struct Step<'t> {
    kind: &'t str,
    line: usize,
    body: String,
    printed: String,
}

/// Returns the blocks of a document that follow a comment.
fn steps(text: &str) -> Result<Vec<Step<'_>>> {
    let (mut steps, mut comment, mut expects_output) = (Vec::<Step<'_>>::new(), None, false);
    let mut lines = (1..).zip(text.lines());
    while let Some((line, text)) = lines.next() {
        if let Some(language) = text.strip_prefix("```") {
            let body = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
            let body: String = body.flat_map(|line| [line, "\n"]).collect();
            let output = steps.last_mut().filter(|_| expects_output && language == "text");
            match (comment.take(), output) {
                (Some(kind), _) => {
                    expects_output = true;
                    steps.push(Step { kind, line, body, ..Step::default() });
                }
                (None, Some(step)) => step.printed += &body,
                (None, None) => expects_output = false,
            }
        } else if comment.is_some() {
            bail!("there is no block after the comment in line {}", line - 1);
        } else if !text.is_empty() {
            let is_program = PROGRAMS.iter().any(|start| text.starts_with(start));
            if ["<!--runs", "<!--starts", "<!-- runs-", "<!-- starts-"]
                .iter()
                .any(|wrong| text.starts_with(wrong))
            {
                bail!("line {line}: write <!-- runs --> or <!-- starts -->");
            }
            comment =
                text.strip_prefix("<!-- ").filter(|_| !is_program).and_then(|text| text.strip_suffix(" -->"));
            // Text between a command and an output block means that the output is not that of the command.
            expects_output = false;
        }
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_with_a_comment_are_steps() {
        let text = "Text.\n\n```sh\ncargo gone\n```\n\n<!-- starts -->\n```sh\nserve\n```\n\n```text\nlistening\n```\n\n\
                    <!-- runs -->\n```sh\none\ntwo\n```\n\nText.\n\n```text\nnot printed\n```\n\n<!-- file: a.rs -->\n```rust\nx\n```\n";
        let step = |kind, line, body: &str, printed: &str| Step {
            kind,
            line,
            body: body.into(),
            printed: printed.into(),
        };
        assert_eq!(
            steps(text).unwrap(),
            [step("starts", 8, "serve\n", "listening\n"), step("runs", 17, "one\ntwo\n", "")]
        );
        assert!(steps("<!-- runs -->\ntext\n").is_err());
    }

    #[test]
    fn ports_in_commands_are_replaced_by_free_ports() {
        let shell = Shell::new().unwrap();
        let here = Here(vec![(":8080".to_owned(), ":4711".to_owned())]);
        let run = |body: &str, printed: &str| {
            here.run(&shell, &Step { body: body.to_owned(), printed: printed.to_owned(), ..Step::default() })
        };
        run("echo at :8080; echo in 5 ms", "at :8080\nin … ms\n").unwrap();
        assert_eq!(run("echo a", "b").unwrap_err().to_string(), "the commands printed \"a\\n\", not \"b\"");
        assert!(run("echo a; exit 3", "").is_err());
        assert!(here.start(&shell, &Step { body: "false :8080".to_owned(), ..Step::default() }).is_err());
    }

    #[test]
    fn an_ellipsis_matches_any_text() {
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
