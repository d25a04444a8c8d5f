//! Tests on Linux of other processors: with 32-bit addresses, with the most significant byte first, and
//! aarch64.

use std::process::Command;

use anyhow::Result;

use crate::task::steps::Steps;
use crate::task::toolchain::{Toolchain, program};
use crate::task::workspace::execute;

/// A Linux target with test programs that run here.
struct Guest {
    target: &'static str,
    property: &'static str,
    /// The C compiler that links its programs.
    linker: &'static str,
    /// The Debian packages of the linker and of the C library.
    packages: &'static str,
    /// The program that runs its programs; `None` if the processor does.
    emulator: Option<&'static str>,
}

const GUESTS: [Guest; 3] = [
    Guest {
        target: "i686-unknown-linux-gnu",
        property: "32-bit addresses",
        linker: "i686-linux-gnu-gcc",
        packages: "gcc-i686-linux-gnu libc6-dev-i386-cross",
        emulator: if cfg!(target_arch = "x86_64") { None } else { Some("qemu-i386-static") },
    },
    Guest {
        target: "s390x-unknown-linux-gnu",
        property: "big-endian",
        linker: "s390x-linux-gnu-gcc",
        packages: "gcc-s390x-linux-gnu libc6-dev-s390x-cross",
        emulator: Some("qemu-s390x-static"),
    },
    Guest {
        target: "aarch64-unknown-linux-gnu",
        property: "weakly ordered memory",
        linker: "aarch64-linux-gnu-gcc",
        packages: "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
        emulator: if cfg!(target_arch = "aarch64") { None } else { Some("qemu-aarch64-static") },
    },
];

/// The crates that parse bytes from outside, and the crate that writes them.
pub(crate) const PARSERS: [&str; 13] = [
    "dipc-wire",
    "nettrace",
    "nettrace-synth",
    "nettrace-writer",
    "clr-events",
    "nettrace-edit",
    "clr-counters",
    "clr-activity",
    "clr-conditions",
    "gcdump",
    "portable-pdb",
    "clr-dump",
    "nettrace-export",
];

/// The tests of these crates that need neither minutes of emulation nor a file system, and `real` and
/// `arm64`: the core dumps and PDBs of `testdata` are of x86-64 and arm64, and must read the same on every
/// processor.
const TESTS: [&str; 8] = ["round_trip", "synth", "hostile", "schema", "events", "language", "real", "arm64"];

/// Returns the linkers, each with its Debian packages.
#[cfg(test)]
pub(crate) fn linkers() -> impl Iterator<Item = (&'static str, &'static str)> {
    GUESTS.iter().map(|guest| (guest.linker, guest.packages))
}

pub(super) fn run(steps: &mut Steps, is_chosen: impl Fn(&str) -> bool) {
    for guest in GUESTS.iter().filter(|guest| is_chosen(guest.target)) {
        let name = format!("tests of the parsers on {} ({})", guest.target, guest.property);
        match guest.test_command() {
            Ok(mut command) => steps.run(&name, || execute(&mut command)),
            Err(missing) => steps.not_run(&name, &format!("{missing:#}")),
        }
    }
}

impl Guest {
    fn test_command(&self) -> Result<Command> {
        let toolchain = Toolchain::install_for_target(self.target)?;
        let install = |packages: &str| format!("Debian: apt-get install {packages}");
        let linker = program(&[self.linker], &install(self.packages))?;
        let mut command = toolchain.cargo("test", self.target);
        let variable =
            |name: &str| format!("CARGO_TARGET_{}_{name}", self.target.to_uppercase().replace('-', "_"));
        command.env(variable("LINKER"), linker);
        // A static program does not need the target's libraries at run time.
        command.env(variable("RUSTFLAGS"), "-C target-feature=+crt-static");
        if let Some(emulator) = self.emulator {
            command.env(variable("RUNNER"), program(&[emulator], &install("qemu-user-static"))?);
        }
        // An emulated processor is some ten times slower.
        command.env("PROPTEST_CASES", "64").arg("--no-fail-fast").arg("--lib");
        command.args(TESTS.iter().flat_map(|test| ["--test", *test]));
        command.args(PARSERS.iter().flat_map(|package| ["-p", *package]));
        Ok(command)
    }
}
