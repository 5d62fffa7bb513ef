//! The adapter that is chosen, buffers, and pipelines that are made once for all programs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::pipelines::Pipelines;
use super::{Adapter, WgpuError, WgpuOptions};
use crate::backends::executor::Turnstile;
use crate::backends::{CompileErrorKind, RunError};

/// Bindings of group 0: the arena, the parameters, four weights.
pub(super) const WEIGHTS: usize = 4;
/// Bindings of group 1: the step block and two states.
pub(super) const STATES: usize = 2;

/// Whoever waits for the device tells of all that is done, and may be a moment behind another thread that sees it too.
pub(super) const TOLD_WITHIN: Duration = Duration::from_secs(2);

/// Bytes of weights that are handed over at a time, and that wait to be copied at most: the driver keeps each in memory of
/// the host until then.
const UPLOAD: usize = 4 << 20;
const UPLOADS: usize = 24 << 20;

/// A compiled entry point.
#[derive(Clone)]
pub(super) struct Kernel {
    /// Its name, for placements.
    pub(super) entry: &'static str,
    pub(super) pipeline: wgpu::ComputePipeline,
}

/// What all programs and sessions of one backend share.
pub(super) struct Device {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    /// Name and API of the adapter.
    pub(super) adapter: String,
    /// All that is known of it.
    pub(super) about: Adapter,
    pub(super) limits: wgpu::Limits,
    pub(super) turnstile: Turnstile,
    pub(super) poison: bool,
    /// The processor computes, not a GPU.
    pub(super) is_software: bool,
    /// Runs that may be under way beside the one that is waited for.
    pub(super) steps_ahead: usize,
    /// Programs run once when they are compiled.
    pub(super) warms_up: bool,
    /// It can say when each kernel was done.
    pub(super) has_timestamps: bool,
    /// The most bytes of one part of a matrix.
    pub(super) part_bytes: u64,
    /// The most bytes of all buffers, and how many there were so far.
    memory: (Option<u64>, AtomicU64),
    pub(super) group0: wgpu::BindGroupLayout,
    pub(super) group1: wgpu::BindGroupLayout,
    /// Stands where a kernel uses no weight.
    pub(super) no_weight: wgpu::Buffer,
    /// Stand where a kernel uses no state; two, as writable bindings must not be the same buffer.
    pub(super) no_state: [wgpu::Buffer; STATES],
    /// Bytes of uploads that wait to be copied.
    waiting: AtomicUsize,
    layout: wgpu::PipelineLayout,
    pipelines: Option<Pipelines>,
    /// Whether pipelines were made since these were written.
    has_new: AtomicBool,
    modules: Mutex<HashMap<String, wgpu::ShaderModule>>,
    kernels: Mutex<HashMap<(String, &'static str), Kernel>>,
    /// What the driver said outside of any call that could report it.
    failure: Arc<Mutex<Option<String>>>,
}

/// Waits for a future of wgpu: on native platforms they are ready at once.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        std::thread::yield_now();
    }
}

/// Real GPUs first; none for kinds that are not allowed.
fn rank(kind: wgpu::DeviceType, allow_software: bool) -> Option<u32> {
    match kind {
        wgpu::DeviceType::DiscreteGpu => Some(0),
        wgpu::DeviceType::IntegratedGpu => Some(1),
        wgpu::DeviceType::VirtualGpu => Some(2),
        wgpu::DeviceType::Other => Some(3),
        wgpu::DeviceType::Cpu => allow_software.then_some(4),
    }
}

/// All adapters, the best first.
pub(super) fn adapters() -> Vec<wgpu::Adapter> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = wgpu::Backends::PRIMARY;
    let instance = wgpu::Instance::new(descriptor);
    let mut adapters = wait(instance.enumerate_adapters(wgpu::Backends::PRIMARY));
    adapters.sort_by_key(|adapter| rank(adapter.get_info().device_type, true));
    adapters
}

