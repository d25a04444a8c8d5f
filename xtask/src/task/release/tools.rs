//! The tools that a release was built with: the same tools give the same bytes.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::Build;
use super::programs::Platform;
use crate::task::checksum::sha256;
use crate::task::workspace::command_line;

/// Returns the versions of all tools, by platform.
pub(super) fn table(build: &Build<'_>, platforms: &[Platform]) -> Result<String> {
    let release = build.release;
    let mut table = format!(
        "dipc {}, {}\ncommit {}, SOURCE_DATE_EPOCH={}\n",
        release.version, release.repository, release.commit, release.time
    );
    if let Ok(system) = fs::read_to_string("/etc/os-release") {
        let name = system.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
        writeln!(table, "built on {}", name.unwrap_or("Linux").trim_matches('"'))?;
    }
    writeln!(table, "{}", first_line(Command::new("dpkg-deb").arg("--version"))?)?;
    writeln!(table, "{}", first_line(Command::new("ldd").arg("--version"))?)?;
    for platform in platforms {
        writeln!(table, "\n{} ({}):", platform.name, platform.target)?;
        for tool in ["gcc", "ld", "strip"] {
            writeln!(table, "{}", first_line(platform.tool(tool).arg("--version"))?)?;
        }
        // Programs are static: this is in them. Its version is not in its name.
        let library = if platform.is_windows() { "libmingw32.a" } else { "libc.a" };
        let path = first_line(platform.tool("gcc").arg(format!("-print-file-name={library}")))?;
        writeln!(table, "{library} {}", sha256(&PathBuf::from(path))?)?;
        table.push_str(&print(platform.toolchain.rustc().arg("-vV"))?);
    }
    Ok(table)
}

fn print(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| command_line(command))?;
    ensure!(output.status.success(), "{}: {}", command_line(command), output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn first_line(command: &mut Command) -> Result<String> {
    let text = print(command)?;
    Ok(text.lines().next().with_context(|| format!("{} prints nothing", command_line(command)))?.to_owned())
}

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod tests {
    use super::super::Release;
    use super::*;

    #[test]
    fn compiler_linker_and_c_library_are_named() {
        let release = Release {
            version: "9.8.7".to_owned(),
            repository: "https://example.org/dipc".to_owned(),
            commit: "abcdef".to_owned(),
            time: 12,
        };
        let folder = PathBuf::new();
        let build =
            Build { release: &release, sources: folder.clone(), target: folder.clone(), dist: folder };
        let table = table(&build, &[Platform::native()]).unwrap();
        assert!(
            table.starts_with("dipc 9.8.7, https://example.org/dipc\ncommit abcdef, SOURCE_DATE_EPOCH=12\n")
        );
        for start in
            ["ldd ", "x86_64-linux-gnu-gcc ", "GNU ld ", "GNU strip ", "rustc ", "LLVM version: ", "libc.a "]
        {
            assert_eq!(table.lines().filter(|line| line.starts_with(start)).count(), 1, "{start}: {table}");
        }
        let library = table.lines().find_map(|line| line.strip_prefix("libc.a ")).unwrap();
        assert!(library.len() == 64 && library.chars().all(|it| it.is_ascii_hexdigit()), "{library}");
    }
}
