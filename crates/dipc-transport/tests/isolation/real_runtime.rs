//! A real .NET in a container, if `cargo xtask runtimes` has set one up.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::listener::endpoint_below;
use crate::{is_root, not_run, patient};

/// A container. Its processes end with `unshare`.
struct Container(Child);

impl Drop for Container {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn net9_0() -> Option<PathBuf> {
    let folder = match std::env::var_os("DIPC_RUNTIMES") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_TARGET_TMPDIR")).join("../runtimes"),
    };
    let dotnet = folder.join("9.0.1/dotnet");
    if dotnet.exists() {
        return Some(dotnet);
    }
    not_run(&format!(".NET 9.0.1 is not in {} (cargo xtask runtimes sets it up)", folder.display()));
    None
}

#[test]
fn a_runtime_in_a_container_answers_with_its_inner_pid() {
    if !is_root() {
        return;
    }
    let Some(dotnet) = net9_0() else { return };
    let workload = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/workload/net8.0/workload.dll");
    let folder = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs none \"$TMPDIR\" && exec \"$0\" \"$1\"";
    let mut command = Command::new("unshare");
    command.args(["--pid", "--mount", "--net", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script]);
    command.arg(&dotnet).arg(&workload).env("TMPDIR", folder.path());
    command.env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1").env_remove("DOTNET_DiagnosticPorts");
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut container = Container(child);
    let mut line = String::new();
    BufReader::new(container.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready 1\n");

    let (_, endpoint) = endpoint_below(folder.path().to_str().unwrap());
    let endpoint = endpoint.expect("the runtime in the container");
    assert_eq!(endpoint.namespace_pid, 1);
    assert_ne!(endpoint.pid, 1);
    let mut connection = endpoint.connect(patient()).unwrap();
    // ProcessInfo. The answer begins with the process id.
    connection.write_all(b"DOTNET_IPC_V1\0\x14\0\x04\0\0\0", patient()).unwrap();
    let mut reply = Vec::new();
    while reply.len() < 28 {
        let mut buffer = [0; 4096];
        let count = connection.read(&mut buffer, patient()).unwrap();
        assert!(count > 0, "{reply:?}");
        reply.extend_from_slice(&buffer[..count]);
    }
    assert!(reply.starts_with(b"DOTNET_IPC_V1\0") && reply[16..18] == [0xff, 0x00], "{reply:?}");
    assert_eq!(reply[20..28], 1_u64.to_le_bytes());
}
