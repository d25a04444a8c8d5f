//! Ephemeral containers, as the kubelet makes them for `kubectl debug --target`: the pid namespace of their
//! target, a mount namespace and a root of their own, and their own user and capabilities. Root only.
//!
//! The table in `help/containers.md` has what is expected here.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::machine::may_sample_machine;
use crate::runtime::{Runtime, say_not_run};
use crate::workload::Workload;

/// The user of the target.
const USER: u32 = 1654;
/// The capabilities that containers have by default.
const DEFAULT: &str = "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,\
    +net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap";

/// A root with the libraries of this one, the program and the processes of the target's pid namespace; then
/// the user with the capabilities, and in it the program.
const SCRIPT: &str = r#"
mount --make-rprivate / && mount -t tmpfs none "$ROOT" && cd "$ROOT" && mkdir -m 755 proc sys dev usr lib lib64 &&
mkdir -m 1777 tmp && for folder in sys dev usr lib lib64; do mount --rbind "/$folder" "$folder"; done &&
mount -t proc proc proc && touch dipc && mount --bind "$DIPC" dipc && chmod 755 . &&
exec setpriv --bounding-set "$CAPABILITIES" chroot --userspec="$USER_ID:$USER_ID" "$ROOT" /dipc "$@""#;

/// A program in a container, of a user without capabilities, which works all the time.
struct Pod {
    program: Workload,
    /// The process as seen from here.
    pid: u32,
    root: TempDir,
}

