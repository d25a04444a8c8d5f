//! Conversion of the runtime's names to Rust's conventions.

/// Splits a name into words: `CLSCompliant` into CLS and Compliant.
fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut words: Vec<String> = Vec::new();
    for (at, &letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(at + 1).copied();
        let begins = letter.is_uppercase()
            && before.is_none_or(|before| !before.is_uppercase() || after.is_some_and(char::is_lowercase));
        if letter == '_' {
            words.push(String::new());
        } else if begins || words.is_empty() {
            words.push(letter.to_string());
        } else if let Some(word) = words.last_mut() {
            word.push(letter);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the type of a map: `GcReason` for `GCReasonMap`.
pub(super) fn type_name(map: &str) -> String {
    let capital = |word: String| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters.map(|letter| letter.to_ascii_lowercase())).collect::<String>()
    };
    words(map.strip_suffix("Map").unwrap_or(map)).into_iter().map(capital).collect()
}

/// Returns the static of a map: `GC_REASON` for `GCReasonMap`.
pub(super) fn map(map: &str) -> String {
    constant(map.strip_suffix("Map").unwrap_or(map))
}

/// Returns the constant of a name: `ALLOC_SMALL` for `AllocSmall`.
pub(super) fn constant(name: &str) -> String {
    words(&name.replace("R2R", "R2r")).join("_").to_ascii_uppercase()
}

/// Returns the field of a name: `clr_instance_id` for `ClrInstanceID`.
pub(super) fn field(name: &str) -> String {
    match name {
        "Type" => return "kind".into(),
        "In" => return "survived_in".into(),
        "IUnknown" => return "iunknown".into(),
        "VTable" => return "vtable".into(),
        "EntryEIP" => return "entry_eip".into(),
        _ => {}
    }
    words(&name.replace("ReJIT", "Rejit")).join("_").to_ascii_lowercase()
}

#[test]
fn names_keep_their_words() {
    for (name, expected) in [
        ("ClrInstanceID", "clr_instance_id"),
        ("ReJITID", "rejit_id"),
        ("ILOffsets", "il_offsets"),
        ("OSThreadID", "os_thread_id"),
        ("AllocationAmount64", "allocation_amount64"),
    ] {
        assert_eq!(field(name), expected);
    }
    assert_eq!(type_name("GCReasonMap"), "GcReason");
    assert_eq!(type_name("ILStubGeneratedFlagsMap"), "IlStubGeneratedFlags");
    assert_eq!(constant("CLSCompliant"), "CLS_COMPLIANT");
    assert_eq!(constant("CONCURRENT_GC"), "CONCURRENT_GC");
    assert_eq!(constant("R2RGetEntryPoint"), "R2R_GET_ENTRY_POINT");
}
