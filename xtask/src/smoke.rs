//! The smoke test of the demo: headless Chromium drives the page through one connect-send-echo.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process::{Output, describe};
use crate::shell::Shell;

const DRIVER: &str = "web/tests/smoke.mjs";
const FOLDER: &str = "target/demo";
const LIMIT: Duration = Duration::from_secs(180);

/// Drives the page at this address, leaves a screenshot, and gives back the driver's line of JSON.
pub(crate) fn drive(shell: &Shell, url: &str) -> Result<String> {
    let folder = shell.path(FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("{FOLDER} cannot be made"))?;
    let screenshot = folder.join("smoke.png");
    if screenshot.exists() {
        fs::remove_file(&screenshot).context("the last screenshot cannot be removed")?;
    }
    let picture = screenshot.to_str().context("the path of this repository is not valid UTF-8")?;
    let output = shell.cmd("node", [DRIVER, url, picture]).limit(LIMIT).output()?;
    let line = outcome(&output)?;
    if fs::metadata(&screenshot).map_or(0, |file| file.len()) == 0 {
        bail!("{DRIVER} left no screenshot");
    }
    eprintln!("screenshot: {FOLDER}/smoke.png");
    Ok(line)
}

/// The line of JSON, if both it and the exit code say that all went well.
fn outcome(output: &Output) -> Result<String> {
    let line = output.stdout.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if !output.status.success() {
        bail!("the page failed in the browser ({}): {line}", describe(output.status));
    }
    check_line(line).with_context(|| format!("{DRIVER} printed {line:?}"))?;
    Ok(line.to_owned())
}

/// Checks `{"connected":true,"echoed":N,"rtt_ms_median":…}`.
fn check_line(line: &str) -> Result<()> {
    let value: Value = serde_json::from_str(line).context("not a line of JSON")?;
    if value.get("connected") != Some(&Value::Bool(true)) {
        bail!("the page did not connect");
    }
    if value.get("echoed").and_then(Value::as_u64).unwrap_or(0) == 0 {
        bail!("nothing was echoed");
    }
    match value.get("rtt_ms_median").and_then(Value::as_f64) {
        Some(median) if median >= 0.0 => Ok(()),
        Some(median) => bail!("a round trip of {median} ms cannot be"),
        None => bail!("no round trip was measured"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Cmd;

    #[test]
    fn a_good_line_passes() {
        check_line(r#"{"connected":true,"echoed":1,"rtt_ms_median":0.8}"#).unwrap();
        check_line(r#"{"connected":true,"echoed":12,"rtt_ms_median":3,"more":"is welcome"}"#).unwrap();
    }

    #[test]
    fn a_bad_line_fails_with_its_reason() {
        let reason = |line| check_line(line).unwrap_err().to_string();
        assert_eq!(reason("connected"), "not a line of JSON");
        assert_eq!(reason("[]"), "the page did not connect");
        assert_eq!(reason(r#"{"connected":false,"echoed":1,"rtt_ms_median":1}"#), "the page did not connect");
        assert_eq!(reason(r#"{"connected":true,"echoed":0,"rtt_ms_median":1}"#), "nothing was echoed");
        assert_eq!(
            reason(r#"{"connected":true,"echoed":1,"rtt_ms_median":null}"#),
            "no round trip was measured"
        );
        assert_eq!(
            reason(r#"{"connected":true,"echoed":1,"rtt_ms_median":-1}"#),
            "a round trip of -1 ms cannot be"
        );
    }

    #[test]
    fn the_last_line_counts_and_so_does_the_exit_code() {
        let line = r#"{"connected":true,"echoed":1,"rtt_ms_median":1}"#;
        let good = Cmd::new("sh", ["-c", &format!("echo talk; echo '{line}'; echo")]).output().unwrap();
        assert_eq!(outcome(&good).unwrap(), line);
        let failed = Cmd::new("sh", ["-c", &format!("echo '{line}'; exit 1")]).output().unwrap();
        assert!(outcome(&failed).unwrap_err().to_string().contains("exit code 1"));
    }
}
