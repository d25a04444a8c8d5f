//! The upload of a release. Each part can be run again: earlier uploads are left as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail, ensure};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

use super::changelog::changelog;
use super::{Release, dist};
use crate::task::packages::{Package, published};
use crate::task::workspace::{cargo, command_line, execute, is_installed};

/// The registry's time between two new packages, for an answer that names none.
const PAUSE: Duration = Duration::from_secs(600);
/// Maximum single wait: if a registry asks for more, try again another day.
const MAX_PAUSE: Duration = Duration::from_secs(3600);

/// Checks that the upload will be let in, before an hour of building.
pub(super) fn check_logins() -> Result<()> {
    ensure!(is_installed("gh", "--version"), "gh is not installed (https://cli.github.com)");
    execute(Command::new("gh").args(["auth", "status"])).context("gh has no login: set GH_TOKEN")?;
    let token = env::var_os("CARGO_REGISTRY_TOKEN").unwrap_or_default();
    ensure!(!token.is_empty(), "CARGO_REGISTRY_TOKEN is not set");
    Ok(())
}

/// Uploads the files as a draft with the changelog's section as notes, then the packages, and makes the draft
/// public when all are there.
pub(super) fn run(release: &Release, dist: &Path) -> Result<()> {
    let files: Vec<_> = dist::names(dist)?.iter().map(|name| dist.join(name)).collect();
    let notes = changelog(&release.version)?.text;
    let packages = published()?;
    let names = in_order(&dependencies(&packages))?;
    let upload = Upload {
        cargo: &|| cargo([]),
        gh: &|| Command::new("gh"),
        pause: &thread::sleep,
        now: &SystemTime::now,
        version: &release.version,
    };
    upload.draft(&[vec![dist.join(dist::CHECKSUMS)], files].concat(), &notes)?;
    // The published packages were built and tested above.
    upload.packages(&names)?;
    upload.show()
}

/// Returns each package's dependencies among the others, including test dependencies: the registry refuses a
/// package before them.
fn dependencies(packages: &[Package]) -> BTreeMap<&str, BTreeSet<&str>> {
    let names: BTreeSet<_> = packages.iter().map(|package| package.name.as_str()).collect();
    let required =
        |package: &Package| package.required().filter_map(|name| names.get(name).copied()).collect();
    packages.iter().map(|package| (package.name.as_str(), required(package))).collect()
}

/// Returns the names in an order in which each follows its dependencies.
fn in_order<'p>(dependencies: &BTreeMap<&'p str, BTreeSet<&'p str>>) -> Result<Vec<&'p str>> {
    let mut order = Vec::new();
    let mut left = dependencies.clone();
    while !left.is_empty() {
        let ready: Vec<_> = left
            .iter()
            .filter(|(_, required)| required.iter().all(|name| order.contains(name)))
            .map(|(name, _)| *name)
            .collect();
        ensure!(!ready.is_empty(), "packages that need one another: {left:?}");
        for name in ready {
            left.remove(name);
            order.push(name);
        }
    }
    Ok(order)
}

/// An upload, with the programs and the clock that tests replace.
struct Upload<'u> {
    cargo: &'u dyn Fn() -> Command,
    gh: &'u dyn Fn() -> Command,
    pause: &'u dyn Fn(Duration),
    now: &'u dyn Fn() -> SystemTime,
    version: &'u str,
}

