//! Runs the commands in docs/from-c.md and README.md: installs into an empty folder, and compiles the examples with
//! pkg-config and with CMake.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Background, run};

/// Returns the code block of the README that follows a comment with this name.
fn block(name: &str) -> String {
    let readme = fs::read_to_string(crate::common::folder().join("README.md")).expect("a README");
    let marked =
        readme.split_once(&format!("<!-- {name} -->\n```")).and_then(|(_, rest)| rest.split_once('\n'));
    let code = marked.and_then(|(_, rest)| rest.split_once("```"));
    code.unwrap_or_else(|| panic!("the README has no block after <!-- {name} -->")).0.to_owned()
}

/// Runs commands of a document in `folder`, with `home` as the home folder.
fn shell(script: &str, folder: &Path, home: &Path) -> String {
    let mut command = Command::new("sh");
    command.args(["-e", "-c", script]).current_dir(folder).env("HOME", home);
    // By default, Rust's tools are in the real home folder.
    let real = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    for (variable, name) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        command.env(variable, std::env::var_os(variable).map_or_else(|| real.join(name), PathBuf::from));
    }
    run(&mut command)
}

/// Runs the echo server and the client against each other.
fn echo(server: &Path, client: &Path, prefix: &Path) {
    let libraries = prefix.join("lib");
    let mut command = Command::new(server);
    let (_server, port) =
        Background::server(command.args(["127.0.0.1:0", "1"]).env("LD_LIBRARY_PATH", &libraries));
    let mut command = Command::new(client);
    command.args([&format!("127.0.0.1:{port}"), "100"]).env("LD_LIBRARY_PATH", &libraries);
    assert_eq!(run(&mut command), "echoed 100, wrong 0\n");
}

/// Configures a build for Windows without compiling. Returns the generated CMake files that name the libraries.
fn for_windows(option: &str) -> String {
    let build = crate::common::scratch(&format!("windows{option}"));
    fs::remove_dir_all(&build).expect("an old build folder");
    let mut command = Command::new("cmake");
    command.arg("-S").arg(crate::common::folder()).arg("-B").arg(&build).arg(option);
    command.args(["-DCMAKE_SYSTEM_NAME=Windows", "-DCMAKE_C_COMPILER=x86_64-w64-mingw32-gcc"]);
    command.args(["-DCMAKE_INSTALL_LIBDIR=lib", "-DRAKWIRE_CARGO_TARGET=x86_64-pc-windows-gnu"]);
    run(&mut command);
    ["rakwireConfig.cmake", "cmake_install.cmake"]
        .map(|file| fs::read_to_string(build.join(file)).expect("a generated file"))
        .concat()
}

/// Linux has no Microsoft compiler. The variable `MSVC` alone selects the file names that this compiler needs.
#[test]
fn the_package_for_windows_names_the_files_that_cargo_writes() {
    let [gnu, msvc] = ["-DMSVC=", "-DMSVC=1"].map(for_windows);
    for (text, import, archive) in
        [(gnu, "librakwire_c.dll.a", "librakwire_c.a"), (msvc, "rakwire_c.dll.lib", "rakwire_c.lib")]
    {
        let release = "/cargo/x86_64-pc-windows-gnu/release";
        for file in ["rakwire_c.dll", import, archive] {
            assert!(text.contains(&format!("{release}/{file}\"")), "{file} is not installed:\n{text}");
        }
        assert!(text.contains("/bin/rakwire_c.dll\""), "{text}");
        assert!(
            text.contains(&format!("IMPORTED_IMPLIB \"${{PACKAGE_PREFIX_DIR}}/lib/{import}\"")),
            "{text}"
        );
        assert!(text.contains(&format!("\"${{PACKAGE_PREFIX_DIR}}/lib/{archive}\"")), "{text}");
    }
}

#[test]
fn the_commands_of_the_documents_install_the_library_and_compile_the_examples() {
    let to = crate::common::scratch("install");
    let (home, user) = (to.join("home"), to.join("user"));
    let prefix = home.join(".local");
    let _ = fs::remove_dir_all(&to);
    fs::create_dir_all(&user).expect("a folder");
    let capi = crate::common::folder();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
    run(Command::new(capi.join("package")).arg(&to).env("CARGO_TARGET_DIR", target));

    let chapter = fs::read_to_string(capi.join("../docs/from-c.md")).expect("a chapter");
    let [install, by_pkg_config] = ["install", "pkg-config"].map(block);
    for commands in [&install, &by_pkg_config] {
        assert!(
            chapter.contains(&format!("```sh\n{commands}```")),
            "docs/from-c.md does not contain: {commands}"
        );
        assert_eq!(commands.lines().count(), 2);
    }
    shell(&install, &to, &home);

    for example in ["echo.c", "server.c"] {
        fs::copy(prefix.join("share/doc/rakwire").join(example), user.join(example)).expect("an example");
    }
    shell(&by_pkg_config, &user, &home);
    shell(&by_pkg_config.replace("echo", "server"), &user, &home);
    echo(&user.join("server"), &user.join("echo"), &prefix);

    fs::write(user.join("CMakeLists.txt"), block("cmake")).expect("a project");
    let by_cmake =
        format!("cmake -S . -B built -DCMAKE_PREFIX_PATH={} && cmake --build built", prefix.display());
    shell(&by_cmake, &user, &home);
    echo(&user.join("server"), &user.join("built/echo"), &prefix);
    let with_static = block("cmake").replace("rakwire::rakwire", "rakwire::static");
    fs::write(user.join("CMakeLists.txt"), with_static).expect("a project");
    shell(&by_cmake, &user, &home);
    let libraries = run(Command::new("ldd").arg(user.join("built/echo")));
    assert!(!libraries.contains("rakwire"), "the program is linked with the shared library: {libraries}");
    echo(&user.join("server"), &user.join("built/echo"), &prefix);
}
