//! The right to look into another process, and the reason why this process does not have it.
//!
//! # Source
//! ptrace(2), "Ptrace access mode checking"; capabilities(7), user_namespaces(7), the kernel's documents of
//! Yama, AppArmor and SELinux. Seen with runc on Linux 6.1 and 6.12.

use std::fs;
use std::path::Path;

use linux_proc_stat::Status;

/// The access to another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TracingAccess {
    /// Reading its files in `/proc`, such as its environment and its root.
    Read,
    /// Stopping it, or reading its memory.
    Attach,
}

/// The reason why the kernel does not permit access to another process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TracingObstacle {
    /// Another process traces it, which only one may.
    Traced {
        /// The tracer.
        tracer: u32,
    },
    /// `kernel.yama.ptrace_scope` has this value, and this process lacks `CAP_SYS_PTRACE`; at 3 that is not
    /// enough either.
    Yama(u32),
    /// It belongs to another user, and this process lacks `CAP_SYS_PTRACE`.
    OtherUser {
        /// Its user.
        uid: u32,
        /// This process's user.
        own_uid: u32,
    },
    /// It is in a user namespace in which this process has no capabilities.
    OtherUserNamespace,
    /// It has these capabilities, which this process lacks, as it lacks `CAP_SYS_PTRACE`.
    MissingCapabilities(Vec<&'static str>),
    /// It has forbidden access (`PR_SET_DUMPABLE`), or its program changes the user.
    NotDumpable,
    /// The profile of AppArmor that this process runs with does not permit it for the other's.
    AppArmor {
        /// This process's profile.
        own: String,
        /// The other's profile, or `unconfined`.
        other: String,
    },
    /// The labels of SELinux differ, which is a reason if its policy is enforced.
    SeLinux {
        /// This process's label.
        own: String,
        /// The other's label; `None` if this process may not read it.
        other: Option<String>,
    },
    /// No other reason is visible, and a seccomp filter looks at the calls of this process.
    Seccomp,
    /// None of these.
    Unknown,
}

impl TracingObstacle {
    /// Returns the reason why this process may not look into a process. Call it after the kernel refused.
    ///
    /// ```
    /// use dipc_doctor::{TracingAccess, TracingObstacle};
    ///
    /// if let Err(error) = std::fs::read("/proc/1/environ") {
    ///     let obstacle = TracingObstacle::of(1, TracingAccess::Read);
    ///     eprintln!("{error}: {obstacle:?}");
    /// }
    /// ```
    pub fn of(pid: u32, access: TracingAccess) -> Self {
        Rights::read(pid).map_or(Self::Unknown, |rights| rights.obstacle(access))
    }
}

/// The facts that the kernel decides by.
#[derive(Debug, Clone, Default)]
struct Rights {
    own_uid: u32,
    /// The effective user of the other process.
    uid: u32,
    /// The permitted capabilities of this process and of the other.
    own_capabilities: u64,
    capabilities: u64,
    is_namespace_shared: bool,
    /// True outside of all user namespaces but the machine's own: capabilities count in all of them.
    in_first_namespace: bool,
    is_dumpable: bool,
    tracer: Option<u32>,
    ptrace_scope: u32,
    own_profile: Option<String>,
    profile: Option<String>,
    /// The labels of SELinux, unless it only warns.
    own_label: Option<String>,
    label: Option<String>,
    has_filter: bool,
}

/// The types of SELinux's labels that the usual policies permit everything.
const UNCONFINED_TYPES: [&str; 2] = ["unconfined_t", "spc_t"];

/// Returns the type of a label, `user:role:type` and perhaps a level; `None` if the text is not a label.
fn type_of(label: &str) -> Option<&str> {
    label.split(':').nth(2)
}

const SYS_PTRACE: u64 = 1 << 19;
/// The map of the machine's own user namespace: all users, as they are.
const ALL_USERS: [&str; 3] = ["0", "0", "4294967295"];

