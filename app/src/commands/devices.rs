//! `repartee devices`: what can be heard with, played on and computed with.

use anyhow::Result;
use repartee_engine::backends::Backend;
use repartee_engine::backends::cpu::{Cpu, CpuOptions};

use crate::printing::out;

pub(crate) fn run() -> Result<()> {
    #[cfg(feature = "desktop")]
    sound()?;
    out!("computes:");
    out!("  {}", Cpu::new(CpuOptions::default()).description());
    #[cfg(feature = "wgpu")]
    gpus();
    Ok(())
}

#[cfg(feature = "desktop")]
fn sound() -> Result<()> {
    use repartee_audio::{Direction, devices};

    for (direction, title) in [(Direction::Input, "microphones"), (Direction::Output, "speakers")] {
        out!("{title}:");
        let list = devices::list(direction)?;
        if list.is_empty() {
            out!("  none");
        }
        for device in list {
            out!("  {}  ({})", device.name, device.id);
        }
    }
    Ok(())
}

#[cfg(feature = "wgpu")]
fn gpus() {
    use repartee_engine::backends::wgpu::{Wgpu, WgpuError, WgpuOptions, adapters};

    let opened = Wgpu::new(WgpuOptions::default());
    match &opened {
        Ok(gpu) => out!("  {} (`--backend wgpu`)", gpu.description()),
        Err(WgpuError::NoAdapter { .. }) => out!("  no GPU was found"),
        Err(error) => out!("  {error}"),
    }
    // The first one that is no software is the one above.
    let others = adapters().into_iter().skip_while(|adapter| opened.is_ok() && adapter.is_software);
    for adapter in others.skip(usize::from(opened.is_ok())) {
        match adapter.is_software {
            true => out!("  {adapter}: software, used only when asked for"),
            false => out!("  {adapter}: not used"),
        }
    }
}
