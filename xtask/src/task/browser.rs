//! `cargo xtask browser`: the page that reads recordings, with the readers as WebAssembly.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::arguments::BROWSER;
use crate::task::toolchain::Toolchain;
use crate::task::workspace::{self, cargo, execute};

/// Maximum size of the page, in bytes: a picture's, not a program's.
const MAX_SIZE: usize = 2_000_000;

pub(crate) fn run() -> Result<()> {
    let page = build(&Toolchain::install_for_target(BROWSER)?)?;
    test(&page)
}

/// Builds the page, and prints its size. Returns its path.
pub(crate) fn build(toolchain: &Toolchain) -> Result<PathBuf> {
    let source = workspace::root().join("examples/browser");
    let manifest = source.join("Cargo.toml");
    let mut build = toolchain.cargo("build", BROWSER);
    execute(build.args(["--release", "--locked", "--manifest-path"]).arg(manifest))?;
    let module = Toolchain::target_folder()?.join(BROWSER).join("release/browser_example.wasm");
    let module = fs::read(&module).with_context(|| module.display().to_string())?;
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&module)?;
    let packed = packed.finish()?;
    let page = fs::read_to_string(source.join("index.html"))?;
    let page = replaced(&page, "content=\"dipc\"", &format!("content=\"dipc {}\"", version()?))?;
    let worker = fs::read_to_string(source.join("worker.js"))?;
    ensure!(!worker.contains("</"), "worker.js would end its element");
    let page = replaced(&page, "id=\"worker\">", &format!("id=\"worker\">\n{worker}"))?;
    let page = replaced(&page, "id=\"module\">", &format!("id=\"module\">{}", STANDARD.encode(&packed)))?;
    let path = workspace::target()?.join("browser/dipc.html");
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    fs::write(&path, &page)?;
    println!(
        "{}: {} bytes; the module has {} bytes, {} compressed",
        path.display(),
        page.len(),
        module.len(),
        packed.len()
    );
    ensure!(page.len() <= MAX_SIZE, "the page has more than {MAX_SIZE} bytes");
    Ok(path)
}

/// Compares the page's output for recordings with `dipc convert`, in Chromium.
pub(crate) fn test(page: &Path) -> Result<()> {
    let mut test = cargo(["test", "--workspace", "--all-features", "--test", "page", "dropped::"]);
    execute(test.env("DIPC_BROWSER_PAGE", page))
}

/// Replaces a string that occurs once.
fn replaced(page: &str, from: &str, to: &str) -> Result<String> {
    ensure!(page.matches(from).count() == 1, "index.html has no single {from}");
    Ok(page.replacen(from, to, 1))
}

/// The version of the workspace, which the program has.
fn version() -> Result<String> {
    let manifest = fs::read_to_string(workspace::root().join("Cargo.toml"))?;
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = version.and_then(|rest| rest.split_once('"')).context("Cargo.toml has no version")?;
    Ok(version.0.to_owned())
}