impl Device {
    pub(super) fn open(options: WgpuOptions) -> Result<Self, WgpuError> {
        let adapters = adapters();
        let software = adapters.iter().map(wgpu::Adapter::get_info);
        let software = software.filter(|i| i.device_type == wgpu::DeviceType::Cpu).map(|i| i.name).next();
        let is_usable = |a: &wgpu::Adapter| rank(a.get_info().device_type, options.allow_software).is_some();
        let Some(adapter) = adapters.into_iter().find(is_usable) else {
            return Err(WgpuError::NoAdapter { software });
        };
        let info = adapter.get_info();
        let name = format!("{}, {:?}", info.name, info.backend);
        let limits = adapter.limits();
        let timestamps = wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES;
        let has_timestamps = adapter.features().contains(timestamps);
        let on_disk = wgpu::Features::PIPELINE_CACHE;
        let folder = options.pipelines.filter(|_| adapter.features().contains(on_disk));
        let mut required_features = wgpu::Features::empty();
        required_features.set(timestamps, has_timestamps);
        required_features.set(on_disk, folder.is_some());
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("repartee compute"),
            required_features,
            required_limits: limits.clone(),
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = wait(adapter.request_device(&descriptor))
            .map_err(|e| WgpuError::Device { adapter: name.clone(), message: e.to_string() })?;
        let failure = Arc::new(Mutex::new(None));
        let (lost, wrong) = (failure.clone(), failure.clone());
        let keep = |place: &Mutex<Option<String>>, message: String| {
            place.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(message);
        };
        device.set_device_lost_callback(move |reason, message| {
            if reason != wgpu::DeviceLostReason::Destroyed {
                keep(&lost, message);
            }
        });
        device.on_uncaptured_error(Arc::new(move |e: wgpu::Error| keep(&wrong, e.to_string())));

        let group0 = bind_group_layout(&device, &[false, true], WEIGHTS);
        let group1 = bind_group_layout(&device, &[false, false, false], 0);
        let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&group0), Some(&group1)],
            immediate_size: 0,
        });
        let pipelines = folder.and_then(|folder| Pipelines::open(&device, &info, &folder));
        let is_software = info.device_type == wgpu::DeviceType::Cpu;
        let empty = || storage(&device, 4);
        let (no_weight, no_state) = (empty(), [empty(), empty()]);
        let most = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size);
        Ok(Self {
            device,
            queue,
            adapter: name,
            about: Adapter::of(&info),
            part_bytes: options.part_bytes.map_or(most, |bytes| bytes.min(most)),
            memory: (options.memory_bytes, AtomicU64::new(0)),
            limits,
            turnstile: Turnstile::default(),
            poison: options.poison,
            is_software,
            // Two under way hide what the host does; more would only make speech wait. Where software computes, a step
            // that nobody wants takes the processor from what is wanted.
            steps_ahead: options.steps_ahead.unwrap_or(usize::from(!is_software)),
            warms_up: options.warm_up.unwrap_or(!is_software),
            has_timestamps,
            group0,
            group1,
            no_weight,
            no_state,
            waiting: AtomicUsize::new(0),
            pipelines,
            has_new: AtomicBool::new(false),
            layout,
            modules: Mutex::default(),
            kernels: Mutex::default(),
            failure,
        })
    }

    /// Whether a workgroup may have 1024 threads and 32 KiB.
    pub(super) fn has_wide_groups(&self) -> bool {
        self.limits.max_compute_invocations_per_workgroup >= 1024
            && self.limits.max_compute_workgroup_size_x >= 1024
            && self.limits.max_compute_workgroup_storage_size >= 32 << 10
    }

    /// The most bytes that one buffer and its binding can have.
    pub(super) fn most_bytes(&self) -> u64 {
        self.limits.max_storage_buffer_binding_size.min(self.limits.max_buffer_size)
    }

    /// A storage buffer of at least `bytes`, zeroed.
    ///
    /// # Errors
    /// More than the device can bind, or than it has.
    pub(super) fn buffer(&self, bytes: usize) -> Result<wgpu::Buffer, CompileErrorKind> {
        let out = || CompileErrorKind::OutOfMemory { bytes, device: self.adapter.clone() };
        let size = u64::try_from(bytes).ok().filter(|&b| b <= self.most_bytes()).ok_or_else(out)?;
        let (most, taken) = &self.memory;
        let all = taken.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        if most.is_some_and(|most| all > most) {
            return Err(out());
        }
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let buffer = storage(&self.device, size);
        if wait(scope.pop()).is_some() { Err(out()) } else { Ok(buffer) }
    }

    /// Writes into a buffer; `at` and the length are multiples of 4. Waits now and then for what was written before.
    ///
    /// # Errors
    /// A lost device.
    pub(super) fn upload(&self, to: &wgpu::Buffer, at: u64, bytes: &[u8]) -> Result<(), CompileErrorKind> {
        for (i, piece) in bytes.chunks(UPLOAD).enumerate() {
            self.queue.write_buffer(to, at + (i * UPLOAD) as u64, piece);
            if self.waiting.fetch_add(piece.len(), Ordering::Relaxed) + piece.len() >= UPLOADS {
                self.finish_uploads()?;
            }
        }
        Ok(())
    }

    /// Waits until all that was written is where it belongs.
    ///
    /// # Errors
    /// A lost device.
    pub(super) fn finish_uploads(&self) -> Result<(), CompileErrorKind> {
        if self.waiting.swap(0, Ordering::Relaxed) > 0 {
            self.queue.submit([]);
            self.finish().map_err(|e| self.failed_to_make(e))?;
        }
        Ok(())
    }

    /// A buffer that the host reads.
    pub(super) fn staging(&self, bytes: u64) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("read back"),
            size: bytes.next_multiple_of(4).max(4),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        })
    }

    /// A kernel; `source` is called only for a module that is new.
    ///
    /// # Errors
    /// What the compiler says.
    pub(super) fn kernel(
        &self,
        module: &str,
        entry: &'static str,
        source: impl FnOnce() -> String,
    ) -> Result<Kernel, CompileErrorKind> {
        let key = (module.to_owned(), entry);
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kernels.get(&key) {
            return Ok(known.clone());
        }
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let shader = modules.entry(module.to_owned()).or_insert_with(|| {
            let descriptor = wgpu::ShaderModuleDescriptor {
                label: Some(module),
                source: wgpu::ShaderSource::Wgsl(source().into()),
            };
            // Counting the rounds of every loop, so that each ends, makes products three times slower. Accesses are still
            // checked.
            let checks = wgpu::ShaderRuntimeChecks {
                force_loop_bounding: false,
                ..wgpu::ShaderRuntimeChecks::checked()
            };
            // SAFETY: what is not checked is only whether loops end. Those of our kernels, which are no input, count
            // integers up to bounds or down to zero.
            unsafe { self.device.create_shader_module_trusted(descriptor, checks) }
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(entry),
            layout: Some(&self.layout),
            module: shader,
            entry_point: Some(entry),
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: self.pipelines.as_ref().map(Pipelines::cache),
        });
        if let Some(e) = wait(scope.pop()) {
            modules.remove(module);
            let message = format!("{module}/{entry}: {e}");
            return Err(CompileErrorKind::Device { device: self.adapter.clone(), message });
        }
        let kernel = Kernel { entry, pipeline };
        kernels.insert(key, kernel.clone());
        self.has_new.store(true, Ordering::Relaxed);
        Ok(kernel)
    }

    /// Keeps the pipelines that were made for the next start.
    pub(super) fn save_pipelines(&self) {
        if let Some(pipelines) = &self.pipelines
            && self.has_new.swap(false, Ordering::Relaxed)
        {
            pipelines.save();
        }
    }

    /// Whether the device still works.
    ///
    /// # Errors
    /// What it said when it failed.
    pub(super) fn check(&self) -> Result<(), RunError> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match failure {
            None => Ok(()),
            Some(message) => Err(RunError::DeviceLost { device: self.adapter.clone(), message }),
        }
    }

    /// The same for what is being made.
    ///
    /// # Errors
    /// What it said when it failed.
    pub(super) fn check_made(&self) -> Result<(), CompileErrorKind> {
        self.check().map_err(|e| self.failed_to_make(e))
    }

    fn failed_to_make(&self, error: RunError) -> CompileErrorKind {
        match error {
            RunError::DeviceLost { device, message } => CompileErrorKind::Device { device, message },
            other => CompileErrorKind::Device { device: self.adapter.clone(), message: other.to_string() },
        }
    }

    /// The device is lost; from now on [`Self::check`] says so too.
    pub(super) fn lost(&self, message: impl ToString) -> RunError {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let message = failure.get_or_insert(message.to_string()).clone();
        RunError::DeviceLost { device: self.adapter.clone(), message }
    }

    /// Waits for what was submitted.
    ///
    /// # Errors
    /// A lost device.
    pub(super) fn finish(&self) -> Result<(), RunError> {
        self.device.poll(wgpu::PollType::wait_indefinitely()).map(drop).map_err(|e| self.lost(e))
    }

    /// Waits for a submission, and for none behind it.
    ///
    /// # Errors
    /// A lost device.
    pub(super) fn finish_until(&self, submission: wgpu::SubmissionIndex) -> Result<(), RunError> {
        let wait = wgpu::PollType::Wait { submission_index: Some(submission), timeout: None };
        self.device.poll(wait).map(drop).map_err(|e| self.lost(e))
    }

    /// Waits for what was submitted, maps a staging buffer and hands its bytes to `read`.
    ///
    /// # Errors
    /// A lost device.
    pub(super) fn read(
        &self,
        staging: &wgpu::Buffer,
        bytes: u64,
        read: impl FnOnce(&[u8]),
    ) -> Result<(), RunError> {
        let (done, result) = std::sync::mpsc::channel();
        staging.map_async(wgpu::MapMode::Read, ..bytes, move |r| {
            let _ = done.send(r);
        });
        self.finish()?;
        match result.recv_timeout(TOLD_WITHIN) {
            Ok(Ok(())) => {}
            Ok(Err(e)) => return Err(self.lost(e)),
            Err(e) => return Err(self.lost(e)),
        }
        {
            let view = staging.get_mapped_range(..bytes).map_err(|e| self.lost(e))?;
            read(&view);
        }
        staging.unmap();
        self.check()
    }

    /// Ends and submits `encoder` and gives the first `count` timestamps that it takes, in ticks.
    ///
    /// # Errors
    /// A lost device.
    pub(super) fn ticks(
        &self,
        mut encoder: wgpu::CommandEncoder,
        moments: &wgpu::QuerySet,
        count: u32,
    ) -> Result<Vec<u64>, RunError> {
        let bytes = count as usize * size_of::<u64>();
        let resolved = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: bytes as u64,
            usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        encoder.resolve_query_set(moments, 0..count, &resolved, 0);
        self.queue.submit([encoder.finish()]);
        Ok(bytemuck::pod_collect_to_vec(&self.download(&resolved, bytes)?))
    }

    /// Copies a part of a buffer to the host.
    ///
    /// # Errors
    /// A lost device.
    pub(super) fn download(&self, buffer: &wgpu::Buffer, bytes: usize) -> Result<Vec<u8>, RunError> {
        if bytes == 0 {
            return Ok(Vec::new());
        }
        let size = bytes.next_multiple_of(4) as u64;
        let staging = self.staging(size);
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, Some(size));
        self.queue.submit([encoder.finish()]);
        let mut out = Vec::new();
        self.read(&staging, size, |data| out.extend_from_slice(&data[..bytes]))?;
        Ok(out)
    }
}

