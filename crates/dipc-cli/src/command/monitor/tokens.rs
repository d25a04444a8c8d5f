//! The tokens that clients of `dipc monitor` have to send, and changes of their file.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use dipc_client::Uuid;
use dipc_client::dipc_transport::open_regular;
use dipc_monitor::Tokens;

use super::MonitorArgs;
use super::file_watch::{FileWatch, states};
use crate::exit::Failure;
use crate::render::messages;

/// Returns the tokens, and the file that they were read from.
pub(super) fn tokens(args: &MonitorArgs) -> Result<(Tokens, Option<TokenFile>), Failure> {
    let mut tokens = Tokens::default();
    let mut watch = None;
    if let Some(path) = &args.token_file {
        watch = Some(FileWatch::new(states([path.as_path()])));
        tokens = read(path).map_err(|error| {
            Failure::usage(format_args!("monitor: --token-file {}: {error}", path.display()))
        })?;
    }
    if args.temp_api_key {
        // Each has 122 random bits.
        let token = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        tokens.add_admin(&token);
        messages::note(format_args!("Token          : {token}"));
    }
    let file = args.token_file.clone().zip(watch);
    let file = file.map(|(path, watch)| TokenFile { path, watch, tokens: tokens.clone() });
    Ok((tokens, file))
}

/// Maximum size of a file of tokens, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Reads a regular file with at least one token. A pipe would block, and a device may be endless.
fn read(path: &Path) -> Result<Tokens, String> {
    let mut text = String::new();
    let file = open_regular(path).map_err(|error| error.to_string())?;
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_BYTES {
        return Err("it is larger than 1 MiB".to_owned());
    }
    let tokens = Tokens::parse(&text).map_err(|error| error.to_string())?;
    if tokens.is_empty() { Err("it has no tokens".to_owned()) } else { Ok(tokens) }
}

/// The file of the tokens.
pub(super) struct TokenFile {
    path: PathBuf,
    watch: FileWatch,
    tokens: Tokens,
}

impl TokenFile {
    /// Reads the file again when it has changed, or when it is asked to. The tokens stay if it cannot be
    /// used.
    pub(super) fn reload(&mut self, is_asked: bool) {
        if !self.watch.is_due(|| states([self.path.as_path()]), is_asked) {
            return;
        }
        let replaced =
            read(&self.path).and_then(|file| self.tokens.replace(&file).map_err(|error| error.to_string()));
        match replaced {
            Ok(()) => messages::note("The tokens were read again"),
            Err(error) => {
                messages::warning(format_args!("--token-file {}: {error}", self.path.display()));
                messages::help("the tokens stay as they were until the file can be used");
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_of_a_bounded_size_has_tokens() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("good"), "read 0123456789abcdef\n").unwrap();
        let large = std::fs::File::create(at("large")).unwrap();
        large.set_len(50 << 30).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        assert_eq!(format!("{:?}", read(&at("good")).unwrap()), "Tokens(1)");
        for (path, why) in [
            (at("large"), "it is larger than 1 MiB"),
            (at("pipe"), "not a regular file"),
            (PathBuf::from("/dev/zero"), "not a regular file"),
            (folder.path().to_owned(), "not a regular file"),
        ] {
            assert_eq!(read(&path).unwrap_err(), why, "{}", path.display());
        }
    }
}
