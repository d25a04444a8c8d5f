//! Files of results: names that were chosen for the user, names that the user gave, and full disks.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use super::{dipc, folder_with, printed};

/// Every command that names its result after its input, and that name.
const CHOSEN: [(&str, &str); 13] = [
    ("convert in.nettrace -f speedscope", "in.speedscope.json"),
    ("convert in.nettrace -f chromium", "in.chromium.json"),
    ("convert in.nettrace -f folded", "in.folded"),
    ("convert in.nettrace -f csv", "in.csv"),
    ("convert in.nettrace -f pprof", "in.pb.gz"),
    ("convert in.nettrace -f firefox", "in.firefox.json"),
    ("convert in.nettrace -f perfetto", "in.perfetto-trace"),
    ("convert in.nettrace -f flamegraph", "in.html"),
    ("convert in.nettrace -f html", "in.html"),
    ("convert in.nettrace -f jsonl", "in.jsonl"),
    ("gcdump convert heap.gcdump -f html", "heap.html"),
    ("gcdump convert heap.gcdump -f pprof", "heap.pb.gz"),
    ("gcdump convert dump.nettrace -f gcdump", "dump.gcdump"),
];

/// The folder may be one that others write to: what lies there in the way of a name is theirs.
#[test]
fn chosen_names_lead_to_no_other_file() {
    let folder = folder_with("net10-sample.nettrace");
    let at = |name: &str| folder.path().join(name);
    let heaps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/gcdump");
    fs::copy(heaps.join("files/small.gcdump"), at("heap.gcdump")).unwrap();
    fs::write(at("victim"), "precious").unwrap();
    fs::copy(heaps.join("recordings/small.nettrace"), at("dump.nettrace")).unwrap();
    for (command, name) in CHOSEN {
        let ways: [(&str, &dyn Fn()); 4] = [
            ("a link", &|| symlink(at("victim"), at(name)).unwrap()),
            ("a link that leads nowhere", &|| symlink(at("nowhere"), at(name)).unwrap()),
            ("a pipe", &|| assert!(Command::new("mkfifo").arg(at(name)).status().unwrap().success())),
            ("a file", &|| fs::write(at(name), "precious").unwrap()),
        ];
        for (what, put) in ways {
            put();
            let before = fs::symlink_metadata(at(name)).unwrap();
            let output = dipc(&folder, command);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(matches!(output.status.code(), Some(0 | 6)), "{command}, {what}: {errors}");
            let (stem, extension) = name.rsplit_once('.').unwrap();
            let other = format!("{stem}_2.{extension}");
            assert!(errors.contains(&format!("Not overwritten: {name}\n")), "{command}: {errors}");
            assert!(fs::metadata(at(&other)).unwrap().len() > 100, "{command}, {what}: {errors}");
            let after = fs::symlink_metadata(at(name)).unwrap();
            assert_eq!(before.ino(), after.ino(), "{command}, {what}");
            assert_eq!(fs::read(at("victim")).unwrap(), b"precious", "{command}, {what}");
            assert!(!at("nowhere").exists(), "{command}, {what}");
            fs::remove_file(at(&other)).unwrap();
            fs::remove_file(at(name)).unwrap();
        }
    }
}

#[test]
fn parts_lead_to_no_other_file() {
    let folder = folder_with("net10-sample.nettrace");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("victim"), "precious").unwrap();
    symlink(at("victim"), at("out.001.nettrace")).unwrap();
    assert!(Command::new("mkfifo").arg(at("out.002.nettrace")).status().unwrap().success());
    printed(&folder, "edit in.nettrace -o out.nettrace --split-size 20KB", 0);
    assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
    for part in ["out.001.nettrace", "out.002.nettrace"] {
        assert!(fs::symlink_metadata(at(part)).unwrap().is_file(), "{part}");
    }
}

