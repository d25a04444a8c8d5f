//! Packages of Debian, unpacked and not installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::task::workspace::execute;

/// The packages of an architecture, below a folder.
pub(super) struct Packages {
    folder: PathBuf,
    /// Options of apt that choose another architecture or release than this machine's; none for its own.
    options: Vec<String>,
    /// The end of the names of kernels.
    kernels: &'static str,
}

impl Packages {
    /// Packages for this machine, of its own lists.
    pub(super) fn own(folder: &Path) -> Self {
        Self { folder: folder.join("packages"), options: Vec::new(), kernels: "-amd64" }
    }

    /// Packages for arm64: this machine's lists need not have them.
    pub(super) fn arm64(folder: &Path) -> Result<Self> {
        let options = ["APT::Architecture=arm64", "APT::Architectures=arm64"].map(ToOwned::to_owned);
        Self::separate(folder.join("packages-arm64"), &options, "-arm64")
    }

    /// Packages of Debian 11 for this machine, of the archive that this machine's come from.
    pub(super) fn bullseye(folder: &Path) -> Result<Self> {
        const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
        let folder = folder.join("packages-bullseye");
        fs::create_dir_all(&folder)?;
        let sources = folder.join("sources.list");
        if !sources.exists() {
            let mut targets = Command::new("apt-get");
            targets.args([
                "indextargets",
                "--format",
                "$(ORIGIN)/$(LABEL) $(REPO_URI)",
                "Created-By: Packages",
            ]);
            let output = targets.stderr(Stdio::inherit()).output().context("apt-get")?;
            let targets = String::from_utf8(output.stdout)?;
            let archive = targets.lines().find_map(|line| line.strip_prefix("Debian/Debian "));
            let archive = archive.context("apt has no archive of Debian")?;
            fs::write(&sources, format!("deb [signed-by={KEYS}] {archive} bullseye main\n"))?;
        }
        let options =
            [format!("Dir::Etc::sourcelist={}", sources.display()), "Dir::Etc::sourceparts=-".to_owned()];
        Self::separate(folder, &options, "-amd64")
    }

    /// Packages of lists that are downloaded unless an earlier run did.
    fn separate(folder: PathBuf, chosen: &[String], kernels: &'static str) -> Result<Self> {
        let apt = folder.join("apt");
        let lists = apt.join("lists");
        let options = [
            format!("Dir::State::lists={}", lists.display()),
            format!("Dir::State::status={}", apt.join("status").display()),
            format!("Dir::Cache={}", apt.join("cache").display()),
        ];
        let options = chosen.iter().cloned().chain(options);
        let options = options.flat_map(|option| ["-o".to_owned(), option]).collect();
        let packages = Self { folder, options, kernels };
        if !lists.exists() {
            for folder in [lists.join("partial"), apt.join("cache/archives/partial")] {
                fs::create_dir_all(folder)?;
            }
            // Nothing is installed.
            fs::write(apt.join("status"), "")?;
            let mut update = Command::new("apt-get");
            execute(
                update.args(["-qq", "-o", "APT::Sandbox::User=root"]).args(&packages.options).arg("update"),
            )?;
        }
        Ok(packages)
    }

    /// Returns the folder that a package is unpacked in, downloading it unless an earlier run did.
    pub(super) fn unpacked(&self, package: &str) -> Result<PathBuf> {
        let folder = &self.folder;
        let unpacked = folder.join(package);
        if unpacked.exists() {
            return Ok(unpacked);
        }
        download(package, folder, &self.options, &unpacked)?;
        Ok(unpacked)
    }

    /// Returns the folder that packages are unpacked in, each in a folder of its name.
    pub(super) fn into_folder(self) -> PathBuf {
        self.folder
    }

