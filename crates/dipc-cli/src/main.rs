//! The program `dipc`.
fn main() {}
