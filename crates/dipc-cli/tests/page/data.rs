//! The data of a page.

use std::io::Read as _;

use serde_json::Value;

/// Returns the JSON that stands compressed, as base64, in a page.
pub(crate) fn page_data(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"data\">").expect("data");
    let text = rest.split_once("</script>").expect("its end").0.trim_end_matches('=').as_bytes();
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    for four in text.chunks(4) {
        let word = four.iter().fold(0u32, |word, c| word << 6 | u32::from(digit(*c)));
        bytes.extend_from_slice(&(word << (6 * (4 - four.len()))).to_be_bytes()[1..four.len()]);
    }
    let mut json = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut json).expect("gzip");
    serde_json::from_str(&json).expect("JSON")
}
