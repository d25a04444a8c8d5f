//! `/proc/PID/limits`.

/// The resource limits of a process.
///
/// ```
/// use linux_proc_stat::Limits;
///
/// let text = b"Limit             Soft Limit  Hard Limit  Units\nMax open files    1024   4096   files\n";
/// assert_eq!(Limits::new(text).soft("Max open files"), Some("1024"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits<'t> {
    bytes: &'t [u8],
}

impl<'t> Limits<'t> {
    /// Wraps the content of the file.
    pub const fn new(bytes: &'t [u8]) -> Self {
        Self { bytes }
    }

    /// Returns the limit that is in force: a number in the unit of the line, or `unlimited`.
    pub fn soft(&self, name: &str) -> Option<&'t str> {
        let mut lines = self.bytes.split(|&byte| byte == b'\n');
        let values = lines.find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b"  "))?;
        std::str::from_utf8(values).ok()?.split_ascii_whitespace().next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_soft_limit() {
        let text = b"Limit                     Soft Limit           Hard Limit           Units     \n\
            Max cpu time              unlimited            unlimited            seconds   \n\
            Max open files            1024                 524288               files     \n\
            Max open fi\xff\n";
        let limits = Limits::new(text);
        assert_eq!(
            (limits.soft("Max cpu time"), limits.soft("Max open files")),
            (Some("unlimited"), Some("1024"))
        );
        assert_eq!((limits.soft("Max open"), limits.soft("Max open fi")), (None, None));
        assert_eq!(Limits::new(b"Max open files").soft("Max open files"), None);
        assert_eq!(Limits::new(b"Max open files  \xff\n").soft("Max open files"), None);
    }
}
