//! The script `install.sh`, with the checksums of the release's archives in it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::Build;
use super::dist::names;
use crate::task::checksum::sha256;

/// Returns the script for the archives in `dist`.
pub(super) fn script(build: &Build<'_>) -> Result<String> {
    let template = fs::read_to_string(build.sources.join("packaging/install.sh"))?;
    render(&build.release.fill_in(&template), &build.release.version, &build.dist)
}

/// Returns the template with the checksums of the archives in `dist`.
fn render(template: &str, version: &str, dist: &Path) -> Result<String> {
    let mut script = template.to_owned();
    for name in names(dist)?.iter().filter(|name| name.ends_with("-linux.tar.gz")) {
        let (program, system) = name
            .split_once(&format!("-{version}-"))
            .with_context(|| format!("{name}: no version {version}"))?;
        let system = system.trim_end_matches(".tar.gz");
        script = script.replace(&format!("@SHA256 {program} {system}@"), &sha256(&dist.join(name))?);
    }
    Ok(script)
}

/// Installs the release into an empty folder, and checks that a changed archive is refused.
pub(super) fn check(dist: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let from = format!("file://{}", dist.display());
    let output = install(&dist.join("install.sh"), &from, folder.path()).arg("--fleet").output()?;
    let text =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "install.sh --from {from}: {}: {text}", output.status);
    print!("{text}");
    for program in ["dipc", "dipc-fleet"] {
        let version = Command::new(folder.path().join("bin").join(program)).arg("--version").output()?;
        ensure!(version.status.success(), "the installed {program}: {}", version.status);
        print!("{}", String::from_utf8_lossy(&version.stdout));
    }
    Ok(())
}