impl Upload<'_> {
    fn tag(&self) -> String {
        format!("v{}", self.version)
    }

    /// Creates the release as a draft, which only its maintainers see, or replaces the files of the draft of
    /// an earlier run.
    fn draft(&self, files: &[PathBuf], notes: &str) -> Result<()> {
        let tag = self.tag();
        match self.is_draft()? {
            None => {
                let mut create = (self.gh)();
                create.args(["release", "create", &tag, "--draft", "--verify-tag", "--title", &tag]);
                execute(create.args(["--notes", notes]).args(files))
            }
            Some(true) => execute((self.gh)().args(["release", "upload", &tag, "--clobber"]).args(files)),
            Some(false) => {
                println!("the release {tag} is public already; its files are left as they are");
                Ok(())
            }
        }
    }

    /// Returns true if the release is a draft; `None` if it does not exist.
    fn is_draft(&self) -> Result<Option<bool>> {
        let mut view = (self.gh)();
        let output = view.args(["release", "view", &self.tag(), "--json", "isDraft"]).output()?;
        if output.status.success() {
            let answer: serde_json::Value =
                serde_json::from_slice(&output.stdout).context("gh release view")?;
            return Ok(Some(answer["isDraft"].as_bool().context("gh release view: no isDraft")?));
        }
        let message = String::from_utf8_lossy(&output.stderr);
        ensure!(message.contains("release not found"), "gh release view: {}", message.trim());
        Ok(None)
    }

    /// Makes the draft public.
    fn show(&self) -> Result<()> {
        execute((self.gh)().args(["release", "edit", &self.tag(), "--draft=false"]))
    }

    /// Publishes the packages one by one. Published packages are skipped. Waits if the registry asks for it.
    fn packages(&self, names: &[&str]) -> Result<()> {
        // The registry takes a few new packages at once and then one at a time, so it may refuse nearly every
        // package once.
        let mut pauses = names.len().saturating_mul(2);
        for (done, name) in names.iter().enumerate() {
            loop {
                match self.package(name)? {
                    Outcome::Published => break,
                    Outcome::Present => {
                        println!("{name} {} is in the registry already", self.version);
                        break;
                    }
                    Outcome::TooMany { until } => {
                        let pause = match until {
                            Some(time) => time.duration_since((self.now)()).unwrap_or_default(),
                            None => PAUSE,
                        };
                        let pause = pause.saturating_add(Duration::from_secs(5));
                        let seconds = pause.as_secs();
                        let left = names.len() - done;
                        let again = "run this again later: it continues with the missing crates";
                        ensure!(
                            pause <= MAX_PAUSE,
                            "the registry asks to wait {seconds} s with {left} packages left; {again}"
                        );
                        pauses = pauses.checked_sub(1).with_context(|| {
                            format!("the registry asked to wait too often, {left} packages are left; {again}")
                        })?;
                        println!("the registry asks to wait: {seconds} s; {left} packages are left");
                        (self.pause)(pause);
                    }
                }
            }
        }
        Ok(())
    }

    /// Asks cargo to publish a package. It waits until the registry's index has it, since others depend on
    /// it.
    fn package(&self, name: &str) -> Result<Outcome> {
        let mut publish = (self.cargo)();
        publish.args(["publish", "--package", name, "--locked", "--no-verify"]);
        let line = command_line(&publish);
        let mut child = publish.stderr(Stdio::piped()).spawn().with_context(|| line.clone())?;
        let mut message = String::new();
        for text in BufReader::new(child.stderr.take().context("standard error")?).lines() {
            let text = text?;
            eprintln!("{text}");
            message.push_str(&text);
            message.push('\n');
        }
        let status = child.wait()?;
        if status.success() {
            return Ok(Outcome::Published);
        }
        refusal(&message, name, self.version).with_context(|| format!("{line}: {status}"))
    }
}

/// The registry's answer to a package.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Published,
    /// The registry has this version.
    Present,
    /// Too many packages in a short time.
    TooMany {
        until: Option<SystemTime>,
    },
}

/// Returns the outcome for cargo's message of a failure.
fn refusal(message: &str, name: &str, version: &str) -> Result<Outcome> {
    // Cargo's message if the index has the version, and the registry's if it was uploaded a moment ago.
    if message.contains(&format!("crate {name}@{version} already exists"))
        || message.contains(&format!("crate version `{version}` is already uploaded"))
    {
        return Ok(Outcome::Present);
    }
    if message.contains("status 429") {
        return Ok(Outcome::TooMany { until: time_in(message) });
    }
    bail!("not published; run this again when it is mended: it continues with the missing crates")
}

