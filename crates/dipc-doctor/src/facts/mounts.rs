//! `/proc/PID/mountinfo`: read-only file systems, as in containers with a read-only root.

use std::fs;
use std::path::Path;

use linux_proc_stat::Mount;

/// Returns the mount point of the read-only file system that contains `path`, if any.
pub(super) fn read_only_above(pid: u32, path: &Path) -> Option<String> {
    let mounts = fs::read(format!("/proc/{pid}/mountinfo")).ok()?;
    read_only_in(&String::from_utf8_lossy(&mounts), path)
}

pub(super) fn read_only_in(mounts: &str, path: &Path) -> Option<String> {
    let above = mounts.lines().filter_map(Mount::parse).filter(|mount| path.starts_with(&mount.point));
    // The innermost mount; of several at the same place the last one hides the others.
    let mount = above.max_by_key(|mount| mount.point.len())?;
    let is_read_only = |options: &str| options.split(',').any(|option| option == "ro");
    (is_read_only(mount.options) || is_read_only(mount.super_options)).then_some(mount.point)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_decides() {
        let mounts = "22 1 8:1 / / ro,relatime shared:1 - ext4 /dev/sda1 rw\n\
                      23 22 0:21 / /tmp rw,relatime - tmpfs tmpfs rw,size=64k\n\
                      24 22 0:22 / /a\\040b rw - tmpfs tmpfs ro\n\
                      25 23 0:23 / /tmp/x rw - tmpfs tmpfs rw\n\
                      26 25 0:24 / /tmp/x ro - tmpfs tmpfs rw\n";
        let read_only = |path: &str| read_only_in(mounts, Path::new(path));
        assert_eq!(read_only("/tmp"), None);
        assert_eq!(read_only("/tmpx").as_deref(), Some("/"));
        assert_eq!(read_only("/var/tmp").as_deref(), Some("/"));
        assert_eq!(read_only("/a b/c").as_deref(), Some("/a b"));
        assert_eq!(read_only("/tmp/x/y").as_deref(), Some("/tmp/x"));
        assert_eq!(read_only_in("nonsense\n", Path::new("/")), None);
    }
}
