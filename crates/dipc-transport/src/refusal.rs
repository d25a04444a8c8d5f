use std::io;

/// Returns the error for a file that exists and is refused.
pub(crate) fn refused(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// Returns whether Windows opens a device by this file name, in any folder and with any extension.
#[cfg(any(windows, test))]
pub(crate) fn is_device(name: &str) -> bool {
    const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];
    let stem = name.split(['.', ':']).next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let port = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT"));
    let is_port = port.is_some_and(|number| {
        let mut characters = number.chars();
        matches!(
            (characters.next(), characters.next()),
            (Some('0'..='9' | '\u{b9}' | '\u{b2}' | '\u{b3}'), None)
        )
    });
    is_port || DEVICES.contains(&&*stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_device_names_from_file_names() {
        for device in
            ["CON", "con.txt", "NUL:x", "Aux .x", "COM1", "lpt9.log", "COM0", "COM\u{b2}", "conout$"]
        {
            assert!(is_device(device), "{device}");
        }
        for file in ["COM", "LPT.txt", "com.dll", "COM10", "COM1x", "CON1", "NULL", "console", "", "x.con"] {
            assert!(!is_device(file), "{file}");
        }
    }
}
