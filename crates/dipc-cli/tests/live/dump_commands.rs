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
fn commands_of_dotnet_dump_match_the_views() {
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
        (&["dumpheap", "-stat", "-gen", "1"], &["heap", "--generation", "1"]),
        (&["DumpGen", "gen1", "-type", "Shop.Row"], &["objects", "--type", "Shop.Row", "--generation", "1"]),
        (&["eeheap", "-gc"], &["generations"]),
        (&["eeheap", "-loader"], &["memory", "--parts"]),
        (&["maddress", "-summary"], &["memory"]),
        (&["gcheapstat"], &["generations"]),
        (&["FinalizeQueue", "-stat"], &["finalizers"]),
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
        (&["dumpheap", "-gen", "7"], "invalid value '7' for '--generation <GENERATION>'"),
        (&["dumpheap", "-heap", "1"], "error: dumpheap -heap: dipc does not have this flag"),
        (&["maddress", "-list", "7"], "help: dump analyze CORE memory --format json"),
        (&["dumpheap", "-mt", "1"], "help: dump analyze CORE objects --type TYPE"),
    ] {
        let failed = analyze(&core, command).with_code(2);
        assert!(failed.stderr.contains(help), "{command:?}: {}", failed.stderr);
    }
    let nowhere = analyze(&core, &["gcwhere", "10"]).with_code(1);
    assert!(nowhere.stderr.contains("0x10: not an address of the managed heap"), "{}", nowhere.stderr);
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

#[test]
fn core_dumps_of_other_processors_are_refused_by_name() {
    const EM_RISCV: u16 = 243;
    let (folder, core) = core("parked-mini");
    let mut bytes = std::fs::read(&core).unwrap();
    bytes[18..20].copy_from_slice(&EM_RISCV.to_le_bytes());
    std::fs::write(&core, bytes).unwrap();
    let copy = folder.path().join("copy");
    for command in [
        &["dump", "analyze", &core][..],
        &["dump", "analyze", &core, "stacks", "--format", "json"],
        &["dump", "strip", &core, "-o", copy.to_str().unwrap()],
        &["dump", "strip", &core, "--privacy"],
        &["dump", "analyze", &core, "heap"],
    ] {
        let refused = run(command.iter().copied()).with_code(1);
        let why =
            "programs of riscv64 are not read yet, only those of x86-64 and arm64\nhelp: dotnet-dump analyze";
        assert!(refused.stderr.contains(why), "{command:?}: {}", refused.stderr);
    }
    assert!(!copy.exists());
}

#[test]
fn compressed_files_that_unpack_to_something_else_are_not_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bomb.zst");
    // A frame of zstd of 1000 blocks, each of which is 128 KiB of one byte.
    let mut bomb = b"\x28\xb5\x2f\xfd\0\x58".to_vec();
    for block in 0..1000_u32 {
        let header = ((131_072 << 3) | 2 | u32::from(block == 999)).to_le_bytes();
        bomb.extend_from_slice(&[header[0], header[1], header[2], b'x']);
    }
    std::fs::write(&file, bomb).unwrap();
    let refused = run(["dump", "analyze", file.to_str().unwrap()]).with_code(1);
    assert!(refused.stderr.contains("its content is not a core dump"), "{}", refused.stderr);
}
