//! The folder of each runtime, made from its packages.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::package::{
    self, MUSL_LIBRARY, NET3_1, NET8_0, NET9_0, NET10_0, NET10_0_ARM64, NET10_0_WINDOWS, Package, SQL_CLIENT,
};
use crate::task::workspace;

/// The folders of packages.
pub(super) struct Packages<'a> {
    /// The folder that downloads are kept in.
    pub(super) downloads: &'a Path,
    /// A folder of packages downloaded before.
    pub(super) provided: Option<&'a Path>,
}

impl Packages<'_> {
    fn obtain(&self, package: &Package) -> Result<PathBuf> {
        package.obtain(self.downloads, self.provided)
    }
}

/// Makes the workload compiled ahead of time, `workload`, from testdata.
pub(super) fn native_aot(_: &Packages<'_>, layout: &Path) -> Result<()> {
    let packed = workspace::root().join("testdata/workload/nativeaot/workload-9.xz");
    let mut reader = lzma_rust2::XzReader::new(File::open(&packed).context("testdata")?, false);
    let program = layout.join("workload");
    io::copy(&mut reader, &mut File::create(&program)?).with_context(|| packed.display().to_string())?;
    make_executable(&program)
}

/// Makes a folder with the library compiled ahead of time for musl.
pub(super) fn musl_library(packages: &Packages<'_>, layout: &Path) -> Result<()> {
    let wheel = packages.obtain(&MUSL_LIBRARY)?;
    let unpacked = tempfile::tempdir_in(layout)?;
    package::unpack_wheel(&wheel, unpacked.path())?;
    let library = unpacked.path().join("excelreader/_lib").join(super::MUSL_LIBRARY);
    fs::rename(&library, layout.join(super::MUSL_LIBRARY)).with_context(|| library.display().to_string())
}

/// Makes .NET Core 3.1.23: a folder with `dotnet`, as an installer does.
pub(super) fn net3_1(packages: &Packages<'_>, layout: &Path) -> Result<()> {
    let wheel = packages.obtain(&NET3_1)?;
    let unpacked = tempfile::tempdir_in(layout)?;
    package::unpack_wheel(&wheel, unpacked.path())?;
    let bin = unpacked.path().join("dotnetcore2/bin");
    for entry in fs::read_dir(&bin).with_context(|| bin.display().to_string())? {
        let entry = entry?;
        fs::rename(entry.path(), layout.join(entry.file_name()))?;
    }
    make_executable(&layout.join("dotnet"))
}

/// Makes .NET 8.0.28: an application that contains the runtime, from which the tests make their own programs.
pub(super) fn net8_0(packages: &Packages<'_>, layout: &Path) -> Result<()> {
    const PROGRAM: &str = "Sarif.Multitool";
    let package = packages.obtain(&NET8_0)?;
    let unpacked = tempfile::tempdir_in(layout)?;
    let program = layout.join(PROGRAM);
    fs::rename(package::unpack_npm(&package, unpacked.path())?.join(PROGRAM), &program)?;
    make_executable(&program)
}

/// Makes .NET 9.0.1: a folder like the 3.1 one, from an application that contains its frameworks unpacked,
/// and the `dotnet` of 3.1.
pub(super) fn net9_0(packages: &Packages<'_>, layout: &Path) -> Result<()> {
    let (wheel, application) = (packages.obtain(&NET3_1)?, packages.obtain(&NET9_0)?);
    let unpacked = tempfile::tempdir_in(layout)?;
    package::unpack_wheel(&wheel, unpacked.path())?;
    let dotnet = layout.join("dotnet");
    fs::rename(unpacked.path().join("dotnetcore2/bin/dotnet"), &dotnet)?;
    make_executable(&dotnet)?;

    let application = package::unpack_npm(&application, unpacked.path())?.join("dist");
    let deps: Value = serde_json::from_reader(File::open(application.join("azmcp.deps.json"))?)?;
    for framework in [CORE, "Microsoft.AspNetCore.App"] {
        framework_folder(framework, &deps, &application, layout)?;
    }
    let core = layout.join("shared/Microsoft.NETCore.App/9.0.1");
    let resolver = layout.join("host/fxr/9.0.1");
    fs::create_dir_all(&resolver)?;
    fs::rename(core.join("libhostfxr.so"), resolver.join("libhostfxr.so"))?;
    make_executable(&core.join("createdump"))
}

/// Makes a folder with System.Data.SqlClient 4.6, which programs of the tests use on any runtime.
pub(super) fn sql_client(packages: &Packages<'_>, layout: &Path) -> Result<()> {
    const LIBRARY: &str = "System.Data.SqlClient.dll";
    let wheel = packages.obtain(&SQL_CLIENT)?;
    let unpacked = tempfile::tempdir_in(layout)?;
    package::unpack_wheel(&wheel, unpacked.path())?;
    let library = unpacked.path().join("mssqlcli/mssqltoolsservice/bin").join(LIBRARY);
    fs::rename(&library, layout.join(LIBRARY)).with_context(|| library.display().to_string())
}

