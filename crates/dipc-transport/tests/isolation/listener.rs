//! A process that listens as a runtime does, and echoes the received bytes.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use dipc_transport::{Connection, Discovery, Endpoint, discover};

use crate::{not_run, patient};

/// Binds `dotnet-diagnostic-PID-START-socket` in a folder, with its own pid or that of another process.
const SCRIPT: &str = r"
import os, socket, sys
folder, root, pid, key = sys.argv[1:5]
pid = pid or os.getpid()
key = key or open('/proc/self/stat').read().rpartition(')')[2].split()[19]
if root: os.chroot(root)
os.chdir(folder)
s = socket.socket(socket.AF_UNIX)
s.bind(f'dotnet-diagnostic-{pid}-{key}-socket')
s.listen(5)
print('ready', flush=True)
while True:
    c, _ = s.accept()
    try: c.sendall(c.recv(64))
    except OSError: pass
    c.close()
";

pub(crate) struct Listener(Child);

/// The differences to a plain child process.
#[derive(Default)]
pub(crate) struct Conditions<'a> {
    /// Run in namespaces of its own, after this shell command.
    pub(crate) in_namespaces_after: Option<&'a str>,
    /// Run in a pid namespace of its own, with the same files.
    pub(crate) in_pid_namespace: bool,
    pub(crate) user: Option<u32>,
    pub(crate) root: Option<&'a Path>,
    /// The pid and start time of the process to imitate.
    pub(crate) instead_of: Option<(u32, u64)>,
}

impl Listener {
    /// Starts it; `None` if it cannot run, which is reported.
    pub(crate) fn start(folder: impl AsRef<OsStr>, conditions: &Conditions<'_>) -> Option<Self> {
        let folder = folder.as_ref();
        let mut command = match conditions.in_namespaces_after {
            None if conditions.in_pid_namespace => {
                let mut command = Command::new("unshare");
                command.args(["--pid", "--fork", "--kill-child", "python3"]);
                command
            }
            None => Command::new("python3"),
            Some(first) => {
                let mut command = Command::new("unshare");
                command.args(["--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]);
                command.arg(format!("{first} && exec python3 \"$@\"")).arg("sh");
                command
            }
        };
        let (pid, key) = conditions.instead_of.map(|(pid, key)| (pid.to_string(), key.to_string())).unzip();
        let root = conditions.root.map_or(OsStr::new(""), Path::as_os_str);
        command.args(["-c", SCRIPT]).arg(folder).arg(root);
        command.args([pid.unwrap_or_default(), key.unwrap_or_default()]);
        if let Some(user) = conditions.user {
            command.uid(user).gid(user);
        }
        let child = command.env("TMPDIR", folder).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let Ok(mut child) = child else {
            not_run("python3 and unshare are needed");
            return None;
        };
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let listener = Self(child);
        assert_eq!(line, "ready\n", "the listener could not be set up");
        Some(listener)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns the endpoint with this suffix in its path; `find` has to agree with it.
pub(crate) fn endpoint_below(folder: &str) -> (Discovery, Option<Endpoint>) {
    let discovery = discover();
    let mut found = discovery.endpoints.iter().filter(|it| it.path.display().to_string().contains(folder));
    let endpoint = found.next().cloned();
    assert!(found.next().is_none(), "{:?}", discovery.endpoints);
    if let Some(endpoint) = &endpoint {
        assert_eq!(&dipc_transport::find(endpoint.pid).unwrap(), endpoint);
    }
    (discovery, endpoint)
}

pub(crate) fn assert_answers(mut connection: Connection) {
    connection.write_all(b"hello", patient()).unwrap();
    assert_eq!(connection.read(&mut [0; 16], patient()).unwrap(), 5);
}