impl Pod {
    fn start(runtime: Runtime) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            say_not_run("only root can make namespaces");
            return None;
        }
        let program = runtime.workload()?;
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]);
        command.arg(format!(
            "mount -t tmpfs -o mode=1777 none \"$TMPDIR\" && exec setpriv --reuid {USER} --regid {USER} \
             --clear-groups --bounding-set -all --inh-caps -all \"$0\" \"$@\""
        ));
        command.arg(program.get_program()).args(program.get_args());
        let mut program = Workload::contained(runtime, command);
        let unshare = program.pid();
        let children = std::fs::read_to_string(format!("/proc/{unshare}/task/{unshare}/children")).unwrap();
        let pid = children.split_whitespace().next().expect("a child").parse().unwrap();
        program.run("spin 500");
        program.send("spin 600000");
        Some(Self { program, pid, root: tempfile::tempdir().unwrap() })
    }

    /// Runs `dipc` in an ephemeral container; its exit code, and all that it says.
    fn run(&self, container: &Container, arguments: &[&str]) -> (i32, String) {
        let mut command = Command::new("nsenter");
        command.args(["--pid", "--target", &self.pid.to_string()]);
        command.args(["unshare", "--mount", "sh", "-c", SCRIPT, "sh"]).args(arguments);
        command.env("ROOT", self.root.path()).env("DIPC", env!("CARGO_BIN_EXE_dipc")).env("TMPDIR", "/tmp");
        command.env("CAPABILITIES", format!("{DEFAULT}{}", container.capabilities));
        command.env("USER_ID", container.user.to_string());
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
    }

    /// A path in the target's own files.
    fn core(&self) -> PathBuf {
        self.program.folder().join("core")
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        // The signal of `--kill-child` does not outlive the change of the user.
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// The user and the further capabilities of an ephemeral container, and what it may.
struct Container {
    user: u32,
    capabilities: &'static str,
    /// True if the target's endpoint and memory can be reached.
    reaches: bool,
    /// The samples that the kernel permits where `kernel.perf_event_paranoid` is 2.
    samples: Samples,
    /// The words of a refusal.
    advice: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Samples {
    None,
    /// Without the time in the kernel.
    UserMode,
    /// Without the events and the names of the runtime.
    Alone,
    All,
}

const CONTAINERS: [Container; 6] = [
    Container {
        user: 0,
        capabilities: "",
        reaches: false,
        samples: Samples::None,
        advice: "root lacks SYS_PTRACE",
    },
    Container {
        user: 0,
        capabilities: ",+sys_ptrace",
        reaches: true,
        samples: Samples::UserMode,
        advice: "",
    },
    Container {
        user: 0,
        capabilities: ",+perfmon",
        reaches: false,
        samples: Samples::Alone,
        advice: "root lacks SYS_PTRACE",
    },
    Container {
        user: 0,
        capabilities: ",+sys_ptrace,+perfmon",
        reaches: true,
        samples: Samples::All,
        advice: "",
    },
    Container { user: USER, capabilities: "", reaches: true, samples: Samples::UserMode, advice: "" },
    Container { user: 1000, capabilities: "", reaches: false, samples: Samples::None, advice: "--user 1654" },
];

#[test]
fn an_ephemeral_container_reaches_its_target_with_the_rights_of_the_table() {
    let Some(pod) = Pod::start(Runtime::Net9_0) else { return };
    let dump = pod.core();
    let commands: [&[&str]; 6] = [
        &["info", "-p", "1"],
        &["trace", "-p", "1", "--duration", "100ms", "--clrevents", "gc", "-o", "/tmp/app.nettrace"],
        &["stack", "-p", "1", "--exact"],
        &["memory", "-p", "1"],
        &["dump", "-p", "1", "--type", "mini", "-o", dump.to_str().unwrap()],
        &["dump", "-p", "1", "--stream", "-o", "/tmp/core"],
    ];
    for container in &CONTAINERS {
        let what = format!("user {}{}", container.user, container.capabilities);
        let (code, listed) = pod.run(container, &["ps"]);
        assert_eq!((code, listed.contains("workload")), (0, container.reaches), "{what}: {listed}");
        for command in commands {
            let (code, said) = pod.run(container, command);
            if container.reaches {
                assert_eq!(code, 0, "{what}: {command:?}: {said}");
            } else {
                assert_eq!(code, 3, "{what}: {command:?}: {said}");
                assert!(said.contains(container.advice), "{what}: {command:?}: {said}");
            }
        }
        if container.reaches {
            let (code, stacks) = pod.run(container, &["stack", "-p", "1"]);
            assert!(code == 0 && stacks.contains("Spin.Hot("), "{what}: {stacks}");
        }
    }
}

#[test]
fn an_ephemeral_container_samples_its_target_with_the_rights_of_the_table() {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if level.trim() != "2" || !may_sample_machine() {
        return say_not_run("kernel.perf_event_paranoid is not 2, or no samples are permitted");
    }
    let Some(pod) = Pod::start(Runtime::Net9_0) else { return };
    for container in &CONTAINERS {
        let what = format!("user {}{}", container.user, container.capabilities);
        let trace = ["trace", "-p", "1", "--cpu", "--duration", "300ms", "-o", "/tmp/app.nettrace"];
        let (code, said) = pod.run(container, &trace);
        assert_eq!(code, if container.samples == Samples::None { 3 } else { 0 }, "{what}: {said}");
        let has = |words: &str| said.contains(words);
        let found = match () {
            () if code != 0 => Samples::None,
            () if has("without the events of a runtime") => Samples::Alone,
            () if has("in user mode only") => Samples::UserMode,
            () => Samples::All,
        };
        assert_eq!(found, container.samples, "{what}: {said}");
        assert_eq!(has("CPU samples    : "), code == 0, "{what}: {said}");
        // The whole pod, in its own numbers.
        let (code, said) =
            pod.run(container, &["trace", "--all", "--duration", "300ms", "-o", "/tmp/all.nettrace"]);
        assert_eq!(code, if container.samples == Samples::None { 3 } else { 0 }, "{what}: {said}");
        let is_of_machine = matches!(container.samples, Samples::Alone | Samples::All);
        assert_eq!(
            said.contains("of processes outside this container are left out"),
            is_of_machine,
            "{what}: {said}"
        );
    }
}
