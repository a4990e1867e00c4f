//! `cmake --install` into an empty folder, and programs that find the library there by pkg-config and by CMake.

use std::fs;
use std::process::Command;

use crate::common::run;

/// A program of another project.
const PROGRAM: &str =
    "#include <rakwire.h>\n#include <stdio.h>\nint main(void) { puts(rakwire_version()); return 0; }\n";

const PROJECT: &str = "cmake_minimum_required(VERSION 3.16)\nproject(user C)\nfind_package(rakwire 0.1 REQUIRED)\n\
    add_executable(shared main.c)\ntarget_link_libraries(shared rakwire::rakwire)\n\
    add_executable(static main.c)\ntarget_link_libraries(static rakwire::static)\n";

#[test]
fn an_installed_library_is_found_by_pkg_config_and_cmake() {
    let to = crate::common::scratch("install");
    let (build, prefix, user) = (to.join("build"), to.join("prefix"), to.join("user"));
    // The build folder is used again; an earlier installation is removed.
    let _ = fs::remove_dir_all(&prefix);
    let _ = fs::remove_dir_all(&user);
    fs::create_dir_all(&user).expect("a folder");
    run(Command::new("cmake")
        .arg("-S")
        .arg(crate::common::folder())
        .arg("-B")
        .arg(&build)
        .arg(format!("-DCMAKE_INSTALL_PREFIX={}", prefix.display()))
        .arg("-DCMAKE_INSTALL_LIBDIR=lib"));
    run(Command::new("cmake").arg("--build").arg(&build));
    run(Command::new("cmake").arg("--install").arg(&build));

    fs::write(user.join("main.c"), PROGRAM).expect("a program");
    fs::write(user.join("CMakeLists.txt"), PROJECT).expect("a project");
    let flags = run(Command::new("pkg-config")
        .args(["--cflags", "--libs", "rakwire"])
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")));
    let program = user.join("by-pkg-config");
    run(Command::new("cc").arg("-o").arg(&program).arg(user.join("main.c")).args(flags.split_whitespace()));
    let version = concat!(env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(run(Command::new(program).env("LD_LIBRARY_PATH", prefix.join("lib"))), version);

    let with_cmake = user.join("build");
    run(Command::new("cmake")
        .arg("-S")
        .arg(&user)
        .arg("-B")
        .arg(&with_cmake)
        .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())));
    run(Command::new("cmake").arg("--build").arg(&with_cmake));
    for program in ["shared", "static"] {
        assert_eq!(run(&mut Command::new(with_cmake.join(program))), version, "{program}");
    }
}
