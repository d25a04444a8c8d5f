//! `/proc/PID/mountinfo`.

/// A mounted file system: a line of the file.
///
/// ```
/// use linux_proc_stat::Mount;
///
/// let line = r"31 23 0:28 / /mnt/a\040b rw,relatime shared:9 - tmpfs none ro,mode=755";
/// let mount = Mount::parse(line).ok_or("not a mount")?;
/// assert_eq!((&*mount.point, mount.options, mount.kind), ("/mnt/a b", "rw,relatime", "tmpfs"));
/// assert_eq!(mount.super_options, "ro,mode=755");
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mount<'t> {
    /// The folder of the file system that is mounted; the group of a control group's hierarchy.
    pub root: String,
    /// The folder that it is mounted at, in the process's view.
    pub point: String,
    /// The options of this mount.
    pub options: &'t str,
    /// The kind of the file system, such as `cgroup2`.
    pub kind: &'t str,
    /// The options of the file system, at all its mounts.
    pub super_options: &'t str,
}

impl<'t> Mount<'t> {
    /// Parses `ID PARENT DEVICE ROOT POINT OPTIONS [FIELDS…] - KIND SOURCE SUPER_OPTIONS`.
    pub fn parse(line: &'t str) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point, options) = (unescape(fields.next()?), unescape(fields.next()?), fields.next()?);
        let mut fields = file_system.split(' ');
        Some(Self { root, point, options, kind: fields.next()?, super_options: fields.nth(1)? })
    }
}

/// Replaces `\040` and the like.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if byte.is_ascii() => {
                plain.push(char::from(byte));
                plain.push_str(part.get(3..).unwrap_or_default());
            }
            _ => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_mounts_are_unescaped() {
        assert_eq!(unescape(r"/a\040b\134c"), r"/a b\c");
        assert_eq!(unescape(r"/a\04"), r"/a\04");
        assert_eq!(unescape("\\üb"), "\\üb");
    }

    #[test]
    fn broken_lines_are_not_mounts() {
        for line in
            ["", " - ", "1 2 3 / /a rw", "1 2 3 / /a - tmpfs", "1 2 3 / /a rw - tmpfs none", "1 2 3 - a b c"]
        {
            assert_eq!(Mount::parse(line), None, "{line}");
        }
    }
}