    /// Returns the name of the newest kernel package of a series (`6.12`) that apt knows.
    pub(super) fn newest_kernel(&self, series: &str) -> Result<String> {
        let prefix = format!("linux-image-{series}.");
        let mut list = Command::new("apt-cache");
        list.args(&self.options).args(["pkgnames", &prefix]).stderr(Stdio::inherit());
        let output = list.output().context("apt-cache, which lists the packages of Debian and Ubuntu")?;
        let names = String::from_utf8(output.stdout)?;
        let newest =
            names.lines().filter_map(|name| Some((kernel_version(name, &prefix, self.kernels)?, name))).max();
        let (_, name) = newest.with_context(|| {
            format!("apt knows no package {prefix}*{}: it may need apt-get update", self.kernels)
        })?;
        Ok(name.to_owned())
    }

    /// Returns busybox, which needs no other file.
    pub(super) fn busybox(&self) -> Result<PathBuf> {
        let package = self.unpacked("busybox-static")?;
        let places = ["bin/busybox", "usr/bin/busybox"].map(|path| package.join(path));
        places.into_iter().find(|path| path.exists()).context("busybox in its package")
    }
}

/// Downloads a package, and unpacks it to `unpacked`.
fn download(package: &str, folder: &Path, options: &[String], unpacked: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let partial = tempfile::Builder::new().prefix(".partial-").tempdir_in(folder)?;
    println!("downloading {package}");
    // Root's download would otherwise be another user's, who may not write here.
    let mut apt = Command::new("apt-get");
    apt.args(["-qq", "-o", "APT::Sandbox::User=root"]).args(options).args(["download", package]);
    execute(apt.current_dir(partial.path()))?;
    let entries = fs::read_dir(partial.path())?.collect::<Result<Vec<_>, _>>()?;
    let [archive] = &entries[..] else { bail!("apt-get download {package} left {} files", entries.len()) };
    let content = partial.path().join("content");
    execute(Command::new("dpkg-deb").arg("--extract").arg(archive.path()).arg(&content))?;
    fs::rename(&content, unpacked).with_context(|| unpacked.display().to_string())
}

/// Returns the numbers after the series in the name of a package with Debian's ordinary kernel:
/// `linux-image-6.12.117+deb12-amd64` is 117 and 12, `linux-image-6.1.0-57-amd64` 0 and 57.
fn kernel_version(name: &str, prefix: &str, suffix: &str) -> Option<Vec<u32>> {
    let version = name.strip_prefix(prefix)?.strip_suffix(suffix)?.replace("+deb", "-");
    // Other flavours, such as `cloud` and `rt`, are not numbers.
    version.split(['.', '-']).map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_have_an_order_and_no_flavour() {
        let version = |name| kernel_version(name, "linux-image-6.12.", "-amd64");
        assert_eq!(version("linux-image-6.12.117+deb12-amd64"), Some(vec![117, 12]));
        assert!(version("linux-image-6.12.117+deb12-amd64") > version("linux-image-6.12.99+deb12-amd64"));
        for other in [
            "linux-image-6.12.117+deb12-cloud-amd64",
            "linux-image-6.12.117+deb12-rt-amd64",
            "linux-image-6.12.117+deb12-amd64-dbg",
            "linux-image-6.12.117+deb12-amd64-unsigned",
            "linux-image-6.1.0-57-amd64",
        ] {
            assert_eq!(version(other), None, "{other}");
        }
        let version = |name| kernel_version(name, "linux-image-6.1.", "-amd64");
        assert!(version("linux-image-6.1.0-57-amd64") > version("linux-image-6.1.0-9-amd64"));
        assert_eq!(version("linux-image-6.12.117+deb12-amd64"), None);
        // The kernel for clouds has no files of the host.
        let version = |name| kernel_version(name, "linux-image-6.12.", "-arm64");
        assert_eq!(version("linux-image-6.12.117+deb12-arm64"), Some(vec![117, 12]));
        assert_eq!(version("linux-image-6.12.117+deb12-cloud-arm64"), None);
    }
}
