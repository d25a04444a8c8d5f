//! throwaway
use std::time::Instant;
fn main() {
    let bytes = std::fs::read(std::env::args().nth(1).unwrap()).unwrap();
    for _ in 0..3 {
        let t = Instant::now();
        let mut r = nettrace::SliceReader::new(&bytes).unwrap();
        let mut n = 0u64; let mut p = 0u64;
        while let Some(e) = r.next().unwrap() { n += 1; p += e.payload().len() as u64; }
        let d = t.elapsed().as_secs_f64();
        println!("slice {n} events {p} payload {:.4}s {:.1} M/s {:.2} GB/s lost {}", d, n as f64 / d / 1e6, bytes.len() as f64 / d / 1e9, r.loss().total());
        let t = Instant::now();
        let mut r = nettrace::Reader::new(&bytes[..]).unwrap();
        let mut n = 0u64;
        while let Some(e) = r.next().unwrap() { n += 1; p += e.payload().len() as u64; }
        let d = t.elapsed().as_secs_f64();
        println!("read  {n} events {:.4}s {:.1} M/s", d, n as f64 / d / 1e6);
        let t = Instant::now();
        let mut r = nettrace::SliceReader::new(&bytes).unwrap().in_time_order();
        let mut n = 0u64; let mut last = 0; let mut bad = 0;
        while let Some(e) = r.next().unwrap() { n += 1; p += e.payload().len() as u64; if e.time().0 < last { bad += 1 } last = e.time().0; }
        let d = t.elapsed().as_secs_f64();
        println!("time  {n} events {:.4}s {:.1} M/s out of order {bad}", d, n as f64 / d / 1e6);
        let t = Instant::now();
        let mut r = nettrace::SliceReader::new(&bytes).unwrap();
        let mut n = 0u64;
        while let Some(e) = r.next().unwrap() { n += e.fields().filter(|f| f.is_ok()).count() as u64; }
        let d = t.elapsed().as_secs_f64();
        println!("fields  {n} {:.4}s", d);
        let t = Instant::now();
        let c = bytes.clone();
        println!("memcpy {:.4}s {}", t.elapsed().as_secs_f64(), c.len());
    }
}
