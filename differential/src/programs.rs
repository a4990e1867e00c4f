//! Compiles the driver twice: for the original, and for rakwire.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pairing::Library;

/// The two programs compiled from `driver.cpp`.
#[derive(Clone, Debug)]
pub struct Programs {
    original: PathBuf,
    rakwire: PathBuf,
}

/// Object files in the build folder of the original that belong to other programs, not to its library.
const OTHER_PROGRAMS: [&str; 7] =
    ["peer.o", "tcp.o", "plugins.o", "PacketizedTCP.o", "ConnectionGraph2.o", "ReadyEvent.o", "RPC4Plugin.o"];

/// The system libraries that rakwire's static library needs.
const SYSTEM_LIBRARIES: [&str; 4] = ["-lpthread", "-ldl", "-lm", "-lgcc_s"];

impl Programs {
    /// Returns the program for a library.
    #[must_use]
    pub fn of(&self, library: Library) -> &Path {
        match library {
            Library::Original => &self.original,
            Library::Rakwire => &self.rakwire,
        }
    }

    /// Compiles both programs into a folder.
    pub fn build(into: &Path) -> io::Result<Self> {
        fs::create_dir_all(into)?;
        let (original, rakwire) = (into.join("driver-original"), into.join("driver-rakwire"));
        compile_original(&original)?;
        compile_rakwire(&rakwire)?;
        Ok(Self { original, rakwire })
    }

    /// Replaces the program of the original.
    #[must_use]
    pub fn with_original(self, original: PathBuf) -> Self {
        Self { original, ..self }
    }

    /// Replaces the program of rakwire.
    #[must_use]
    pub fn with_rakwire(self, rakwire: PathBuf) -> Self {
        Self { rakwire, ..self }
    }
}

fn compile_original(to: &Path) -> io::Result<()> {
    let programs = std::env::var_os("INTEROP_BIN_DIR").map(PathBuf::from);
    let folder = programs.unwrap_or_else(|| here().join("../target/interop/bin")).join("../cpp");
    let sources = folder.join("fetched/package/raknet/Source");
    if !sources.join("RakPeerInterface.h").exists() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the original is missing: run `interop/setup.sh cpp`, or set INTEROP_BIN_DIR to its programs",
        ));
    }
    let mut objects = files(&folder.join("build"), ".o")?;
    objects.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        !name.starts_with("secure-") && !OTHER_PROGRAMS.contains(&name)
    });
    let mut command = Command::new("g++");
    command.args(["-O1", "-w", "-pthread", "-std=c++17", "-DORIGINAL", "-I"]).arg(sources);
    command.arg("-o").arg(to).arg(here().join("driver.cpp")).args(objects);
    run(&mut command)
}

fn compile_rakwire(to: &Path) -> io::Result<()> {
    let mut command = Command::new("g++");
    command.args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-std=c++17", "-I"]);
    command.arg(here().join("../capi/include")).arg("-o").arg(to).arg(here().join("driver.cpp"));
    command.arg(static_library()?).args(SYSTEM_LIBRARIES);
    run(&mut command)
}

/// Returns the folder of this package.
fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the newest static library of rakwire in the folder of this program, where cargo builds both.
fn static_library() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let mut found = Vec::new();
    for folder in program.ancestors().skip(1).take(2) {
        found.extend(files(&folder.join("deps"), ".a")?);
        found.extend(files(folder, ".a")?);
    }
    found.retain(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("librakwire_c"))
    });
    let newest = found.into_iter().max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok());
    newest.ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, "librakwire_c.a is missing; run `cargo build`")
    })
}

fn files(folder: &Path, end: &str) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => {
            let paths = entries.flatten().map(|entry| entry.path());
            Ok(paths.filter(|path| path.to_string_lossy().ends_with(end)).collect())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{command:?} ended with {}:\n{text}", output.status)))
}
