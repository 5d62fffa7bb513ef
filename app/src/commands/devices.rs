//! `repartee devices`: what can be heard with and played on.

use anyhow::Result;
use repartee_audio::Direction;
use repartee_audio::devices;

use crate::printing::out;

pub(crate) fn run() -> Result<()> {
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
