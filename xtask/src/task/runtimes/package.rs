//! Packages that contain a runtime: downloaded with the registry's client, verified by checksum, and
//! unpacked.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use crate::task::checksum::sha256;
use crate::task::workspace;

/// The registry's client that downloads a package.
#[derive(Clone, Copy)]
pub(super) enum Client {
    Npm,
    /// With the platform of the wheel.
    Pip(&'static str),
}

/// A package of a pinned version.
pub(super) struct Package {
    client: Client,
    /// The package and its version in the client's syntax.
    requirement: &'static str,
    file: &'static str,
    sha256: &'static str,
}

/// .NET Core 3.1.23: `dotnet`, its host and Microsoft.NETCore.App.
pub(super) const NET3_1: Package = Package {
    client: Client::Pip("manylinux1_x86_64"),
    requirement: "dotnetcore2==3.1.23",
    file: "dotnetcore2-3.1.23-py3-none-manylinux1_x86_64.whl",
    sha256: "5f076ddc39da0c685e7de20ecb91ee81185928918ec86fbeb3bffc55dd867ab5",
};

/// A single-file application of .NET 8.0.28, neither compressed nor trimmed.
pub(super) const NET8_0: Package = Package {
    client: Client::Npm,
    requirement: "@microsoft/sarif-multitool-linux@5.4.0",
    file: "microsoft-sarif-multitool-linux-5.4.0.tgz",
    sha256: "6139b3da8a8e8298a3bafbaedac90cff8be1a69e9a1715f79d45d2dc68d3a74a",
};

/// A self-contained application with .NET and ASP.NET Core 9.0.1 unpacked next to it.
pub(super) const NET9_0: Package = Package {
    client: Client::Npm,
    requirement: "@azure/mcp-linux-x64@0.0.10",
    file: "azure-mcp-linux-x64-0.0.10.tgz",
    sha256: "36f85164a91fc117fcab89ac50ba3c78338690b58001d0426c69060f8acc2d65",
};

/// A program with System.Data.SqlClient 4.6, the client of SQL Server.
pub(super) const SQL_CLIENT: Package = Package {
    client: Client::Pip("manylinux1_x86_64"),
    requirement: "mssql-cli==1.0.0",
    file: "mssql_cli-1.0.0-py2.py3-none-manylinux1_x86_64.whl",
    sha256: "edb3850ab8ffa077c64270f27263f6377fdb5bd5bb5c5b4990c5fb08f49627b6",
};

/// A single-file application of .NET 10.0.5.
pub(super) const NET10_0: Package = Package {
    client: Client::Npm,
    requirement: "@azure/mcp-linux-x64@2.0.0",
    file: "azure-mcp-linux-x64-2.0.0.tgz",
    sha256: "e93538f80f5b3582b30cf66cef7d2798682a7439815cd4c9c550893a3a3dd3f1",
};

/// The same application for Windows, with .NET 10.0.9.
pub(super) const NET10_0_WINDOWS: Package = Package {
    client: Client::Npm,
    requirement: "@azure/mcp-win32-x64@2.0.5",
    file: "azure-mcp-win32-x64-2.0.5.tgz",
    sha256: "813ec4c8cda4a802f16ef525a3a2c210415fcca445b72a154629dea940f5e7ab",
};

/// The same application for arm64, with .NET 10.0.9.
pub(super) const NET10_0_ARM64: Package = Package {
    client: Client::Npm,
    requirement: "@azure/mcp-linux-arm64@2.0.5",
    file: "azure-mcp-linux-arm64-2.0.5.tgz",
    sha256: "e0f78b26dbb75b755a5fd35d4add269ef14e8ed251e2d24b798a4f0fd573f0fd",
};

/// A library compiled ahead of time by .NET 10.0.13, for musl.
pub(super) const MUSL_LIBRARY: Package = Package {
    client: Client::Pip("musllinux_1_2_x86_64"),
    requirement: "excelreader-native==7.3.0",
    file: "excelreader_native-7.3.0-py3-none-musllinux_1_2_x86_64.whl",
    sha256: "28e4f0ea963bde0f5d08a9efbc899dae70321474f89c54e9f809229e97c03c0b",
};

impl Package {
    /// Returns the package's file from the folder `provided` or `downloads`; downloads it into the latter if
    /// neither has it.
    pub(super) fn obtain(&self, downloads: &Path, provided: Option<&Path>) -> Result<PathBuf> {
        for folder in provided.into_iter().chain([downloads]) {
            let file = folder.join(self.file);
            if file.exists() && sha256(&file)? == self.sha256 {
                return Ok(file);
            }
        }
        fs::create_dir_all(downloads)?;
        // An interrupted download must not leave a file with the package's name.
        let partial = tempfile::Builder::new().prefix(".partial-").tempdir_in(downloads)?;
        self.download(partial.path())?;
        let downloaded = partial.path().join(self.file);
        ensure!(downloaded.exists(), "{} did not download {}", self.requirement, self.file);
        let sum = sha256(&downloaded)?;
        ensure!(sum == self.sha256, "{}: its sha256 is {sum}, expected {}", self.file, self.sha256);
        let file = downloads.join(self.file);
        fs::rename(downloaded, &file)?;
        Ok(file)
    }

    fn download(&self, into: &Path) -> Result<()> {
        let mut command = self.client.download_command()?;
        command.arg(into).arg(self.requirement).stdin(Stdio::null()).stdout(Stdio::null());
        println!("downloading: {}", workspace::command_line(&command));
        workspace::execute(&mut command)
    }
}

impl Client {
    /// Returns the client's download command, up to the flag that takes the folder.
    fn download_command(self) -> Result<Command> {
        let (mut command, arguments): (Command, &[&str]) = match self {
            Self::Npm => {
                if !workspace::is_installed("npm", "--version") {
                    bail!("npm is not installed (Debian: apt-get install npm)");
                }
                (Command::new("npm"), &["pack", "--silent", "--pack-destination"])
            }
            Self::Pip(platform) => {
                let python = Command::new("python3")
                    .args(["-m", "pip", "--version"])
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .status();
                if !python.is_ok_and(|status| status.success()) {
                    bail!("pip is not installed (Debian: apt-get install python3-pip)");
                }
                let mut command = Command::new("python3");
                command.args(["-m", "pip"]);
                command.args([
                    "download",
                    "--quiet",
                    "--no-deps",
                    "--only-binary=:all:",
                    "--platform",
                    platform,
                ]);
                (command, &["--dest"])
            }
        };
        command.args(arguments);
        Ok(command)
    }
}

/// Unpacks an npm package, and returns its `package/` folder.
pub(super) fn unpack_npm(file: &Path, into: &Path) -> Result<PathBuf> {
    let reader = flate2::read::GzDecoder::new(File::open(file)?);
    tar::Archive::new(reader).unpack(into).with_context(|| file.display().to_string())?;
    Ok(into.join("package"))
}

/// Unpacks a Python wheel, which is a zip archive.
pub(super) fn unpack_wheel(file: &Path, into: &Path) -> Result<()> {
    let mut archive = zip::ZipArchive::new(File::open(file)?).with_context(|| file.display().to_string())?;
    archive.extract(into).with_context(|| file.display().to_string())
}
