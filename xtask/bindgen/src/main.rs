//! `wasm-bindgen`, as far as this repository and wasm-pack use it: JavaScript and types for a WebAssembly that rustc made.
//!
//! It is the library behind the published tool and leaves the same bytes, without what that one brings for tests in browsers:
//! an HTTP server, an HTTP client and TLS. It is linked to under the name of the other one, which rustc reserves for the library. Cargo lets no other version than that of the crate `wasm-bindgen` into the lock
//! file, as both stand on `wasm-bindgen-shared`, of which there can be only one.

#![forbid(unsafe_code)]

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use wasm_bindgen_cli_support::Bindgen;

/// Make JavaScript and types for a WebAssembly that uses the crate `wasm-bindgen`.
#[derive(Debug, Parser)]
#[command(name = "wasm-bindgen", version = wasm_bindgen_shared::version())]
struct Arguments {
    /// The WebAssembly that rustc made
    input: PathBuf,
    /// Where the JavaScript runs
    #[arg(long, value_enum, default_value_t = Target::Bundler)]
    target: Target,
    /// Where the files go
    #[arg(long, value_name = "DIR")]
    out_dir: PathBuf,
    /// The beginning of their names (default: that of the input)
    #[arg(long, value_name = "NAME")]
    out_name: Option<String>,
    /// Write no types
    #[arg(long, conflicts_with = "typescript")]
    no_typescript: bool,
    /// Write types, as is the default; for wasm-pack
    #[arg(long)]
    typescript: bool,
    /// Check more in the JavaScript
    #[arg(long)]
    debug: bool,
    /// Keep the debug sections
    #[arg(long)]
    keep_debug: bool,
    /// Keep the names of functions as rustc mangles them
    #[arg(long)]
    no_demangle: bool,
    /// Leave out where the JavaScript loads the WebAssembly from when it is not told
    #[arg(long)]
    omit_default_module_path: bool,
    /// Write linked modules into files of their own
    #[arg(long)]
    split_linked_modules: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Target {
    Bundler,
    Web,
    Nodejs,
    NoModules,
    Deno,
}

fn main() -> Result<()> {
    bindgen(&Arguments::parse())
}

fn bindgen(arguments: &Arguments) -> Result<()> {
    let mut bindgen = Bindgen::new();
    match arguments.target {
        Target::Bundler => bindgen.bundler(true)?,
        Target::Web => bindgen.web(true)?,
        Target::Nodejs => bindgen.nodejs(true)?,
        Target::NoModules => bindgen.no_modules(true)?,
        Target::Deno => bindgen.deno(true)?,
    };
    bindgen
        .input_path(&arguments.input)
        .typescript(!arguments.no_typescript)
        .debug(arguments.debug)
        .keep_debug(arguments.keep_debug)
        .demangle(!arguments.no_demangle)
        .omit_default_module_path(arguments.omit_default_module_path)
        .split_linked_modules(arguments.split_linked_modules);
    if let Some(name) = &arguments.out_name {
        bindgen.out_name(name);
    }
    bindgen.generate(&arguments.out_dir)
}
