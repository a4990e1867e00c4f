//! The files of reports.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use humantime::format_rfc3339_seconds;
use rakwire_udp::private_file;

use super::report::Report;

const UNSENT: &str = ".crash.txt";
const SENT: &str = ".sent.txt";

pub(super) struct Folder {
    path: PathBuf,
    program: String,
}

impl Folder {
    /// Makes the folder if need be, and sees whether it takes files.
    pub(super) fn open(path: &Path, program: &str) -> io::Result<Self> {
        let fits = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
        if program.is_empty() || !program.chars().all(fits) {
            let reason = format!("the program {program:?} cannot begin a file; use letters, digits, - and _");
            return Err(io::Error::new(ErrorKind::InvalidInput, reason));
        }
        fs::create_dir_all(path)?;
        let folder = Self { path: path.to_owned(), program: program.to_owned() };
        let probe = folder.path.join(format!("{program}-{}.probe", std::process::id()));
        private_file::create_new(&probe)?;
        fs::remove_file(probe)?;
        Ok(folder)
    }

    pub(super) fn write(&self, number: u32, report: &Report<'_>) -> io::Result<()> {
        // Windows allows no colon in a name.
        let time = format_rfc3339_seconds(report.at()).to_string().replace(':', "");
        let name = format!("{}-{time}-{}-{number:02}{UNSENT}", self.program, std::process::id());
        let mut file = private_file::create_new(self.path.join(name))?;
        file.write_all(report.to_string().as_bytes())?;
        file.sync_all()
    }

    /// By their names, which begin with the time.
    pub(super) fn unsent(&self) -> io::Result<Vec<PathBuf>> {
        let begin = format!("{}-", self.program);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            if name.to_str().is_some_and(|name| name.starts_with(&begin) && name.ends_with(UNSENT)) {
                found.push(self.path.join(name));
            }
        }
        found.sort();
        Ok(found)
    }

    #[expect(clippy::unused_self, reason = "a report of this folder")]
    pub(super) fn mark_as_sent(&self, report: &Path) -> io::Result<()> {
        let name =
            report.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(UNSENT));
        let name = name.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "not an unsent report"))?;
        fs::rename(report, report.with_file_name(format!("{name}{SENT}")))
    }
}
