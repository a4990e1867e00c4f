//! The parts of `wasm-bindgen` that this repository and wasm-pack use: generates JavaScript and types for a WebAssembly
//! file.
//!
//! It wraps the library behind the published tool and produces the same bytes. It lacks the dependencies of that tool's
//! browser tests: an HTTP server, an HTTP client and TLS. A symbolic link gives it the name of the published tool,
//! because rustc reserves that name for the library. Its version always matches the crate `wasm-bindgen`: both depend
//! on `wasm-bindgen-shared`, of which Cargo allows only one version.

#![forbid(unsafe_code)]

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use wasm_bindgen_cli_support::Bindgen;

/// Generate JavaScript and types for a WebAssembly file that uses the crate `wasm-bindgen`.
#[derive(Debug, Parser)]
#[command(name = "wasm-bindgen", version = wasm_bindgen_shared::version())]
struct Arguments {
    /// The WebAssembly file from rustc
    input: PathBuf,
    /// The environment that runs the JavaScript
    #[arg(long, value_enum, default_value_t = Target::Bundler)]
    target: Target,
    /// The folder of the generated files
    #[arg(long, value_name = "DIR")]
    out_dir: PathBuf,
    /// The prefix of the names of the generated files (default: the name of the input)
    #[arg(long, value_name = "NAME")]
    out_name: Option<String>,
    /// Write no type declarations
    #[arg(long, conflicts_with = "typescript")]
    no_typescript: bool,
    /// Write type declarations; this is the default, and wasm-pack passes the option
    #[arg(long)]
    typescript: bool,
    /// Add debug assertions to the JavaScript
    #[arg(long)]
    debug: bool,
    /// Keep the debug sections
    #[arg(long)]
    keep_debug: bool,
    /// Keep mangled function names
    #[arg(long)]
    no_demangle: bool,
    /// Do not generate a default path from which the JavaScript loads the WebAssembly
    #[arg(long)]
    omit_default_module_path: bool,
    /// Write linked modules to separate files
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
