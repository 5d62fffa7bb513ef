//! What a report says about the machine: nothing that names the user or the host.

use serde::{Deserialize, Serialize};

/// Facts about the machine that figures depend on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(expecting = "a machine")]
pub struct Machine {
    /// Processor model as the system names it.
    pub cpu: String,
    /// Logical processors this program may use.
    pub cores: usize,
    /// Main memory in bytes; 0 where the system does not tell.
    pub memory_bytes: u64,
    /// Operating system and version.
    pub os: String,
    /// Instruction set family, for example `x86_64`.
    pub arch: String,
}

impl Machine {
    /// The machine this runs on. What the system does not tell is "unknown" or 0.
    pub fn detect() -> Self {
        Self {
            cpu: cpu_model().unwrap_or_else(|| "unknown".into()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_bytes().unwrap_or(0),
            os: os_name().unwrap_or_else(|| std::env::consts::OS.into()),
            arch: std::env::consts::ARCH.into(),
        }
    }
}

/// The value behind the first `key` of `key<separator>value` lines, without quotes.
#[cfg(any(target_os = "linux", test))]
fn field(text: &str, key: &str, separator: char) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        let value = value.trim().trim_matches('"');
        (name.trim() == key && !value.is_empty()).then(|| value.to_owned())
    })
}

#[cfg(target_os = "linux")]
fn cpu_model() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    // Boards without a model name give one of the others.
    ["model name", "Model", "Hardware"].iter().find_map(|key| field(&info, key, ':'))
}

#[cfg(target_os = "linux")]
fn memory_bytes() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib: u64 = field(&info, "MemTotal", ':')?.trim_end_matches("kB").trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(target_os = "linux")]
fn os_name() -> Option<String> {
    field(&std::fs::read_to_string("/etc/os-release").ok()?, "PRETTY_NAME", '=')
}

#[cfg(target_os = "macos")]
fn sysctl(name: &std::ffi::CStr) -> Option<Vec<u8>> {
    let mut value = vec![0u8; 256];
    let mut len = value.len();
    // SAFETY: `value` has `len` writable bytes, `name` is a C string, nothing is set.
    let failed = unsafe {
        libc::sysctlbyname(name.as_ptr(), value.as_mut_ptr().cast(), &mut len, std::ptr::null_mut(), 0)
    };
    value.truncate(len);
    (failed == 0).then_some(value)
}

#[cfg(target_os = "macos")]
fn cpu_model() -> Option<String> {
    let name = sysctl(c"machdep.cpu.brand_string")?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
}

#[cfg(target_os = "macos")]
fn memory_bytes() -> Option<u64> {
    Some(u64::from_ne_bytes(sysctl(c"hw.memsize")?.try_into().ok()?))
}

#[cfg(target_os = "macos")]
fn os_name() -> Option<String> {
    let version = sysctl(c"kern.osproductversion")?;
    Some(format!("macOS {}", String::from_utf8_lossy(&version).trim_end_matches('\0')))
}

#[cfg(target_os = "windows")]
fn cpu_model() -> Option<String> {
    std::env::var("PROCESSOR_IDENTIFIER").ok()
}

#[cfg(not(any(target_os = "linux", target_os = "macos", target_os = "windows")))]
fn cpu_model() -> Option<String> {
    None
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn memory_bytes() -> Option<u64> {
    None
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn os_name() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_processor_and_memory() {
        let machine = Machine::detect();
        assert!(machine.cores > 0 && !machine.cpu.is_empty() && !machine.os.is_empty());
        if cfg!(any(target_os = "linux", target_os = "macos")) {
            assert!(machine.memory_bytes > 1 << 24);
        }
    }

    #[test]
    fn fields_are_found_by_whole_name() {
        let text = "model\t: 85\nmodel name\t: Xeon: gold\nempty :\nPRETTY_NAME=\"Some OS 1\"\n";
        assert_eq!(field(text, "model name", ':').as_deref(), Some("Xeon: gold"));
        assert_eq!(field(text, "PRETTY_NAME", '=').as_deref(), Some("Some OS 1"));
        assert_eq!(field(text, "empty", ':'), None);
        assert_eq!(field(text, "absent", ':'), None);
    }
}
