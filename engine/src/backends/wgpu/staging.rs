//! A buffer that brings bytes back to the host while the device goes on with what was submitted later.

use std::sync::mpsc::{Receiver, channel};

use super::device::{Device, TOLD_WITHIN};
use crate::backends::RunError;

/// One copy at a time: [`Self::copy`], [`Self::map`] behind the submission, [`Self::read`]; then it can be used again.
/// One that is dropped between is given up without waiting.
pub(super) struct Staging {
    buffer: wgpu::Buffer,
    /// What is waited for, and who tells that the bytes are there.
    copied: Option<(wgpu::SubmissionIndex, Receiver<Result<(), wgpu::BufferAsyncError>>)>,
}

impl Staging {
    pub(super) fn new(device: &Device, bytes: u64) -> Self {
        Self { buffer: device.staging(bytes), copied: None }
    }

    /// Copies as many of the first bytes of `from` as this holds.
    pub(super) fn copy(&self, encoder: &mut wgpu::CommandEncoder, from: &wgpu::Buffer) {
        encoder.copy_buffer_to_buffer(from, 0, &self.buffer, 0, Some(self.buffer.size()));
    }

    /// Asks for the bytes that `submission` copies.
    pub(super) fn map(&mut self, submission: wgpu::SubmissionIndex) {
        let (done, told) = channel();
        self.buffer.map_async(wgpu::MapMode::Read, .., move |result| {
            let _ = done.send(result);
        });
        self.copied = Some((submission, told));
    }

    /// Waits for the submission, and for none behind it, and hands its bytes to `read`.
    ///
    /// # Errors
    /// A lost device.
    pub(super) fn read(&mut self, device: &Device, read: impl FnOnce(&[u8])) -> Result<(), RunError> {
        let Some((submission, told)) = self.copied.take() else { return Ok(()) };
        device.finish_until(submission)?;
        match told.recv_timeout(TOLD_WITHIN) {
            Ok(Ok(())) => {}
            Ok(Err(e)) => return Err(device.lost(e)),
            Err(e) => return Err(device.lost(e)),
        }
        {
            let view = self.buffer.get_mapped_range(..).map_err(|e| device.lost(e))?;
            read(&view);
        }
        self.buffer.unmap();
        device.check()
    }
}
