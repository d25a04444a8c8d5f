//! Microsoft's clients, and how they are run.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::targets;

/// Where the clients are, and the .NET that runs them.
#[derive(Clone)]
pub(crate) struct Clients {
    folder: PathBuf,
    dotnet: PathBuf,
}

impl Clients {
    /// None where they or the .NET are not there, which is then said.
    pub(crate) fn find() -> Option<Self> {
        static FOUND: OnceLock<Option<Clients>> = OnceLock::new();
        FOUND.get_or_init(Self::unpack).clone()
    }

    fn unpack() -> Option<Self> {
        let Some(shared) = std::env::var_os("DIPC_SHARED").map(PathBuf::from) else {
            println!("not run: DIPC_SHARED does not name the folder of the official clients");
            return None;
        };
        let dotnet = targets::installed("9.0.1", "dotnet")?;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("official-clients");
        for name in ["ncc", "dotnet-trace", "te"] {
            let packed = fs::read(shared.join("peers").join(format!("{name}.tar.xz"))).unwrap();
            if !folder.join(name).exists() {
                untar(&unpacked(&packed), &folder, name);
            }
        }
        Some(Self { folder, dotnet })
    }

    /// A client's standard output; it must succeed.
    fn run(&self, name: &str, tmpdir: &Path, arguments: &[&str]) -> (String, String) {
        let output = Command::new(&self.dotnet)
            .arg(self.folder.join(name).join(format!("{name}.dll")))
            .args(arguments)
            .env("TMPDIR", tmpdir)
            .env("DOTNET_ROOT", self.dotnet.parent().unwrap())
            .env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
            .env("DOTNET_CLI_TELEMETRY_OPTOUT", "1")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{name} {arguments:?}: {}\n{out}{err}", output.status);
        (out, err)
    }

    /// Every command of the library once: a line each.
    pub(crate) fn every_command(&self, pid: u32, folder: &Path) -> String {
        self.run("ncc", folder, &["all", &pid.to_string(), folder.to_str().unwrap()]).0
    }

    /// Connects so often through a port of the library: a line each.
    pub(crate) fn port(&self, path: &Path, count: u32) -> String {
        let folder = path.parent().unwrap();
        self.run("ncc", folder, &["port", path.to_str().unwrap(), &count.to_string()]).0
    }

    pub(crate) fn dotnet_trace(&self, tmpdir: &Path, arguments: &[&str]) -> String {
        self.run("dotnet-trace", tmpdir, arguments).0
    }

    /// Every event that the library TraceEvent finds in a recording, a line each.
    pub(crate) fn dump(&self, recording: &Path) -> String {
        let folder = recording.parent().unwrap();
        let lines = folder.join("dump.jsonl");
        self.run("te", folder, &["dump", recording.to_str().unwrap(), lines.to_str().unwrap()]);
        fs::read_to_string(&lines).unwrap()
    }

    /// How many events the library TraceEvent finds in a recording, and how many lost ones.
    pub(crate) fn count(&self, recording: &Path) -> (u64, u64) {
        let folder = recording.parent().unwrap();
        let (_, told) = self.run("te", folder, &["count", recording.to_str().unwrap()]);
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        (told["events"].as_u64().unwrap(), told["lost"].as_u64().unwrap())
    }
}

pub(crate) fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    lzma_rust2::XzReader::new(packed, true).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Unpacks the folder `name` into `folder`, all or nothing, also where another run does the same.
fn untar(archive: &[u8], folder: &Path, name: &str) {
    fs::create_dir_all(folder).unwrap();
    let aside = tempfile::tempdir_in(folder).unwrap();
    let mut tar = Command::new("tar")
        .args(["--no-same-owner", "-xf", "-", "-C"])
        .arg(aside.path())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    tar.stdin.take().unwrap().write_all(archive).unwrap();
    assert!(tar.wait().unwrap().success());
    // If it fails, somebody else was first.
    let _ = fs::rename(aside.path().join(name), folder.join(name));
    assert!(folder.join(name).exists());
}
