//! What the adapter can do at best: plain reads, copies and multiply-adds, and dispatches of nothing.

use std::time::Instant;

use super::Wgpu;
use super::device::Kernel;
use crate::backends::{CompileError, CompileErrorKind, Floors, RunError};

/// More than caches hold; less where a binding holds less.
const BYTES: u64 = 256 << 20;
/// Bytes that a workgroup of `read` and `copy` takes.
const GROUP_BYTES: u64 = 4096 * 16;
const MULTIPLY_GROUPS: u32 = 2048;
/// Operations of one of them.
const GROUP_OPERATIONS: f64 = 256.0 * 256.0 * 8.0 * 4.0 * 2.0;
const REPEATS: u32 = 5;

impl Wgpu {
    /// Measures the floors: the best of five.
    ///
    /// # Errors
    /// No memory for it, or a lost device.
    pub(super) fn floors_now(&self) -> Result<Floors, CompileError> {
        let failed = |kind| CompileError::in_graph("floors", kind);
        let lost = |error: RunError| {
            failed(CompileErrorKind::Device {
                device: self.device.adapter.clone(),
                message: error.to_string(),
            })
        };
        let bytes = BYTES.min(self.device.most_bytes());
        let buffer = |bytes: u64| self.device.buffer(bytes as usize).map_err(failed);
        let (to, from, rest) = (buffer(bytes)?, buffer(bytes)?, [buffer(4)?, buffer(4)?, buffer(4)?]);
        // Neither zeros, which memory may hold in fewer bytes, nor anything but numbers.
        let mut state = 1u32;
        let numbers: Vec<u32> = (0..1 << 18)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state >> 9 | 0x3f80_0000
            })
            .collect();
        let block = bytemuck::cast_slice::<u32, u8>(&numbers);
        for at in (0..bytes).step_by(block.len()) {
            let count = block.len().min((bytes - at) as usize);
            self.device.queue.write_buffer(&from, at, &block[..count]);
            // Or all of it would wait in the host's memory.
            self.device.queue.submit([]);
        }
        let params = self.device.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: (super::kernel::WORDS * 4) as u64,
            usage: wgpu::BufferUsages::UNIFORM,
            mapped_at_creation: false,
        });
        let none = &self.device.no_weight;
        let bind = |layout, buffers: &[&wgpu::Buffer]| {
            let entries: Vec<_> = buffers
                .iter()
                .enumerate()
                .map(|(i, b)| wgpu::BindGroupEntry { binding: i as u32, resource: b.as_entire_binding() })
                .collect();
            self.device.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout,
                entries: &entries,
            })
        };
        let groups = [
            bind(&self.device.group0, &[&to, &params, &from, none, none, none]),
            bind(&self.device.group1, &rest.each_ref()),
        ];
        let best = |entry, count: u32, times: u32| -> Result<f64, CompileError> {
            let source = || include_str!("measure.wgsl").to_owned();
            let kernel = self.device.kernel("measure", entry, source).map_err(failed)?;
            let mut best = f64::INFINITY;
            for _ in 0..REPEATS {
                best = best.min(self.secs_of(&kernel, &groups, count, times).map_err(lost)?);
            }
            Ok(best / f64::from(times))
        };
        let across = u32::try_from(bytes.div_ceil(GROUP_BYTES)).unwrap_or(u32::MAX);
        Ok(Floors {
            read_per_sec: bytes as f64 / best("read_all", across, 8)?,
            copy_per_sec: Some(2.0 * bytes as f64 / best("copy_all", across, 8)?),
            operations_per_sec: f64::from(MULTIPLY_GROUPS) * GROUP_OPERATIONS
                / best("multiply", MULTIPLY_GROUPS, 4)?,
            dispatch_secs: Some(best("nothing", 1, 1000)?),
        })
    }

    /// Seconds that the device is busy with `times` dispatches, or, where it can't say, until it is done with them.
    fn secs_of(
        &self,
        kernel: &Kernel,
        groups: &[wgpu::BindGroup; 2],
        count: u32,
        times: u32,
    ) -> Result<f64, RunError> {
        let device = &self.device;
        device.finish()?;
        let begun = Instant::now();
        let mut encoder = device.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let moments = device.has_timestamps.then(|| {
            device.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: None,
                ty: wgpu::QueryType::Timestamp,
                count: 2,
            })
        });
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        if let Some(moments) = &moments {
            pass.write_timestamp(moments, 0);
        }
        pass.set_pipeline(&kernel.pipeline);
        for _ in 0..times {
            pass.set_bind_group(0, &groups[0], &[]);
            pass.set_bind_group(1, &groups[1], &[]);
            pass.dispatch_workgroups(count, 1, 1);
        }
        if let Some(moments) = &moments {
            pass.write_timestamp(moments, 1);
        }
        drop(pass);
        let Some(moments) = moments else {
            device.queue.submit([encoder.finish()]);
            device.finish()?;
            return Ok(begun.elapsed().as_secs_f64());
        };
        let ticks = device.ticks(encoder, &moments, 2)?;
        let period = f64::from(device.queue.get_timestamp_period());
        Ok((ticks[1].saturating_sub(ticks[0])) as f64 * period * 1e-9)
    }
}
