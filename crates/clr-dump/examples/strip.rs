//! Writes a copy of a core dump without texts and buffers: `strip CORE COPY [PROGRAM]`.
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};

use clr_dump::{CoreFile, StrippedCore};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(from), Some(to)) = (arguments.next(), arguments.next()) else {
        return Err("usage: strip CORE COPY".into());
    };
    let mut core = CoreFile::open(File::open(from)?)?;
    if let Some(program) = arguments.next() {
        let program = std::fs::read(program)?;
        core.add_files(|_| Some(Box::new(program.clone())));
    }
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