impl Rights {
    fn read(pid: u32) -> Option<Self> {
        let own = linux_proc_stat::read(Path::new("/proc/self/status")).ok()?;
        let own = Status::new(&own);
        let folder = linux_proc_stat::process_folder(pid);
        let other = linux_proc_stat::read(&folder.join("status")).ok()?;
        let other = Status::new(&other);
        let text = |path: &Path| fs::read_to_string(path).ok();
        let users = |path: &Path| {
            let map = text(path)?;
            Some(map.split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>())
        };
        let own_users = users(Path::new("/proc/self/uid_map"));
        // The name, and the mode in parentheses.
        let profile = |path: &Path| {
            let label = text(path)?;
            let label = label.trim_end_matches(['\0', '\n']);
            Some(label.split_once(" (").map_or(label, |(name, _)| name).to_owned())
        };
        // AppArmor and SELinux share the file, and one of both is on.
        let has_app_armor = text(Path::new("/sys/module/apparmor/parameters/enabled"));
        let has_app_armor = has_app_armor.is_some_and(|value| value.starts_with('Y'));
        // Containers do not see the file.
        let only_warns = text(Path::new("/sys/fs/selinux/enforce")).is_some_and(|value| value.trim() == "0");
        let has_selinux = !has_app_armor && !only_warns;
        let own_profile = profile(Path::new("/proc/self/attr/current"));
        let profile = profile(&folder.join("attr/current"));
        let label = |profile: &Option<String>| {
            profile.clone().filter(|label| has_selinux && type_of(label).is_some())
        };
        let uid = other.effective_user()?;
        Some(Self {
            own_uid: own.effective_user()?,
            uid,
            own_capabilities: own.mask("CapPrm").unwrap_or(0),
            capabilities: other.mask("CapPrm").unwrap_or(0),
            is_namespace_shared: own_users == users(&folder.join("uid_map")),
            in_first_namespace: own_users.is_none_or(|map| map == ALL_USERS),
            is_dumpable: owner(&folder).is_none_or(|owner| owner == uid),
            tracer: other.tracer(),
            ptrace_scope: text(Path::new("/proc/sys/kernel/yama/ptrace_scope"))
                .and_then(|level| level.trim().parse().ok())
                .unwrap_or(0),
            own_label: label(&own_profile),
            label: label(&profile),
            own_profile: own_profile.filter(|_| has_app_armor),
            profile,
            has_filter: own.mask("Seccomp") == Some(2),
        })
    }

    /// Returns the first obstacle, in the order of the kernel's checks.
    fn obstacle(&self, access: TracingAccess) -> TracingObstacle {
        let attaches = access == TracingAccess::Attach;
        if let Some(tracer) = self.tracer.filter(|_| attaches) {
            return TracingObstacle::Traced { tracer };
        }
        if attaches && self.ptrace_scope > 2 {
            return TracingObstacle::Yama(self.ptrace_scope);
        }
        // A namespace below this one would be visible to its capabilities, which the maps do not show.
        let is_above = self.in_first_namespace || self.is_namespace_shared;
        if self.own_capabilities & SYS_PTRACE == 0 || !is_above {
            if !is_above {
                return TracingObstacle::OtherUserNamespace;
            }
            if self.uid != self.own_uid {
                return TracingObstacle::OtherUser { uid: self.uid, own_uid: self.own_uid };
            }
            if !self.is_namespace_shared {
                return TracingObstacle::OtherUserNamespace;
            }
            let missing = capability_names(self.capabilities & !self.own_capabilities);
            if !missing.is_empty() {
                return TracingObstacle::MissingCapabilities(missing);
            }
            if !self.is_dumpable {
                return TracingObstacle::NotDumpable;
            }
            if attaches && self.ptrace_scope > 0 {
                return TracingObstacle::Yama(self.ptrace_scope);
            }
        }
        let is_confined = |label: &String| type_of(label).is_some_and(|of| !UNCONFINED_TYPES.contains(&of));
        match (&self.own_profile, &self.profile, &self.own_label) {
            (Some(own), Some(other), _) if own != "unconfined" && own != other => {
                TracingObstacle::AppArmor { own: own.clone(), other: other.clone() }
            }
            (_, _, Some(own)) if is_confined(own) && self.label.as_ref() != Some(own) => {
                TracingObstacle::SeLinux { own: own.clone(), other: self.label.clone() }
            }
            _ if attaches && self.has_filter => TracingObstacle::Seccomp,
            _ => TracingObstacle::Unknown,
        }
    }
}

