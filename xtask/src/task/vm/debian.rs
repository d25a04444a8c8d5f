//! Packages of Debian, unpacked and not installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::task::workspace::execute;

/// Returns the folder that a package is unpacked in, downloading it unless an earlier run did.
pub(super) fn unpacked(package: &str, folder: &Path) -> Result<PathBuf> {
    let unpacked = folder.join("packages").join(package);
    if unpacked.exists() {
        return Ok(unpacked);
    }
    let folder = folder.join("packages");
    fs::create_dir_all(&folder)?;
    let partial = tempfile::Builder::new().prefix(".partial-").tempdir_in(&folder)?;
    println!("downloading {package}");
    // Root's download would otherwise be another user's, who may not write here.
    let mut apt = Command::new("apt-get");
    apt.args(["-qq", "-o", "APT::Sandbox::User=root", "download", package]).current_dir(partial.path());
    execute(&mut apt)?;
    let entries = fs::read_dir(partial.path())?.collect::<Result<Vec<_>, _>>()?;
    let [archive] = &entries[..] else { bail!("apt-get download {package} left {} files", entries.len()) };
    let content = partial.path().join("content");
    execute(Command::new("dpkg-deb").arg("--extract").arg(archive.path()).arg(&content))?;
    fs::rename(&content, &unpacked).with_context(|| unpacked.display().to_string())?;
    Ok(unpacked)
}

/// Returns the name of the newest kernel package of a series (`6.12`) that apt knows.
pub(super) fn newest_kernel(series: &str) -> Result<String> {
    let prefix = format!("linux-image-{series}.");
    let output = Command::new("apt-cache").args(["pkgnames", &prefix]).stderr(Stdio::inherit()).output();
    let output = output.context("apt-cache, which lists the packages of Debian and Ubuntu")?;
    let names = String::from_utf8(output.stdout)?;
    let newest = names.lines().filter_map(|name| Some((kernel_version(name, &prefix)?, name))).max();
    let (_, name) = newest
        .with_context(|| format!("apt knows no package {prefix}*-amd64: it may need apt-get update"))?;
    Ok(name.to_owned())
}

/// Returns the numbers after the series in the name of a package with Debian's ordinary kernel:
/// `linux-image-6.12.117+deb12-amd64` is 117 and 12, `linux-image-6.1.0-57-amd64` 0 and 57.
fn kernel_version(name: &str, prefix: &str) -> Option<Vec<u32>> {
    let version = name.strip_prefix(prefix)?.strip_suffix("-amd64")?.replace("+deb", "-");
    // Other flavours, such as `cloud` and `rt`, are not numbers.
    version.split(['.', '-']).map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_have_an_order_and_no_flavour() {
        let version = |name| kernel_version(name, "linux-image-6.12.");
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
        let version = |name| kernel_version(name, "linux-image-6.1.");
        assert!(version("linux-image-6.1.0-57-amd64") > version("linux-image-6.1.0-9-amd64"));
        assert_eq!(version("linux-image-6.12.117+deb12-amd64"), None);
    }
}
