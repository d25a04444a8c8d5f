//! Dumps, by each form and of each type.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use dipc_client::dipc_wire::{
    Command, DumpFlags, DumpType, GenerateCoreDump1, GenerateCoreDump2, GenerateCoreDump3, HResult,
};

use crate::Case;
use crate::forms::{NO_FILE, running};
use crate::runtime::Runtime;
use crate::subject::{Subject, file};

const ALL_FLAGS: DumpFlags = DumpFlags(7);

pub(crate) const CASES: &[Case] = &[
    running("GenerateCoreDump", |it| first(it, DumpType::FULL, DumpFlags::NONE)),
    running("GenerateCoreDump2", |it| {
        let path = it.path("core").to_str().unwrap().to_owned();
        dump(it, &GenerateCoreDump2 { path, dump_type: DumpType::FULL, flags: DumpFlags::NONE }, "core")
    }),
    running("GenerateCoreDump3", |it| third(it, DumpType::FULL, DumpFlags::NONE)),
    running("GenerateCoreDump, normal", |it| first(it, DumpType::NORMAL, DumpFlags::NONE)),
    running("GenerateCoreDump3, normal", |it| third(it, DumpType::NORMAL, DumpFlags::NONE)),
    running("GenerateCoreDump, with heap", |it| first(it, DumpType::WITH_HEAP, DumpFlags::NONE)),
    running("GenerateCoreDump3, with heap", |it| third(it, DumpType::WITH_HEAP, DumpFlags::NONE)),
    running("GenerateCoreDump, triage", |it| first(it, DumpType::TRIAGE, DumpFlags::NONE)),
    running("GenerateCoreDump3, triage", |it| third(it, DumpType::TRIAGE, DumpFlags::NONE)),
    running("GenerateCoreDump, type 0", |it| first(it, DumpType(0), DumpFlags::NONE)),
    running("GenerateCoreDump3, type 5", |it| third(it, DumpType(5), DumpFlags::NONE)),
    running("GenerateCoreDump, normal, all flags", |it| first(it, DumpType::NORMAL, ALL_FLAGS)),
    running("GenerateCoreDump3, normal, all flags", |it| third(it, DumpType::NORMAL, ALL_FLAGS)),
    running("GenerateCoreDump, relative path", |it| {
        let (dump_type, flags) = (DumpType::FULL, DumpFlags::NONE);
        dump(it, &GenerateCoreDump1 { path: "core", dump_type, flags }, "core")
    }),
    running("GenerateCoreDump, %p in its path", |it| {
        let path = it.path("core.%p").to_str().unwrap().to_owned();
        let (dump_type, flags) = (DumpType::FULL, DumpFlags::NONE);
        let answer = request(it, &GenerateCoreDump1 { path, dump_type, flags });
        let names = [
            ("the pid", format!("core.{}", it.pid())),
            ("the pid in hexadecimal", format!("core.0x{:x}", it.pid())),
        ];
        match names.into_iter().find(|(_, name)| fs::remove_file(it.path(name)).is_ok()) {
            Some((what, _)) => format!("{answer}: by {what}"),
            None => answer,
        }
    }),
    running("GenerateCoreDump into a folder that does not exist", |it| {
        request(it, &GenerateCoreDump1 { path: NO_FILE, dump_type: DumpType::FULL, flags: DumpFlags::NONE })
    }),
    running("GenerateCoreDump2 into a folder that does not exist", |it| {
        request(it, &GenerateCoreDump2 { path: NO_FILE, dump_type: DumpType::FULL, flags: DumpFlags::NONE })
    }),
    running("GenerateCoreDump3 into a folder that does not exist", |it| {
        request(it, &GenerateCoreDump3 { path: NO_FILE, dump_type: DumpType::FULL, flags: DumpFlags::NONE })
    }),
    running("GenerateCoreDump3 where createdump is not executable", |it| {
        without_createdump(it, |it| {
            let path = it.path("core").to_str().unwrap().to_owned();
            it.send_command(&GenerateCoreDump3 { path, dump_type: DumpType::FULL, flags: DumpFlags::NONE })
        })
    }),
    running("Target::dump where createdump is not executable", |it| {
        without_createdump(it, |it| {
            let error = it.target().dump(&dipc_client::Dump::new("core")).unwrap_err();
            it.said(&error)
        })
    }),
];

fn first(it: &mut Subject, dump_type: DumpType, flags: DumpFlags) -> String {
    let path = it.path("core").to_str().unwrap().to_owned();
    dump(it, &GenerateCoreDump1 { path, dump_type, flags }, "core")
}

fn third(it: &mut Subject, dump_type: DumpType, flags: DumpFlags) -> String {
    let path = it.path("core").to_str().unwrap().to_owned();
    dump(it, &GenerateCoreDump3 { path, dump_type, flags }, "core")
}

fn dump<C: Command<Reply = HResult>>(it: &mut Subject, command: &C, name: &str) -> String {
    let answer = request(it, command);
    if answer != "ok" {
        return answer;
    }
    let (core, report) = (it.path(name), it.path(&format!("{name}.crashreport.json")));
    let written = file(&core);
    let report = if fs::remove_file(report).is_ok() { ", with a crash report" } else { "" };
    let _ = fs::remove_file(core);
    format!("{answer}: {written}{report}")
}

/// Requests a dump. A single file of .NET 8 serves no other case: from then on the child process answers.
fn request<C: Command<Reply = HResult>>(it: &mut Subject, command: &C) -> String {
    if it.runtime == Runtime::Net8_0 {
        it.spend();
    }
    it.send_command(command)
}

/// Damages a process so that its runtime cannot start its `createdump`, if the runtime has one.
fn without_createdump(like: &mut Subject, act: fn(&mut Subject) -> String) -> String {
    let runtime = like.runtime;
    if !matches!(runtime, Runtime::Net3_1 | Runtime::Net9_0) {
        return "has none of its own".into();
    }
    // Links to all of the runtime's files except one.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    link_all(&runtime.folder(), folder.path());
    let mut it = Subject::of(runtime, runtime.program_in(folder.path()), false);
    let outcome = act(&mut it);
    let fate = it.fate().map_or(String::new(), |fate| format!("; {fate}"));
    outcome.replace(&folder.path().display().to_string(), "RUNTIME") + &fate
}

fn link_all(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let copy = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&copy).unwrap();
            link_all(&entry.path(), &copy);
        } else if entry.file_name() == "createdump" {
            fs::copy(entry.path(), &copy).unwrap();
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o644)).unwrap();
        } else if fs::hard_link(entry.path(), &copy).is_err() {
            // On another filesystem.
            fs::copy(entry.path(), &copy).unwrap();
        }
    }
}
