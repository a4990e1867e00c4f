//! Copies memory.x to a folder that the linker searches.

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    fs::copy("memory.x", out.join("memory.x"))?;
    println!("cargo:rustc-link-discovery={}", out.display());
    println!("cargo:rerun-if-changed=memory.x");
    Ok(())
}