/// Makes a `shared/NAME/9.0.1` folder: the files that the application's manifest lists for the framework's
/// runtime pack, and a manifest of the framework, made from that entry.
fn framework_folder(framework: &str, deps: &Value, application: &Path, layout: &Path) -> Result<()> {
    const TARGET: &str = ".NETCoreApp,Version=v9.0/linux-x64";
    let target = &deps["targets"][TARGET];
    let pack = format!("runtimepack.{framework}.Runtime.linux-x64/9.0.1");
    let mut entry = target[&pack].as_object().with_context(|| format!("the manifest lacks {pack}"))?.clone();
    let folder = layout.join("shared").join(framework).join("9.0.1");
    fs::create_dir_all(&folder)?;
    let runtime = entry.get_mut("runtime").and_then(Value::as_object_mut).context("no runtime files")?;
    for package in replaced(framework, target) {
        let files = target[&package]["runtime"].as_object();
        let (path, versions) = files
            .and_then(|files| files.iter().next())
            .with_context(|| format!("the manifest lacks {package}"))?;
        let name = path.rsplit('/').next().unwrap_or(path);
        runtime.insert(name.to_owned(), versions.clone());
    }
    for kind in ["runtime", "native"] {
        let Some(files) = entry.get(kind).and_then(Value::as_object) else { continue };
        for name in files.keys() {
            let file = application.join(name);
            fs::rename(&file, folder.join(name)).with_context(|| file.display().to_string())?;
        }
    }
    if let Some(native) = entry.get_mut("native").and_then(Value::as_object_mut) {
        // An installation has this file of the pack elsewhere, in host/fxr.
        native.remove("libhostfxr.so");
    }
    let library = format!("{framework}/9.0.1");
    let manifest = json!({
        "runtimeTarget": { "name": TARGET, "signature": "" },
        "targets": { TARGET: { &library: entry } },
        "libraries": { &library: { "type": "package", "serviceable": true, "sha512": "" } },
    });
    fs::write(folder.join(format!("{framework}.deps.json")), serde_json::to_vec_pretty(&manifest)?)?;
    if framework != CORE {
        // The framework that it needs.
        let core = json!({ "tfm": "net9.0", "framework": { "name": CORE, "version": "9.0.1" } });
        let settings = serde_json::to_vec_pretty(&json!({ "runtimeOptions": core }))?;
        fs::write(folder.join(format!("{framework}.runtimeconfig.json")), settings)?;
    }
    Ok(())
}

/// The packages by which the application has replaced assemblies of a framework: its manifest lists them
/// apart from the runtime pack.
fn replaced(framework: &str, target: &Value) -> Vec<String> {
    if framework == CORE {
        return REPLACED.map(ToOwned::to_owned).to_vec();
    }
    let packages = target.as_object().into_iter().flatten().map(|(package, _)| package);
    packages
        .filter(|name| name.starts_with("Microsoft.Extensions.") && name.ends_with("/9.0.4"))
        .cloned()
        .collect()
}

/// The framework that all programs use.
const CORE: &str = "Microsoft.NETCore.App";

/// Those packages of Microsoft.NETCore.App.
const REPLACED: [&str; 4] = [
    "System.Diagnostics.DiagnosticSource/9.0.4",
    "System.Formats.Asn1/9.0.4",
    "System.Text.Json/9.0.4",
    "System.Threading.Channels/9.0.4",
];

/// Makes .NET 10.0.5: an application, `azmcp`, that contains the runtime. The application is trimmed, so few
/// other programs find the parts that they use.
pub(super) fn net10_0(packages: &Packages<'_>, layout: &Path) -> Result<()> {
    unpack_application(&packages.obtain(&NET10_0)?, layout)?;
    make_executable(&layout.join("azmcp"))
}

/// Makes the same application for arm64, with .NET 10.0.9.
pub(super) fn net10_0_arm64(packages: &Packages<'_>, layout: &Path) -> Result<()> {
    unpack_application(&packages.obtain(&NET10_0_ARM64)?, layout)?;
    make_executable(&layout.join("azmcp"))
}

/// Makes the same application for Windows, with .NET 10.0.9.
pub(super) fn net10_0_windows(packages: &Packages<'_>, layout: &Path) -> Result<()> {
    unpack_application(&packages.obtain(&NET10_0_WINDOWS)?, layout)
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

/// Sets the permission to execute, which archives of both kinds lose.
fn make_executable(program: &Path) -> Result<()> {
    fs::set_permissions(program, Permissions::from_mode(0o755)).with_context(|| program.display().to_string())
}
