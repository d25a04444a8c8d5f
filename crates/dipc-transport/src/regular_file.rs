use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use crate::refusal::refused;
use crate::sys;

/// Opens a regular file for reading. The type is checked first: opening a device can have effects, and
/// opening a pipe waits.
///
/// On Linux the checked file itself is opened. On other Unixes the file is opened without waiting and checked
/// again. On Windows reserved names, which open devices, are refused.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// // A folder, a device or a pipe is refused, without opening it.
/// let error = dipc_transport::open_regular(folder.path()).expect_err("a folder");
/// assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Errors of opening, and [`io::ErrorKind::InvalidInput`] for files that are not regular.
pub fn open_regular(path: &Path) -> io::Result<File> {
    sys::open_regular(path)
}

/// Opens a regular file at an absolute path from an untrusted source, such as a recording.
///
/// On Unix no automount point is entered, so that the path cannot mount anything. On Linux `/proc` and `/sys`
/// are not entered either, since reading there has effects as well. Links are followed under the same rules.
///
/// ```
/// // A path that a recording names.
/// let error = dipc_transport::open_untrusted("bin/app.dll".as_ref()).expect_err("a relative path");
/// assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
/// ```
///
/// # Errors
/// As for [`open_regular`], and [`io::ErrorKind::InvalidInput`] for a path through a folder that is not
/// entered.
pub fn open_untrusted(path: &Path) -> io::Result<File> {
    if !path.is_absolute() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path is not absolute"));
    }
    sys::open_untrusted(path)
}

/// Opens a file that this program keeps in a folder to which others can write. `options` may create it, but
/// not truncate it: the file is checked once it is open.
///
/// A link is not followed, and opening does not wait for the other end of a pipe. A file with a second name
/// is refused, as it may be another one's.
///
/// ```
/// use std::fs::OpenOptions;
///
/// let shared = tempfile::tempdir()?;
/// let index = shared.path().join("index");
/// dipc_transport::open_own(&index, OpenOptions::new().append(true).create(true))?;
/// std::fs::hard_link(&index, shared.path().join("second name"))?;
/// assert!(dipc_transport::open_own(&index, OpenOptions::new().append(true)).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Errors of opening, and [`io::ErrorKind::InvalidInput`] for everything except such a file.
pub fn open_own(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    sys::refuse_links(options);
    let file = options.open(path).map_err(|error| match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => refused("it is a link"),
        // Opening a pipe for writing fails without a reader.
        Ok(found) if !found.is_file() => refused("not a regular file"),
        _ => error,
    })?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(refused("not a regular file"));
    }
    if sys::has_other_names(&metadata) {
        return Err(refused("the file has another name, too"));
    }
    Ok(file)
}