/// Returns the time of `… try again after Mon, 13 Jul 2026 19:14:55 GMT or …`.
fn time_in(message: &str) -> Option<SystemTime> {
    let (_, rest) = message.split_once("try again after ")?;
    let (time, _) = rest.split_once(" GMT")?;
    let time = DateTimeParser::new().parse_timestamp(format!("{time} GMT")).ok()?;
    Some(Timestamp::into(time))
}

#[cfg(all(test, unix))]
mod tests {
    use std::cell::RefCell;
    use std::fs;

    use super::*;

    const TOO_MANY: &str = "error: failed to publish b v9.8.7 to registry at https://crates.io\n\nCaused by:\n  \
        the remote server responded with an error (status 429 Too Many Requests): You have published too many new crates \
        in a short period of time. Please try again after Mon, 13 Jul 2026 19:14:55 GMT or email help@crates.io to have \
        your limit increased.\n";

    /// 2026-07-13T19:14:55Z.
    fn named_time() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_783_970_095)
    }

    #[test]
    fn refusals_are_told_apart() {
        let of = |message: &str| refusal(message, "b", "9.8.7").ok();
        assert_eq!(of(TOO_MANY), Some(Outcome::TooMany { until: Some(named_time()) }));
        let without_time = "error (status 429 Too Many Requests): try again after a while";
        assert_eq!(of(without_time), Some(Outcome::TooMany { until: None }));
        assert_eq!(of("error: crate b@9.8.7 already exists on crates.io index"), Some(Outcome::Present));
        assert_eq!(of("Caused by: crate version `9.8.7` is already uploaded"), Some(Outcome::Present));
        // Another version, another package, another fault.
        assert_eq!(of("error: crate b@9.8.6 already exists on crates.io index"), None);
        assert_eq!(of("error: crate ab@9.8.7 already exists on crates.io index"), None);
        assert_eq!(of("error (status 403 Forbidden): invalid token"), None);
    }

    #[test]
    fn packages_come_after_those_that_they_need() {
        let needs = BTreeMap::from([
            ("a", BTreeSet::from(["c"])),
            ("b", BTreeSet::new()),
            ("c", BTreeSet::from(["b", "d"])),
            ("d", BTreeSet::new()),
        ]);
        assert_eq!(in_order(&needs).unwrap(), ["b", "d", "c", "a"]);
        let ring = BTreeMap::from([("a", BTreeSet::from(["b"])), ("b", BTreeSet::from(["a"]))]);
        let message = in_order(&ring).unwrap_err().to_string();
        assert!(message.contains("need one another"), "{message}");
    }

    #[test]
    fn the_workspace_has_an_order() {
        let packages = published().unwrap();
        let order = in_order(&dependencies(&packages)).unwrap();
        assert_eq!(order.len(), packages.len());
        let place = |name: &str| order.iter().position(|other| *other == name).unwrap();
        assert!(place("dipc-wire") < place("dipc-client") && place("dipc-transport") < place("dipc-client"));
        assert!(place("nettrace") < place("clr-events"));
        assert_eq!(place("dipc-cli"), packages.len() - 1);
    }

    /// A folder with programs that write their arguments into `log`.
    struct Programs(tempfile::TempDir);

    impl Programs {
        fn new(cargo: &str, gh: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for (name, script) in [("cargo", cargo), ("gh", gh)] {
                let script = format!("cd '{}'\necho \"{name} $*\" >>log\n{script}", folder.path().display());
                fs::write(folder.path().join(name), script).unwrap();
            }
            Self(folder)
        }

        /// Does some work with an upload, and returns its result, the calls and the pauses in seconds.
        fn run(&self, work: impl Fn(&Upload<'_>) -> Result<()>) -> (Result<()>, Vec<String>, Vec<u64>) {
            let start = |name: &str| {
                let mut command = Command::new("sh");
                command.arg(self.0.path().join(name));
                command
            };
            let pauses = RefCell::new(Vec::new());
            let upload = Upload {
                cargo: &|| start("cargo"),
                gh: &|| start("gh"),
                pause: &|pause| pauses.borrow_mut().push(pause.as_secs()),
                now: &|| named_time() - Duration::from_secs(595),
                version: "9.8.7",
            };
            let result = work(&upload);
            let log = fs::read_to_string(self.0.path().join("log")).unwrap_or_default();
            (result, log.lines().map(str::to_owned).collect(), pauses.take())
        }
    }

    fn publishes(name: &str) -> String {
        format!("cargo publish --package {name} --locked --no-verify")
    }

    #[test]
    fn a_second_run_publishes_what_the_first_has_not() {
        let cargo = "case $3 in\n\
            a) echo 'error: crate a@9.8.7 already exists on crates.io index' >&2; exit 101 ;;\n\
            b) [ -e asked ] || { : >asked; cat refusal >&2; exit 101; } ;;\nesac\n";
        let programs = Programs::new(cargo, "");
        fs::write(programs.0.path().join("refusal"), TOO_MANY).unwrap();
        let (result, calls, pauses) = programs.run(|upload| upload.packages(&["a", "b", "c"]));
        result.unwrap();
        assert_eq!(calls, ["a", "b", "b", "c"].map(publishes));
        assert_eq!(pauses, [600]);
    }

    #[test]
    fn pauses_are_bounded_in_number_and_length() {
        let programs = Programs::new("echo 'status 429' >&2; exit 101\n", "");
        let (result, calls, pauses) = programs.run(|upload| upload.packages(&["a", "b"]));
        let message = result.unwrap_err().to_string();
        assert!(message.contains("too often, 2 packages are left"), "{message}");
        assert_eq!((calls.len(), pauses), (5, vec![605; 4]));

        let cargo = "echo 'status 429: try again after Mon, 13 Jul 2026 23:14:55 GMT' >&2; exit 101\n";
        let (result, calls, pauses) = Programs::new(cargo, "").run(|upload| upload.packages(&["a", "b"]));
        let message = result.unwrap_err().to_string();
        assert!(message.contains("15000 s with 2 packages left"), "{message}");
        assert_eq!((calls.len(), pauses.len()), (1, 0));
    }

    #[test]
    fn another_failure_ends_the_upload() {
        let programs = Programs::new("echo 'status 403 Forbidden' >&2; exit 101\n", "");
        let (result, calls, _) = programs.run(|upload| upload.packages(&["a", "b"]));
        assert!(result.is_err());
        assert_eq!(calls, [publishes("a")]);
    }

    #[test]
    fn the_release_is_a_draft_until_it_is_shown() {
        let draft = |upload: &Upload<'_>| {
            upload.draft(&[PathBuf::from("SHA256SUMS")], "notes")?;
            upload.show()
        };
        let view = "gh release view v9.8.7 --json isDraft";
        let show = "gh release edit v9.8.7 --draft=false";
        let create = "gh release create v9.8.7 --draft --verify-tag --title v9.8.7 --notes notes SHA256SUMS";
        let upload = "gh release upload v9.8.7 --clobber SHA256SUMS";
        for (answer, calls) in [
            ("echo 'release not found' >&2; exit 1", vec![view, create, show]),
            ("echo '{\"isDraft\":true}'", vec![view, upload, show]),
            ("echo '{\"isDraft\":false}'", vec![view, show]),
        ] {
            let gh = format!("case $2 in view) {answer} ;; esac\n");
            let (result, found, _) = Programs::new("", &gh).run(draft);
            result.unwrap();
            assert_eq!(found, calls, "{answer}");
        }
        let (result, found, _) = Programs::new("", "echo 'HTTP 401' >&2; exit 1\n").run(draft);
        assert!(result.unwrap_err().to_string().contains("HTTP 401"));
        assert_eq!(found, [view]);
    }
}