fn storage(device: &wgpu::Device, bytes: u64) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        // Some kernels read four words at a time.
        size: bytes.next_multiple_of(16).max(16),
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC,
        mapped_at_creation: false,
    })
}

/// Writable storage (or a uniform buffer where `uniform`), then `read_only` read-only storage bindings.
fn bind_group_layout(device: &wgpu::Device, uniform: &[bool], read_only: usize) -> wgpu::BindGroupLayout {
    let storage = |read_only| wgpu::BufferBindingType::Storage { read_only };
    let types = uniform.iter().map(|&u| if u { wgpu::BufferBindingType::Uniform } else { storage(false) });
    let types = types.chain(std::iter::repeat_n(storage(true), read_only));
    let entries: Vec<_> = types
        .enumerate()
        .map(|(i, ty)| wgpu::BindGroupLayoutEntry {
            binding: i as u32,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
            count: None,
        })
        .collect();
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_is_used_only_when_asked_for_and_last() {
        use wgpu::DeviceType::{Cpu, DiscreteGpu, IntegratedGpu, Other, VirtualGpu};
        assert_eq!(rank(Cpu, false), None);
        let kinds = [DiscreteGpu, IntegratedGpu, VirtualGpu, Other, Cpu];
        assert!(kinds.map(|k| rank(k, true)).is_sorted());
    }
}
