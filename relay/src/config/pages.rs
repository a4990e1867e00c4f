//! The directory of `--serve`.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::ConfigError;

/// Checks that a directory has a page that a browser can show.
pub(super) fn check_pages(directory: &Path) -> Result<(), ConfigError> {
    if !directory.is_dir() {
        return Err(ConfigError::ServeDirectory(absolute(directory)));
    }
    let index = fs::read(directory.join("index.html"));
    let index = index.map_err(|source| ConfigError::ServeIndex { directory: absolute(directory), source })?;
    if loads_typescript(&String::from_utf8_lossy(&index)) {
        return Err(ConfigError::ServeSources(absolute(directory)));
    }
    Ok(())
}

/// The directory as people can find it, or as it was given when the system cannot say.
pub(crate) fn absolute(directory: &Path) -> PathBuf {
    std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned())
}

/// Whether a page has a script in TypeScript, as the sources of a page have before they are built.
fn loads_typescript(page: &str) -> bool {
    let scripts = page.split("<script").skip(1);
    let mut tags = scripts.filter_map(|script| script.split('>').next());
    tags.any(|tag| [".ts\"", ".ts'", ".tsx\"", ".tsx'"].iter().any(|end| tag.contains(end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sources_of_a_page_are_recognised() {
        for page in [
            r#"<script type="module" src="/src/main.ts"></script>"#,
            "<html><script>let a;</script>\n<script\n  src='./main.tsx'\n></script>",
        ] {
            assert!(loads_typescript(page), "{page}");
        }
        for page in [
            "",
            r#"<script type="module" src="/assets/main-ts.js"></script> <a href="main.ts">source</a>"#,
            r#"<script>load("main.ts")</script>"#,
        ] {
            assert!(!loads_typescript(page), "{page}");
        }
    }
}