fn install(script: &Path, from: &str, to: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg(script).args(["--from", from, "--to"]).arg(to);
    command
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::{Output, Stdio};

    use super::super::archive::{Entry, tar_gz};
    use super::*;

    const SYSTEMS: [&str; 2] = ["x86_64-linux", "aarch64-linux"];

    fn pack(dist: &Path, name: &str, entries: Vec<Entry>) {
        fs::write(dist.join(format!("{name}.tar.gz")), tar_gz(name, entries, 0).unwrap()).unwrap();
    }

    /// A folder with a release for every system. The programs are scripts.
    fn release() -> tempfile::TempDir {
        let dist = tempfile::tempdir().unwrap();
        for system in SYSTEMS {
            let entries = vec![
                Entry::program("dipc", *b"#!/bin/sh\necho ran\n"),
                Entry::new("man/dipc.1", *b"page"),
                Entry::new("completions/dipc.bash", *b"bash"),
                Entry::new("completions/dipc.fish", *b"fish"),
                Entry::new("completions/_dipc", *b"zsh"),
            ];
            pack(dist.path(), &format!("dipc-9.8.7-{system}"), entries);
            let fleet = Entry::program("dipc-fleet", *b"#!/bin/sh\necho exported\n");
            pack(dist.path(), &format!("dipc-fleet-9.8.7-{system}"), vec![fleet]);
        }
        let template = include_str!("../../../../packaging/install.sh").replace("@VERSION@", "9.8.7");
        let script = render(&template, "9.8.7", dist.path()).unwrap();
        assert!(!script.contains("@SHA256"));
        fs::write(dist.path().join("install.sh"), script).unwrap();
        dist
    }

    fn install_from(dist: &Path, from: &str, to: &Path) -> Output {
        install(&dist.join("install.sh"), from, to).output().unwrap()
    }

    fn from(folder: &Path) -> String {
        folder.display().to_string()
    }

    fn message(output: &Output) -> String {
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn ran(program: &Path) -> String {
        String::from_utf8(Command::new(program).output().unwrap().stdout).unwrap()
    }

    /// The files below a folder with their modes; folders end in `/`.
    fn tree(folder: &Path) -> Vec<(String, u32)> {
        let mut found = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(parent) = folders.pop() {
            for entry in fs::read_dir(parent).unwrap() {
                let path = entry.unwrap().path();
                let mut name = path.strip_prefix(folder).unwrap().display().to_string();
                let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
                if path.is_dir() {
                    name.push('/');
                    folders.push(path);
                }
                found.push((name, mode));
            }
        }
        found.sort();
        found
    }

    #[test]
    fn the_program_its_pages_and_its_completions_are_installed() {
        let dist = release();
        let to = tempfile::tempdir().unwrap();
        let output = install_from(dist.path(), &from(dist.path()), to.path());
        assert!(output.status.success(), "{output:?}");
        assert_eq!(ran(&to.path().join("bin/dipc")), "ran\n");
        for (file, text) in [
            ("share/man/man1/dipc.1", "page"),
            ("share/bash-completion/completions/dipc", "bash"),
            ("share/fish/vendor_completions.d/dipc.fish", "fish"),
            ("share/zsh/site-functions/_dipc", "zsh"),
        ] {
            assert_eq!(fs::read_to_string(to.path().join(file)).unwrap(), text, "{file}");
        }
    }

    #[test]
    fn the_writer_of_tables_is_installed_on_request() {
        let dist = release();
        let to = tempfile::tempdir().unwrap();
        let mut command = install(&dist.path().join("install.sh"), &from(dist.path()), to.path());
        let output = command.arg("--fleet").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(ran(&to.path().join("bin/dipc")), "ran\n");
        assert_eq!(ran(&to.path().join("bin/dipc-fleet")), "exported\n");
    }

    #[test]
    fn modes_are_the_same_with_every_umask() {
        let dist = release();
        for umask in ["077", "000"] {
            let to = tempfile::tempdir().unwrap();
            let script = format!(
                "umask {umask}; exec sh '{0}/install.sh' --from '{0}' --to '{1}/new'",
                dist.path().display(),
                to.path().display()
            );
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            for (name, mode) in tree(to.path()) {
                let expected = if name.ends_with('/') || name == "new/bin/dipc" { 0o755 } else { 0o644 };
                assert_eq!(mode, expected, "{name}: {mode:o} with umask {umask}");
            }
        }
    }

    #[test]
    fn a_script_that_is_cut_installs_nothing() {
        let dist = release();
        let script = fs::read_to_string(dist.path().join("install.sh")).unwrap();
        let work = tempfile::tempdir().unwrap();
        let home = work.path().join("home");
        fs::create_dir(&home).unwrap();
        // After each line, and after each character of the last one.
        let last = script.trim_end().rfind('\n').unwrap() + 1;
        let lines = script.match_indices('\n').map(|(end, _)| end + 1).filter(|end| *end <= last);
        let cuts: Vec<_> = lines.chain(last + 1..script.trim_end().len()).collect();
        assert!(cuts.len() > 100);
        for end in cuts {
            let mut command = Command::new("sh");
            command.args(["-s", "--", "--from"]).arg(dist.path());
            command.env("HOME", &home).env("TMPDIR", work.path());
            let cut = work.path().join("cut.sh");
            fs::write(&cut, &script[..end]).unwrap();
            command.stdin(fs::File::open(&cut).unwrap()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().unwrap();
            let found: Vec<_> = tree(work.path()).into_iter().map(|(name, _)| name).collect();
            assert_eq!(found, ["cut.sh", "home/"], "cut after {:?}", script[..end].lines().last());
        }
        // Whole, it installs from a pipe.
        let mut command = Command::new("sh");
        command.args(["-s", "--", "--from"]).arg(dist.path()).env("HOME", &home);
        command.stdin(fs::File::open(dist.path().join("install.sh")).unwrap());
        assert!(command.output().unwrap().status.success());
        assert_eq!(ran(&home.join(".local/bin/dipc")), "ran\n");
    }

    #[test]
    fn a_folder_is_required() {
        let dist = release();
        let script = dist.path().join("install.sh");
        let mut command = Command::new("sh");
        let output = command.arg(&script).arg("--from").arg(dist.path()).env_remove("HOME").output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(message(&output).starts_with("error: HOME is not set"), "{}", message(&output));
        let output = install(&script, &from(dist.path()), Path::new("")).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(message(&output), "error: --to needs a value\n");
    }

    #[test]
    fn a_copy_that_fails_leaves_nothing_and_is_named() {
        let dist = release();
        let to = tempfile::tempdir().unwrap();
        // A `cp` that writes a part of the second file, the man page, and then fails as on a full disk.
        let programs = tempfile::tempdir().unwrap();
        let cp = "#!/bin/sh\ncase $2 in\n*/.dipc.1.*) echo part >\"$2\"; echo 'cp: no space left' >&2; exit 1 ;;\nesac\n\
            exec /bin/cp \"$@\"\n";
        fs::write(programs.path().join("cp"), cp).unwrap();
        super::super::debian::set_mode(&programs.path().join("cp"), 0o755).unwrap();
        let path = format!("{}:{}", programs.path().display(), std::env::var("PATH").unwrap());
        let mut command = install(&dist.path().join("install.sh"), &from(dist.path()), to.path());
        let output = command.env("PATH", path).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let text = message(&output);
        assert!(text.starts_with("error: ") && text.contains("no space left"), "{text}");
        let found: Vec<_> = tree(to.path()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(found, ["bin/", "bin/dipc", "share/", "share/man/", "share/man/man1/"]);
    }

    #[test]
    fn a_folder_may_have_spaces_in_its_name() {
        let dist = release();
        let parent = tempfile::tempdir().unwrap();
        let spaced = parent.path().join("a b");
        fs::rename(dist.keep(), &spaced).unwrap();
        for from in [spaced.display().to_string(), format!("file://{}", spaced.display())] {
            let to = parent.path().join("to here");
            let output = install_from(&spaced, &from, &to);
            assert!(output.status.success(), "{output:?}");
            assert_eq!(ran(&to.join("bin/dipc")), "ran\n");
        }
    }

    #[test]
    fn a_changed_archive_is_refused_and_nothing_is_installed() {
        let dist = release();
        for system in SYSTEMS {
            let entries = vec![Entry::program("dipc-fleet", *b"#!/bin/sh\necho changed\n")];
            pack(dist.path(), &format!("dipc-fleet-9.8.7-{system}"), entries);
        }
        let to = tempfile::tempdir().unwrap();
        let mut command = install(&dist.path().join("install.sh"), &from(dist.path()), to.path());
        let output = command.arg("--fleet").output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(message(&output).contains("SHA-256") && message(&output).contains("expected"));
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
        // The other archive is whole.
        assert!(install_from(dist.path(), &from(dist.path()), to.path()).status.success());
    }

    #[test]
    fn a_missing_archive_is_named() {
        let dist = release();
        let output = install_from(dist.path(), "/nonexistent/release", &dist.path().join("to"));
        assert_eq!(output.status.code(), Some(1));
        let message = message(&output);
        assert!(message.starts_with("error: /nonexistent/release/dipc-9.8.7-"), "{message}");
    }
}
