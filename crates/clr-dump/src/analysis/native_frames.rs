//! The threads of a core dump without a runtime, or without its data.

use crate::analysis::named_frame::{FileCode, NamedFrame};
use crate::memory::core_file::CoreFile;
use crate::threads::stack::{Frame, Stack};
use crate::unwind::native::NativeImages;

/// A thread with native frames only.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NativeFrames {
    /// The thread id in the system.
    pub tid: u32,
    /// The stack, walked by native unwind information.
    pub stack: Stack,
    /// The files of the stack's frames, in the same order.
    pub frames: Vec<NamedFrame>,
}

impl CoreFile {
    /// Walks the stacks of all threads by native unwind information alone: the runtime's data is missing, or
    /// the process ran without a runtime.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// for thread in core.native_frames() {
    ///     let images = thread.frames.iter().filter_map(|frame| Some(frame.image.as_ref()?.file_name()));
    ///     println!("thread {}: {:?}", thread.tid, images.collect::<Vec<_>>());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn native_frames(&self) -> Vec<NativeFrames> {
        let images = NativeImages::new(self.files());
        let threads = self.threads().iter().map(|thread| {
            let stack = thread.registers.map(|registers| images.stack(self, &registers)).unwrap_or_default();
            let frames = stack.frames.iter().map(|frame| self.native_frame(&images, frame)).collect();
            NativeFrames { tid: thread.tid, stack, frames }
        });
        threads.collect()
    }

    fn native_frame(&self, images: &NativeImages, frame: &Frame) -> NamedFrame {
        let address = frame.position.lookup_address(frame.ip);
        let image = images.at(self, address);
        // The list of files outlives the headers of images.
        let file = self.files().iter().find(|file| (file.start..file.end).contains(&address));
        let file = file.filter(|_| image.is_none()).map(|file| FileCode {
            path: file.path.clone(),
            offset: frame.ip.get().wrapping_sub(file.start.get()).wrapping_add(file.file_offset),
        });
        NamedFrame { method: None, il_offset: None, image, file }
    }
}