/// Closes a file, and returns an error that the file system reports only now: a network file system or a
/// quota may refuse data that was written before. Dropping a file discards this error. Windows reports none.
///
/// # Errors
/// Errors of closing. The file is closed in any case.
pub fn close(file: File) -> io::Result<()> {
    sys::close(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read as _;

    fn text(file: io::Result<File>) -> String {
        let mut text = String::new();
        file.unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "text").unwrap();
        assert_eq!(text(open_regular(&file)), "text");
        assert_eq!(text(open_untrusted(&file)), "text");
        for path in [folder.path().to_path_buf(), file.join("x"), folder.path().join("none")] {
            assert!(open_regular(&path).is_err() && open_untrusted(&path).is_err(), "{}", path.display());
        }
        let missing = open_untrusted(&folder.path().join("none")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert!(open_untrusted(Path::new("file")).is_err());
    }

    #[test]
    fn closes_files_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut file = File::create(&path).unwrap();
        io::Write::write_all(&mut file, b"text").unwrap();
        // The standard library aborts if a descriptor is closed twice.
        close(file).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"text");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed() {
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/file"), "text").unwrap();
        symlink(at("a/b"), at("absolute")).unwrap();
        symlink("../file", at("a/b/relative")).unwrap();
        symlink("absolute/relative", at("both")).unwrap();
        symlink("turn", at("turn")).unwrap();
        for path in ["a/file", "a/b/../file", "absolute/../file", "a/b/relative", "absolute/relative", "both"]
        {
            assert_eq!(text(open_untrusted(&at(path))), "text", "{path}");
        }
        assert!(open_untrusted(&at("turn")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn own_files_are_neither_links_nor_pipes() {
        use std::io::Write as _;
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let append = |name: &str| open_own(&at(name), OpenOptions::new().append(true).create(true));
        append("new").unwrap().write_all(b"a").unwrap();
        append("new").unwrap().write_all(b"b").unwrap();
        assert_eq!(text(open_own(&at("new"), OpenOptions::new().read(true))), "ab");
        fs::write(at("other"), "other").unwrap();
        symlink(at("other"), at("link")).unwrap();
        symlink(at("missing"), at("dangling")).unwrap();
        fs::hard_link(at("other"), at("second")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
        assert!(made.success());
        for name in ["link", "dangling", "second", ".", "pipe"] {
            assert_eq!(append(name).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        let error = open_own(&at("pipe"), OpenOptions::new().read(true)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(fs::read_to_string(at("other")).unwrap(), "other");
        assert!(!at("missing").exists());
    }

    // inotify would report even a short opening.
    #[cfg(target_os = "linux")]
    #[test]
    fn devices_and_pipes_are_not_opened() {
        use rustix::fs::inotify;

        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&watch, folder.path(), inotify::WatchFlags::OPEN).unwrap();
        for path in [&*pipe, Path::new("/dev/zero"), Path::new("/dev/tty")] {
            for error in [open_regular(path).unwrap_err(), open_untrusted(path).unwrap_err()] {
                assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{}: {error}", path.display());
            }
        }
        let mut events = [0; 256];
        assert_eq!(rustix::io::read(&watch, &mut events), Err(rustix::io::Errno::AGAIN));
        // The watch does see opened files.
        open_untrusted(&file).unwrap();
        assert!(rustix::io::read(&watch, &mut events).unwrap() > 0);
    }

    /// Between a check of a name and an opening by it, another file would have the name.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_is_exchanged_while_it_is_opened_is_the_one_that_was_checked() {
        use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

        use rustix::fs::{CWD, Mode, RenameFlags, mkfifoat, renameat_with};

        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "text").unwrap();
        mkfifoat(CWD, at("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        std::os::unix::fs::symlink("/proc/kmsg", at("link")).unwrap();
        let (is_over, exchanges) = (AtomicBool::new(false), AtomicU32::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    for other in ["pipe", "link"] {
                        renameat_with(CWD, at("file"), CWD, at(other), RenameFlags::EXCHANGE).unwrap();
                        renameat_with(CWD, at("file"), CWD, at(other), RenameFlags::EXCHANGE).unwrap();
                        exchanges.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
            let (mut opened, mut refused) = (0, 0);
            while opened < 500 || refused < 500 {
                let own = open_own(&at("file"), OpenOptions::new().read(true));
                for result in [open_untrusted(&at("file")), own] {
                    match result {
                        Ok(file) => {
                            assert_eq!(text(Ok(file)), "text");
                            opened += 1;
                        }
                        Err(error) => {
                            let kind = error.kind();
                            // By the time that the reason is examined, the name may be the file's again.
                            let is_link =
                                error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
                            assert!(kind == io::ErrorKind::InvalidInput || is_link, "{error}");
                            refused += 1;
                        }
                    }
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert!(exchanges.load(Ordering::Relaxed) > 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn files_of_the_kernel_are_not_read_on_the_word_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/proc/self/status", &link).unwrap();
        for path in [&*link, Path::new("/proc/version"), Path::new("/sys/kernel/uevent_seqnum")] {
            assert_eq!(open_untrusted(path).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        // A path named by the user is the user's own choice.
        assert!(open_regular(Path::new("/proc/version")).is_ok());
    }

    /// A mounted automount point; unmounted when dropped.
    #[cfg(target_os = "linux")]
    struct Automount {
        folder: tempfile::TempDir,
        /// The pipe on which the kernel requests mounts.
        requests: std::os::fd::OwnedFd,
        _kernel: std::os::fd::OwnedFd,
    }

    #[cfg(target_os = "linux")]
    impl Automount {
        fn new() -> rustix::io::Result<Self> {
            use std::os::fd::AsRawFd as _;

            let folder = tempfile::tempdir().unwrap();
            let (requests, kernel) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK)?;
            // Processes of the group would not trigger it, so it gets the group of process 1, which is not
            // ours.
            let options = format!("fd={},pgrp=1,minproto=5,maxproto=5,indirect", kernel.as_raw_fd());
            let options = std::ffi::CString::new(options).unwrap();
            let flags = rustix::mount::MountFlags::empty();
            rustix::mount::mount("none", folder.path(), "autofs", flags, Some(&*options))?;
            Ok(Self { folder, requests, _kernel: kernel })
        }

        fn is_asked(&self) -> bool {
            rustix::io::read(&self.requests, &mut [0; 1024]).is_ok_and(|count| count > 0)
        }
    }

    #[cfg(target_os = "linux")]
    impl Drop for Automount {
        fn drop(&mut self) {
            let _ = rustix::mount::unmount(self.folder.path(), rustix::mount::UnmountFlags::DETACH);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn nothing_is_mounted_on_the_word_of_others() {
        use std::io::Write as _;
        use std::time::{Duration, Instant};

        let automount = match Automount::new() {
            Ok(automount) => automount,
            Err(error) => {
                // Only root can mount, and not in every container.
                let _ = writeln!(io::stderr(), "!!! NOT RUN the automount point: {error}");
                return;
            }
        };
        let links = tempfile::tempdir().unwrap();
        let link = links.path().join("link");
        std::os::unix::fs::symlink(automount.folder.path(), &link).unwrap();
        for folder in [automount.folder.path(), &link] {
            let error = open_untrusted(&folder.join("host.example/share/x.pdb")).unwrap_err();
            assert!(error.to_string().contains("automount"), "{error}");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
        assert!(!automount.is_asked());
        // A plain open of such a path mounts it, and waits.
        let path = automount.folder.path().join("host.example/share/x.pdb");
        std::thread::spawn(move || File::open(path));
        let deadline = Instant::now() + Duration::from_secs(30);
        while !automount.is_asked() {
            assert!(Instant::now() < deadline, "no request");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
