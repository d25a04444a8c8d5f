//! Microsoft's clients, and how they are run.

use std::fs;
use std::io::Write as _;
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
        let shared = shared()?;
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
        self.try_run(name, tmpdir, arguments).unwrap_or_else(|error| panic!("{name} {arguments:?}: {error}"))
    }

    /// A client's standard output and errors; both, with its exit code, where it fails.
    fn try_run(&self, name: &str, tmpdir: &Path, arguments: &[&str]) -> Result<(String, String), String> {
        let output = Command::new(&self.dotnet)
            .arg(self.folder.join(name).join(format!("{name}.dll")))
            .args(arguments)
            .env("TMPDIR", tmpdir)
            .env("DOTNET_ROOT", self.dotnet.parent().unwrap())
            .env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
            .env("DOTNET_CLI_TELEMETRY_OPTOUT", "1")
            // The clients run for half a second, a third of which is the cost of counters in compiled code.
            .env("DOTNET_TieredPGO", "0")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        if output.status.success() { Ok((out, err)) } else { Err(format!("{}\n{out}{err}", output.status)) }
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

    /// The processes that dotnet-trace lists. It fails where one of those that it has found, of another test,
    /// ends before it asks for the name: then it is asked again.
    pub(crate) fn processes(&self, tmpdir: &Path) -> String {
        let ends = |error: &String| error.contains("Process has exited");
        let mut listed = self.try_run("dotnet-trace", tmpdir, &["ps"]);
        for _ in 0..20 {
            if !listed.as_ref().is_err_and(ends) {
                break;
            }
            listed = self.try_run("dotnet-trace", tmpdir, &["ps"]);
        }
        listed.unwrap_or_else(|error| panic!("dotnet-trace ps: {error}")).0
    }

    /// Every event that the library TraceEvent finds in a recording, a line each.
    pub(crate) fn dump(&self, recording: &Path) -> String {
        let folder = recording.parent().unwrap();
        let lines = folder.join("dump.jsonl");
        self.run("te", folder, &["dump", recording.to_str().unwrap(), lines.to_str().unwrap()]);
        fs::read_to_string(&lines).unwrap()
    }

    /// Every event with a stack that the library finds in a recording, with the names of its frames: a line
    /// each.
    pub(crate) fn stacks(&self, recording: &Path) -> String {
        let folder = recording.parent().unwrap();
        let lines = folder.join("stacks.jsonl");
        self.run("te", folder, &["stacks", recording.to_str().unwrap(), lines.to_str().unwrap()]);
        fs::read_to_string(&lines).unwrap()
    }

    /// The events of a recording, and the number of lost events; `None` if the library throws.
    pub(crate) fn try_dump(&self, recording: &Path) -> Option<(String, i64)> {
        let folder = recording.parent().unwrap();
        let lines = folder.join("dump.jsonl");
        let arguments = ["dump", recording.to_str().unwrap(), lines.to_str().unwrap()];
        let (_, told) = self.try_run("te", folder, &arguments).ok()?;
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        Some((fs::read_to_string(&lines).unwrap(), told["lost"].as_i64().unwrap()))
    }

    /// The profile that dotnet-trace makes of a recording, without its name; `None` if it fails.
    pub(crate) fn speedscope(&self, recording: &Path) -> Option<serde_json::Value> {
        let folder = recording.parent().unwrap();
        let output = folder.join("profile");
        let (recording, output) = (recording.to_str().unwrap(), output.to_str().unwrap());
        let arguments = ["convert", recording, "--format", "Speedscope", "-o", output];
        self.try_run("dotnet-trace", folder, &arguments).ok()?;
        let path = folder.join("profile.speedscope.json");
        let mut profile: serde_json::Value = serde_json::from_slice(&fs::read(&path).ok()?).unwrap();
        fs::remove_file(&path).unwrap();
        profile["name"] = serde_json::Value::Null;
        Some(profile)
    }

    /// How many events the library TraceEvent finds in a recording, and how many lost ones.
    pub(crate) fn count(&self, recording: &Path) -> (u64, u64) {
        let folder = recording.parent().unwrap();
        let (_, told) = self.run("te", folder, &["count", recording.to_str().unwrap()]);
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        (told["events"].as_u64().unwrap(), told["lost"].as_u64().unwrap())
    }
}

/// The folder of the clients and of the larger collection; none where no variable names it, which is then
/// said.
pub(crate) fn shared() -> Option<PathBuf> {
    let shared = std::env::var_os("DIPC_SHARED").map(PathBuf::from);
    if shared.is_none() {
        println!("not run: DIPC_SHARED does not name the folder of the official clients");
    }
    shared
}

pub(crate) fn unpacked(packed: &[u8]) -> Vec<u8> {
    testdata::unpack(packed)
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
    // If it fails, another thread was first.
    let _ = fs::rename(aside.path().join(name), folder.join(name));
    assert!(folder.join(name).exists());
}
