//! The names of recordings.

use std::path::{Path, PathBuf};

use jiff::Zoned;

/// `<appname>_<pid>_<yyyyMMdd>_<HHmmss>.nettrace` in local time: as dotnet-trace names its files, plus the
/// pid, because every `dotnet app.dll` has the same name.
pub(super) fn file_name(process: &str, pid: Option<u32>, now: &Zoned) -> PathBuf {
    // A process may call itself anything.
    let mut name: String =
        process.chars().map(|c| if c.is_control() || c == '/' { '_' } else { c }).collect();
    if name.starts_with('-') {
        // Commands would mistake it for a flag.
        name.replace_range(..1, "_");
    }
    let pid = pid.map(|pid| format!("_{pid}")).unwrap_or_default();
    format!("{name}{pid}_{}.nettrace", now.strftime("%Y%m%d_%H%M%S")).into()
}

/// `out.nettrace` becomes `out_20210315_111514.nettrace`.
pub(crate) fn snapshot_name(path: &Path, now: &Zoned) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(now.strftime("_%Y%m%d_%H%M%S").to_string());
    name.push(".");
    name.push(path.extension().unwrap_or("nettrace".as_ref()));
    path.with_file_name(name)
}

/// `out.nettrace` for process 7 becomes `out.7.nettrace`.
pub(super) fn with_pid(path: &Path, pid: u32) -> PathBuf {
    if path.as_os_str() == "-" {
        return format!("trace.{pid}.nettrace").into();
    }
    match path.extension() {
        Some(extension) => path.with_extension(format!("{pid}.{}", extension.to_string_lossy())),
        None => path.with_extension(pid.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_as_dotnet_trace_names_them_with_the_pid() {
        let now = jiff::civil::date(2021, 3, 15).at(11, 15, 14, 0).to_zoned(jiff::tz::TimeZone::UTC).unwrap();
        assert_eq!(file_name("myapp", Some(7), &now), PathBuf::from("myapp_7_20210315_111514.nettrace"));
        assert_eq!(file_name("-rf", Some(7), &now), PathBuf::from("_rf_7_20210315_111514.nettrace"));
        assert_eq!(file_name("../a\n", None, &now), PathBuf::from(".._a__20210315_111514.nettrace"));
    }

    #[test]
    fn file_names_of_several_processes_have_their_pids() {
        for (path, expected) in
            [("out/a.b.nettrace", "out/a.b.7.nettrace"), ("out", "out.7"), ("-", "trace.7.nettrace")]
        {
            assert_eq!(with_pid(Path::new(path), 7), PathBuf::from(expected));
        }
    }
}
