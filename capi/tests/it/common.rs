//! Helpers to build the libraries, and to compile and run the programs of the tests.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Returns the folder of this package.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Builds the libraries with the features of this test, and returns their folder. Cargo does not build them itself,
/// because no Rust test can link them.
fn libraries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
        let features = [("secure", cfg!(feature = "secure")), ("sim", cfg!(feature = "sim"))];
        let features = features.map(|(name, is_on)| if is_on { name } else { "" }).join(" ");
        let mut command = Command::new(env!("CARGO"));
        command.args(["build", "--quiet", "--locked", "--lib", "--no-default-features", "--features"]);
        command.arg(features).arg("--manifest-path").arg(folder().join("Cargo.toml"));
        run(command.arg("--target-dir").arg(target));
        target.join("debug")
    })
}

/// Returns the shared library.
pub(crate) fn shared_library() -> PathBuf {
    libraries().join("librakwire_c.so")
}

/// Returns the static library.
pub(crate) fn static_library() -> PathBuf {
    libraries().join("librakwire_c.a")
}

/// The system libraries that a program must link with the static library.
pub(crate) const SYSTEM_LIBRARIES: [&str; 4] = ["-lpthread", "-ldl", "-lm", "-lgcc_s"];

/// Creates a folder for the programs of one test.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("a folder for programs");
    folder
}

/// Runs a command, which must succeed, and returns its output.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?} ended with {}:\n{text}", output.status);
    text
}

/// The library and the checks with which a program is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// With the shared library, like most programs.
    Shared,
    /// With the static library, the address sanitizer and the undefined behaviour sanitizer.
    Sanitized,
    /// With the static library, for valgrind.
    Static,
}

/// Compiles a program of this package, with all warnings as errors.
pub(crate) fn compile(compiler: &str, standard: &str, source: &str, build: Build, to: &Path) -> PathBuf {
    let program = to.join(format!("{}-{standard}-{build:?}", source.replace(['/', '.'], "-")));
    let mut command = Command::new(compiler);
    command.args(["-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wconversion", "-g", "-O1"]);
    command.arg(format!("-std={standard}")).arg("-I").arg(folder().join("include"));
    command.arg("-o").arg(&program).arg(folder().join(source));
    match build {
        Build::Shared => {
            let library = to.join(format!("librakwire_c.so.{}", env!("CARGO_PKG_VERSION_MAJOR")));
            fs::copy(shared_library(), &library).expect("a copy of the library");
            command.arg(&library).arg(format!("-Wl,-rpath,{}", to.display()));
        }
        Build::Sanitized => {
            command.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
            command.arg(static_library()).args(SYSTEM_LIBRARIES);
        }
        Build::Static => {
            command.arg(static_library()).args(SYSTEM_LIBRARIES);
        }
    }
    run(&mut command);
    program
}

/// A program in the background, which is killed at the end of the test.
pub(crate) struct Background(Child);

impl Background {
    /// Starts a server that prints `ready PORT`. Returns it with its port.
    pub(crate) fn server(command: &mut Command) -> (Self, u16) {
        let mut server = Self::start(command);
        let line = server.line();
        let port = line.strip_prefix("ready ").and_then(|port| port.trim().parse().ok());
        let port = port.unwrap_or_else(|| panic!("{command:?} printed {line:?} instead of \"ready PORT\""));
        (server, port)
    }

    /// Starts a program.
    pub(crate) fn start(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        Self(child.unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}")))
    }

    /// Waits for the next line of output, and returns it without its end.
    pub(crate) fn line(&mut self) -> String {
        let output = self.0.stdout.as_mut().expect("standard output");
        let mut line = String::new();
        let mut byte = [0];
        while output.read(&mut byte).expect("output of the program") == 1 && byte[0] != b'\n' {
            line.push(byte[0].into());
        }
        line
    }

    /// Returns true while the program runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.0.try_wait().expect("a state of the program").is_none()
    }

    /// Closes the standard input of a program, waits until it exits, and returns the rest of its output.
    pub(crate) fn finish(mut self) -> String {
        drop(self.0.stdin.take());
        let start = Instant::now();
        while self.is_running() {
            assert!(
                start.elapsed() < Duration::from_secs(30),
                "the program did not exit within 30 s after its input was closed"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut rest = String::new();
        if let Some(mut output) = self.0.stdout.take() {
            output.read_to_string(&mut rest).expect("output of the program");
        }
        let status = self.0.wait().expect("a status");
        assert!(status.success(), "the program ended with {status}: {rest}");
        rest
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // After `finish`, the program has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
