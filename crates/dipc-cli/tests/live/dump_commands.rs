//! Commands of dotnet-dump, several views at once, and core dumps from pipes. No runtime is needed for most.

use std::fs::File;
use std::process::Stdio;

use crate::program::{Finished, Running, dipc, run};
use crate::runtime::Runtime;
use crate::workload::Workload;

/// A core dump of the repository, in a folder.
fn core(name: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("core");
    std::fs::write(&path, testdata::bytes(&format!("cores/{name}.core.xz"))).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

fn analyze(core: &str, words: &[&str]) -> Finished {
    run([&["dump", "analyze", core], words].concat())
}

#[test]
fn commands_of_dotnet_dump_show_what_views_show() {
    let (_folder, core) = core("shop-heap");
    for (command, view) in [
        (&["CLRStack", "-all"][..], &["stacks"][..]),
        (&["clrstack", "-f"], &["stacks", "--native"]),
        (&["threads", "-live"], &["threads", "--live"]),
        (&["ClrThreads"], &["threads"]),
        (&["PE", "-nested"], &["exceptions"]),
        (&["dumpheap", "-stat", "--head", "5"], &["heap", "--head", "5"]),
        (
            &["dumpheap", "-type", "Shop.Row", "--head", "3"],
            &["objects", "--type", "Shop.Row", "--head", "3"],
        ),
        (&["syncblk"], &["locks"]),
        (&["dumpasync", "--coalesce"], &["async"]),
        (&["gchandles", "-stat"], &["handles"]),
        (&["lm"], &["modules"]),
    ] {
        let (one, other) = (analyze(&core, command), analyze(&core, view));
        assert_eq!((one.code, &one.stderr), (other.code, &other.stderr), "{command:?}");
        assert_eq!(one.stdout, other.stdout, "{command:?}");
        assert!(!one.stdout.is_empty(), "{command:?}: {one:?}");
    }
    for (command, help) in [
        (&["name2ee", "x"][..], "help: dump analyze CORE objects --type TYPE finds a type by its name"),
        (&["threads", "-special"], "help: of dotnet-dump's flags, 'threads' takes -live"),
        (&["dumpheap", "-gen", "2"], "error: dumpheap -gen: dipc does not have this flag"),
        (&["dumpheap", "-mt", "1"], "help: dump analyze CORE objects --type TYPE"),
    ] {
        let failed = analyze(&core, command).with_code(2);
        assert!(failed.stderr.contains(help), "{command:?}: {}", failed.stderr);
    }
    let help = analyze(&core, &["stacks", "--help"]).with_code(0).text();
    assert!(!help.contains("treemap") && !help.contains("possible values"), "{help}");
}

#[test]
fn commands_are_carried_out_one_after_the_other() {
    let (_folder, core) = core("shop-heap");
    let [threads, stacks] = ["threads", "stacks"].map(|view| analyze(&core, &[view]).with_code(0).text());
    let both = analyze(&core, &["-c", "clrthreads", "-c", "CLRStack -all", "-c", "exit", "-c", "nonsense"]);
    assert_eq!(both.with_code(0).text(), threads + &stacks);
    // Nothing is printed before all are understood.
    let wrong = analyze(&core, &["-c", "clrthreads", "-c", "nonsense"]).with_code(2);
    assert!(wrong.stdout.is_empty() && wrong.stderr.contains("'nonsense'"), "{wrong:?}");
}

#[test]
fn a_core_is_read_from_standard_input() {
    let (_folder, core) = core("shop-heap");
    let expected = analyze(&core, &["stacks"]).with_code(0).stdout;
    let packed = crate::runtime::testdata().join("cores/shop-heap.core.xz");
    for file in [core.as_str(), packed.to_str().unwrap()] {
        let mut command = dipc(["dump", "analyze", "-", "stacks"]);
        command.stdin(File::open(file).unwrap());
        let read = Running::start(command).finish();
        assert_eq!((read.code, read.stdout), (Some(0), expected.clone()), "{file}: {}", read.stderr);
    }
    let mut command = dipc(["dump", "analyze", "-", "stacks"]);
    command.stdin(Stdio::null());
    let empty = Running::start(command).finish();
    assert_eq!(empty.code, Some(6), "{empty:?}");
}

#[test]
fn a_core_is_streamed_from_one_program_to_another() {
    let Some(mut workload) = Workload::start(Runtime::Net9_0) else { return };
    workload.run("park");
    let pid = workload.pid().to_string();
    let mut writer = dipc(["dump", "-p", &pid, "--stream", "--type", "mini", "-o", "-"]);
    writer.stderr(Stdio::null());
    let mut writer = writer.spawn().unwrap();
    let mut reader = dipc(["dump", "analyze", "-", "stacks"]);
    reader.stdin(writer.stdout.take().unwrap());
    let read = Running::start(reader).finish().with_code(0);
    assert!(writer.wait().unwrap().success());
    assert!(read.text().contains("\n  Parked.Sleeper()\n"), "{}", read.text());
    let at = |name: &str| workload.folder().join(name).into_os_string().into_string().unwrap();
    // As dotnet-dump writes it.
    run(["dump", "collect", "-p", &pid, "--type", "Mini", "-o", &at("core")]).with_code(0);
    assert!(std::fs::read(at("core")).unwrap().starts_with(b"\x7fELF"));
    // A name that promises another compression is refused before anything is written.
    run(["dump", "-p", &pid, "--stream", "-o", &at("core.zst")])
        .with_code(2)
        .assert_error_names(&["core.zst", "zstd"]);
    assert!(!std::path::Path::new(&at("core.zst")).exists());
}
