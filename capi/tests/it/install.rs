//! Runs the commands of the README: installs into an empty folder, and compiles the examples with pkg-config and with
//! CMake.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Background, run};

/// Returns the code block of the README that follows a comment with this name.
fn block(name: &str) -> String {
    let readme = fs::read_to_string(crate::common::folder().join("README.md")).expect("a README");
    let marked =
        readme.split_once(&format!("<!-- {name} -->\n```")).and_then(|(_, rest)| rest.split_once('\n'));
    let code = marked.and_then(|(_, rest)| rest.split_once("```"));
    code.unwrap_or_else(|| panic!("no block {name} in the README")).0.to_owned()
}

fn shell(script: &str, folder: &Path, prefix: &Path) -> String {
    let mut command = Command::new("sh");
    command.args(["-e", "-c", script]).current_dir(folder);
    command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).env("LD_LIBRARY_PATH", prefix.join("lib"));
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

#[test]
fn the_commands_of_the_readme_install_the_library_and_compile_the_examples() {
    let to = crate::common::scratch("install");
    let (build, prefix, user) = (to.join("build"), to.join("prefix"), to.join("user"));
    // The build folder is reused, but an earlier installation is removed.
    let _ = fs::remove_dir_all(&prefix);
    let _ = fs::remove_dir_all(&user);
    fs::create_dir_all(&user).expect("a folder");

    // Runs in the root folder of the repository, with scratch folders instead of those in the README.
    let install = block("install")
        .replace("-B build", &format!("-DCMAKE_INSTALL_LIBDIR=lib -B {}", build.display()))
        .replace("--build build", &format!("--build {}", build.display()))
        .replace("--install build", &format!("--install {}", build.display()))
        .replace("/usr/local", &prefix.display().to_string());
    let repository = crate::common::folder().join("..");
    shell(&install, &repository, &prefix);

    for example in ["echo.c", "server.c"] {
        fs::copy(crate::common::folder().join("examples").join(example), user.join(example))
            .expect("an example");
    }
    let by_pkg_config = block("pkg-config");
    shell(&by_pkg_config, &user, &prefix);
    shell(&by_pkg_config.replace("echo", "server"), &user, &prefix);
    echo(&user.join("server"), &user.join("echo"), &prefix);

    fs::write(user.join("CMakeLists.txt"), block("cmake")).expect("a project");
    let by_cmake =
        format!("cmake -S . -B built -DCMAKE_PREFIX_PATH={} && cmake --build built", prefix.display());
    shell(&by_cmake, &user, &prefix);
    echo(&user.join("server"), &user.join("built/echo"), &prefix);
    let with_static = block("cmake").replace("rakwire::rakwire", "rakwire::static");
    fs::write(user.join("CMakeLists.txt"), with_static).expect("a project");
    shell(&by_cmake, &user, &prefix);
    let libraries = run(Command::new("ldd").arg(user.join("built/echo")));
    assert!(!libraries.contains("rakwire"), "the static library is in the program: {libraries}");
    echo(&user.join("server"), &user.join("built/echo"), &prefix);
}