fn owner(path: &Path) -> Option<u32> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        Some(fs::metadata(path).ok()?.uid())
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// Returns the names of a set of capabilities, without `CAP_`; capabilities of newer kernels are left out.
fn capability_names(set: u64) -> Vec<&'static str> {
    // By number, `include/uapi/linux/capability.h`.
    const NAMES: [&str; 41] = [
        "CHOWN",
        "DAC_OVERRIDE",
        "DAC_READ_SEARCH",
        "FOWNER",
        "FSETID",
        "KILL",
        "SETGID",
        "SETUID",
        "SETPCAP",
        "LINUX_IMMUTABLE",
        "NET_BIND_SERVICE",
        "NET_BROADCAST",
        "NET_ADMIN",
        "NET_RAW",
        "IPC_LOCK",
        "IPC_OWNER",
        "SYS_MODULE",
        "SYS_RAWIO",
        "SYS_CHROOT",
        "SYS_PTRACE",
        "SYS_PACCT",
        "SYS_ADMIN",
        "SYS_BOOT",
        "SYS_NICE",
        "SYS_RESOURCE",
        "SYS_TIME",
        "SYS_TTY_CONFIG",
        "MKNOD",
        "LEASE",
        "AUDIT_WRITE",
        "AUDIT_CONTROL",
        "SETFCAP",
        "MAC_OVERRIDE",
        "MAC_ADMIN",
        "SYSLOG",
        "WAKE_ALARM",
        "BLOCK_SUSPEND",
        "AUDIT_READ",
        "PERFMON",
        "BPF",
        "CHECKPOINT_RESTORE",
    ];
    NAMES.into_iter().enumerate().filter(|(bit, _)| set >> bit & 1 == 1).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The capabilities of a container's root, of which none is for tracing.
    const DOCKER: u64 = 0xa804_25fb;

    /// The rights of a container's root next to a process of the same kind, which permit everything.
    fn equal() -> Rights {
        Rights {
            own_capabilities: DOCKER,
            capabilities: DOCKER,
            is_namespace_shared: true,
            in_first_namespace: true,
            is_dumpable: true,
            ..Rights::default()
        }
    }

    fn on(rights: &Rights) -> [TracingObstacle; 2] {
        [TracingAccess::Read, TracingAccess::Attach].map(|access| rights.obstacle(access))
    }

    #[test]
    fn what_is_missing_is_named() {
        use TracingObstacle as Is;
        let both = |obstacle: Is| [obstacle.clone(), obstacle];
        assert_eq!(on(&equal()), both(Is::Unknown));
        let other = Is::OtherUser { uid: 1654, own_uid: 0 };
        assert_eq!(on(&Rights { uid: 1654, ..equal() }), both(other));
        let Is::MissingCapabilities(names) = &on(&Rights { own_capabilities: 0, ..equal() })[0] else {
            panic!()
        };
        assert_eq!((names.len(), names[0], names[13]), (14, "CHOWN", "SETFCAP"));
        // A container with other users, seen from the machine, and the machine seen from it.
        let below = Rights { is_namespace_shared: false, ..equal() };
        assert_eq!(on(&below), both(Is::OtherUserNamespace));
        let above = Rights { in_first_namespace: false, own_capabilities: u64::MAX, ..below };
        assert_eq!(on(&above), both(Is::OtherUserNamespace));
        assert_eq!(on(&Rights { is_dumpable: false, ..equal() }), both(Is::NotDumpable));
        // The kernel permits reading still.
        for level in [1, 2, 3] {
            let rights = Rights { ptrace_scope: level, ..equal() };
            assert_eq!(on(&rights), [Is::Unknown, Is::Yama(level)]);
        }
        assert_eq!(on(&Rights { tracer: Some(7), ..equal() }), [Is::Unknown, Is::Traced { tracer: 7 }]);
        assert_eq!(on(&Rights { has_filter: true, ..equal() }), [Is::Unknown, Is::Seccomp]);
    }

    #[test]
    fn the_capability_leaves_what_it_does_not_permit() {
        let root = Rights { own_capabilities: u64::MAX, uid: 1654, ptrace_scope: 2, ..equal() };
        let [_, attach] = on(&root);
        assert_eq!(attach, TracingObstacle::Unknown);
        let [_, attach] = on(&Rights { ptrace_scope: 3, ..root.clone() });
        assert_eq!(attach, TracingObstacle::Yama(3));
        let confined = |own: &str, other: &str| {
            on(&Rights { own_profile: Some(own.into()), profile: Some(other.into()), ..root.clone() })
        };
        let app_armor =
            TracingObstacle::AppArmor { own: "docker-default".into(), other: "unconfined".into() };
        assert_eq!(confined("docker-default", "unconfined"), [app_armor.clone(), app_armor]);
        for (own, other) in [("docker-default", "docker-default"), ("unconfined", "docker-default")] {
            assert_eq!(confined(own, other)[0], TracingObstacle::Unknown);
        }
    }

    #[test]
    fn labels_of_selinux_that_differ_are_a_reason() {
        let root = Rights { own_capabilities: u64::MAX, ..equal() };
        let container = |level: &str| format!("system_u:system_r:container_t:s0:{level}");
        let labels = |own: &str, other: Option<String>| {
            on(&Rights { own_label: Some(own.to_owned()), label: other, ..root.clone() })
        };
        let (own, other) = (container("c1,c2"), Some(container("c3,c4")));
        let reason = TracingObstacle::SeLinux { own: own.clone(), other: other.clone() };
        assert_eq!(labels(&own, other), [reason.clone(), reason]);
        let unreadable = TracingObstacle::SeLinux { own: own.clone(), other: None };
        assert_eq!(labels(&own, None)[1], unreadable);
        // The same label, and labels that policies permit everything.
        assert_eq!(labels(&own, Some(own.clone()))[1], TracingObstacle::Unknown);
        for unconfined in ["unconfined_u:unconfined_r:unconfined_t:s0", "system_u:system_r:spc_t:s0"] {
            assert_eq!(labels(unconfined, Some(own.clone()))[1], TracingObstacle::Unknown);
        }
        assert_eq!((type_of("a:b:c"), type_of("docker-default"), type_of("a:b")), (Some("c"), None, None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn rights_over_this_process_are_read() {
        let rights = Rights::read(std::process::id()).unwrap();
        assert_eq!(rights.uid, rights.own_uid);
        assert_eq!(rights.capabilities, rights.own_capabilities);
        assert!(rights.is_namespace_shared);
    }
}
