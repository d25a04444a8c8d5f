use super::*;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use tempfile::TempDir;

/// A folder as in `/proc`, with itself as the root and working directory.
fn process() -> (TempDir, ProcessView) {
    let folder = tempfile::tempdir().unwrap();
    symlink(folder.path(), folder.path().join("root")).unwrap();
    symlink(folder.path(), folder.path().join("cwd")).unwrap();
    let view = ProcessView { folder: folder.path().to_path_buf() };
    (folder, view)
}

fn threads(folder: &TempDir, names: &[&str]) {
    for (id, name) in names.iter().enumerate() {
        let thread = folder.path().join("task").join(id.to_string());
        fs::create_dir_all(&thread).unwrap();
        fs::write(thread.join("comm"), format!("{name}\n")).unwrap();
    }
}

#[test]
fn the_threads_tell_a_suspended_runtime_from_a_running_one() {
    for (names, expected) in [
        (&["dotnet", ".NET EventPipe", ".NET SynchManag"][..], Startup::Suspended),
        (&["dotnet", ".NET EventPipe", ".NET Finalizer", ".NET SigHandler"], Startup::Running),
        (&["workload", "workload", ".NET SigHandler"], Startup::Unknown),
        (&[], Startup::Unknown),
    ] {
        let (folder, view) = process();
        threads(&folder, names);
        assert_eq!(view.startup(), expected, "{names:?}");
    }
}

#[test]
fn threads_have_the_numbers_that_their_process_knows() {
    let (folder, view) = process();
    assert!(view.threads().is_err(), "no list of threads");
    for (id, status) in [
        ("70001", "Name:\tmain\nState:\tS (sleeping)\nPid:\t70001\nNSpid:\t70001\t12\n"),
        ("70002", "Name:\t.NET TP Worker\nState:\tR (running)\nPid:\t70002\n"),
        ("70003", "Name:\tcut"),
    ] {
        let thread = folder.path().join("task").join(id);
        fs::create_dir_all(&thread).unwrap();
        fs::write(thread.join("status"), status).unwrap();
    }
    let mut threads = view.threads().unwrap();
    threads.sort_by_key(|thread| thread.id);
    let shown: Vec<_> =
        threads.iter().map(|thread| (thread.id, thread.name.as_str(), thread.state)).collect();
    assert_eq!(shown, [(12, "main", 'S'), (70002, ".NET TP Worker", 'R')]);
}

#[test]
fn createdump_is_searched_next_to_the_runtime() {
    let (folder, view) = process();
    assert_eq!(view.createdump_hazard(), None, "without a list of libraries");
    let maps = "7f00-7f01 r--p 00000000 08:01 1   /usr/lib/libc.so.6\n\
                7f02-7f03 rw-p 00000000 00:00 0 \n\
                7f04-7f05 r-xp 00000000 08:01 2   /a b/shared/libcoreclr.so (deleted)\n";
    fs::write(folder.path().join("maps"), maps).unwrap();
    let problem = |view: &ProcessView| match view.createdump_hazard() {
        Some(Hazard::NoCreateDump { path, problem }) => {
            assert_eq!(path, Path::new("/a b/shared/createdump"));
            Some(problem)
        }
        Some(other) => panic!("{other:?}"),
        None => None,
    };
    assert_eq!(problem(&view), Some("it does not exist"));
    let createdump = folder.path().join("a b/shared/createdump");
    fs::create_dir_all(&createdump).unwrap();
    assert_eq!(problem(&view), Some("it is not a file"));
    fs::remove_dir(&createdump).unwrap();
    fs::write(&createdump, "").unwrap();
    fs::set_permissions(&createdump, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(problem(&view), Some("it is not executable"));
    fs::set_permissions(&createdump, fs::Permissions::from_mode(0o744)).unwrap();
    assert_eq!(problem(&view), None);

    threads(&folder, &["single-file", ".NET EventPipe"]);
    assert!(!view.contains_coreclr());
    fs::write(folder.path().join("maps"), "7f00-7f01 r--p 00000000 08:01 1   /app/single-file\n").unwrap();
    assert_eq!(problem(&view), None, "a program that contains its runtime");
    assert!(view.contains_coreclr());
    fs::remove_file(folder.path().join("maps")).unwrap();
    assert!(!view.contains_coreclr(), "without a list of libraries");
}
