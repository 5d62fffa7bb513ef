//! `repartee devices`: what can be heard with and played on.

use anyhow::Result;
use repartee_audio::Direction;
use repartee_audio::devices;

#[expect(clippy::print_stdout, reason = "the command's output")]
pub(crate) fn run() -> Result<()> {
    for (direction, title) in [(Direction::Input, "microphones"), (Direction::Output, "speakers")] {
        println!("{title}:");
        let list = devices::list(direction)?;
        if list.is_empty() {
            println!("  none");
        }
        for device in list {
            println!("  {}  ({})", device.name, device.id);
        }
    }
    Ok(())
}