/// Links are followed, and the file keeps its permissions and its other names.
#[test]
fn a_name_that_the_user_gave_is_that_file() {
    let folder = folder_with("net10-sample.nettrace");
    let at = |name: &str| folder.path().join(name);
    printed(&folder, "edit in.nettrace -o expected", 0);
    let expected = fs::read(at("expected")).unwrap();
    fs::write(at("file"), "before").unwrap();
    fs::set_permissions(at("file"), fs::Permissions::from_mode(0o604)).unwrap();
    symlink("file", at("link")).unwrap();
    symlink("new", at("dangling")).unwrap();
    fs::write(at("one"), "before").unwrap();
    fs::hard_link(at("one"), at("other")).unwrap();
    for (output, file) in [("link", "file"), ("dangling", "new"), ("one", "other")] {
        printed(&folder, &format!("edit in.nettrace -o {output}"), 0);
        assert!(fs::read(at(file)).unwrap() == expected, "{output}");
    }
    assert!(at("link").is_symlink() && at("dangling").is_symlink());
    assert_eq!(fs::metadata(at("file")).unwrap().mode() & 0o7777, 0o604);

    // A file that is standard output remains standard output.
    let mut command = Command::new(env!("CARGO_BIN_EXE_dipc"));
    command.args(["convert", "in.nettrace", "-f", "folded", "-o", "/dev/stdout"]).current_dir(folder.path());
    let output = fs::File::create(at("output")).unwrap();
    command.stdout(output.try_clone().unwrap()).stderr(Stdio::null());
    assert!(command.status().unwrap().success());
    assert!(output.metadata().unwrap().len() > 1000);
}

/// In a mount namespace of its own the program writes to a small file system.
#[test]
fn a_full_disk_leaves_no_cut_file() {
    const SCRIPT: &str = r#"mount -t tmpfs -o size=64k none "$1" || exit 99
cd "$1" || exit 99
printf old > old; head -c 32768 /dev/zero > filler
dipc="$2"; recording="$3"; shift 3
"$dipc" "$@"; code=$?
echo "old: $(cat old)"; ls -A; exit $code"#;
    let folder = folder_with("net10-sample.nettrace");
    let recording = folder.path().join("in.nettrace").into_os_string().into_string().unwrap();
    let mount = tempfile::tempdir().unwrap();
    for arguments in [
        "edit IN -o new",
        "edit IN -o old",
        "edit IN -o part --split-size 1MB",
        "repair IN -o old",
        "merge IN -o old",
        "convert IN -f jsonl -o new.jsonl",
        "convert IN -f speedscope -o new.json",
        "convert IN -f html -o new.html",
    ] {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh"]).arg(mount.path());
        command.args([env!("CARGO_BIN_EXE_dipc"), &recording]);
        command.args(arguments.replace("IN", &recording).split_whitespace());
        let output = command.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(99) || errors.contains("unshare failed") {
            eprintln!("NOT RUN: this user may not mount a small file system");
            return;
        }
        assert_eq!(output.status.code(), Some(1), "{arguments}: {errors}");
        assert!(errors.contains("No space left"), "{arguments}: {errors}");
        let left = String::from_utf8_lossy(&output.stdout);
        assert_eq!(left, "old: old\nfiller\nold\n", "{arguments}");
    }
}

/// `n.names.nettrace` would be taken for the names of `n.nettrace`.
#[test]
fn a_recording_gets_no_name_of_names() {
    let folder = folder_with("net10-sample.nettrace");
    for command in ["edit in.nettrace", "repair in.nettrace", "merge in.nettrace"] {
        let output = dipc(&folder, &format!("{command} -o n.names.nettrace"));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {errors}");
        assert!(errors.contains("it would be taken for the names of n.nettrace"), "{command}: {errors}");
        assert!(!folder.path().join("n.names.nettrace").exists(), "{command}");
    }
}

/// Nothing of a result is left by a program that is killed.
#[test]
#[cfg(target_os = "linux")]
fn a_killed_program_leaves_nothing() {
    let folder = folder_with("net10-sample.nettrace");
    // It waits for the rest of its input.
    let (reader, mut writer) = std::io::pipe().unwrap();
    let bytes = fs::read(folder.path().join("in.nettrace")).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_dipc"))
        .args(["edit", "-", "-o", "out.nettrace"])
        .current_dir(folder.path())
        .stdin(reader)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut writer, &bytes[..bytes.len() / 2]).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["in.nettrace"]);
}
