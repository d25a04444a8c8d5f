//! Writes a copy of a core dump without texts and buffers: `strip CORE COPY`.
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};

use clr_dump::{CoreFile, StrippedCore};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(from), Some(to)) = (arguments.next(), arguments.next()) else {
        return Err("usage: strip CORE COPY".into());
    };
    let core = CoreFile::open(File::open(from)?)?;
    let stripped = StrippedCore::new(&core)?;
    println!("{:?}", stripped.contents());
    let mut file = File::create(to)?;
    let written = stripped.write(|at, bytes| {
        file.seek(SeekFrom::Start(at))?;
        file.write_all(bytes)
    })?;
    file.set_len(written.file_bytes)?;
    println!("{written:?}");
    Ok(())
}
