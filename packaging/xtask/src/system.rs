//! What the machine must have, how to see whether it does, and how to install it.
//!
//! Packages are installed where the names are sure and the tool is everywhere (`apt-get` on Debian and its
//! kin); elsewhere the command to type is shown. Nothing runs as another user unless the person said so.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

/// Who answers the question whether something may be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    /// The person at the terminal.
    Ask,
    /// `--yes`: given beforehand, `sudo` included.
    Yes,
    /// `CI=true`: given for what needs no `sudo`; nobody is asked.
    Ci,
}

impl Consent {
    /// From `--yes` and `CI=true`; the first says more.
    pub(crate) fn new(yes: bool, is_ci: bool) -> Self {
        match (yes, is_ci) {
            (true, _) => Self::Yes,
            (false, true) => Self::Ci,
            (false, false) => Self::Ask,
        }
    }
}

/// The families of systems that differ in how packages are installed and named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    Debian,
    Fedora,
    Arch,
    Suse,
    Mac,
    Windows,
    Other,
}

impl System {
    /// The system that this runs on.
    pub(crate) fn here() -> Self {
        match std::env::consts::OS {
            "macos" => Self::Mac,
            "windows" => Self::Windows,
            "linux" => Self::of_os_release(&std::fs::read_to_string("/etc/os-release").unwrap_or_default()),
            _ => Self::Other,
        }
    }

    /// From the text of `/etc/os-release`: its `ID`, then the families in `ID_LIKE`.
    /// (<https://www.freedesktop.org/software/systemd/man/latest/os-release.html>)
    fn of_os_release(text: &str) -> Self {
        let value = |key: &str| {
            text.lines()
                .filter_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='))
                .map(|value| value.trim_matches(['"', '\'']))
                .next_back()
                .unwrap_or_default()
        };
        let family = |id: &str| match id {
            "debian" | "ubuntu" => Some(Self::Debian),
            "fedora" | "rhel" | "centos" => Some(Self::Fedora),
            "arch" => Some(Self::Arch),
            "suse" | "opensuse" => Some(Self::Suse),
            id if id.starts_with("opensuse-") => Some(Self::Suse),
            _ => None,
        };
        let ids = std::iter::once(value("ID")).chain(value("ID_LIKE").split_whitespace());
        ids.filter_map(family).next().unwrap_or(Self::Other)
    }

    /// The words that install packages here, before their names; none where there is no one tool for it.
    fn installer(self) -> &'static [&'static str] {
        match self {
            Self::Debian => &["apt-get", "install", "-y", "--no-install-recommends"],
            Self::Fedora => &["dnf", "install"],
            Self::Arch => &["pacman", "-S"],
            Self::Suse => &["zypper", "install"],
            Self::Mac => &["brew", "install"],
            Self::Windows => &["winget", "install"],
            Self::Other => &[],
        }
    }
}

/// Something that the machine must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Python's package client: brings model files that are not to be had from their public address.
    Pip,
    /// Node's package client: the same.
    Npm,
    /// A Vulkan loader and a driver, of a GPU or in software: what the GPU backend is tested on.
    Vulkan,
    /// The headers of ALSA, and what finds them: Linux builds against them.
    Alsa,
    /// The libraries that a window is opened with; they are looked for when the program starts.
    Window,
    /// A display without a screen: what the window is tested on.
    Display,
    /// A sound server with virtual devices: what the devices are tested on, with or without a sound card.
    PulseAudio,
}

impl Need {
    /// What it is called in a sentence.
    fn name(self) -> &'static str {
        match self {
            Self::Pip => "Python 3 with pip",
            Self::Npm => "Node.js with npm",
            Self::Vulkan => "a Vulkan loader with a driver",
            Self::Alsa => "the headers of ALSA with pkg-config",
            Self::Window => "the libraries of X11 and OpenGL",
            Self::Display => "the virtual display Xvfb",
            Self::PulseAudio => "PulseAudio with its tools and ALSA's plugin for it",
        }
    }

    /// The packages that bring it.
    fn packages(self, system: System) -> &'static [&'static str] {
        match (self, system) {
            (Self::Pip, System::Debian | System::Fedora | System::Suse) => &["python3-pip"],
            (Self::Pip, System::Arch) => &["python-pip"],
            (Self::Pip, System::Mac) => &["python"],
            (Self::Pip, System::Windows) => &["Python.Python.3.13"],
            (Self::Npm, System::Debian | System::Arch) => &["npm"],
            (Self::Npm, System::Fedora) => &["nodejs-npm"],
            (Self::Npm, System::Suse) => &["npm-default"],
            (Self::Npm, System::Mac) => &["node"],
            (Self::Npm, System::Windows) => &["OpenJS.NodeJS"],
            (Self::Vulkan, System::Debian) => &["libvulkan1", "mesa-vulkan-drivers"],
            (Self::Vulkan, System::Fedora) => &["vulkan-loader", "mesa-vulkan-drivers"],
            (Self::Vulkan, System::Arch) => &["vulkan-icd-loader", "vulkan-swrast"],
            (Self::Vulkan, System::Suse) => &["libvulkan1", "libvulkan_lvp"],
            (Self::Alsa, System::Debian) => &["libasound2-dev", "pkg-config"],
            (Self::Alsa, System::Fedora) => &["alsa-lib-devel", "pkgconf-pkg-config"],
            (Self::Alsa, System::Arch) => &["alsa-lib", "pkgconf"],
            (Self::Alsa, System::Suse) => &["alsa-devel", "pkg-config"],
            (Self::Window, System::Debian) => {
                &["libxkbcommon-x11-0", "libx11-xcb1", "libxcursor1", "libxi6", "libegl1", "libgl1-mesa-dri"]
            }
            (Self::Window, System::Fedora) => {
                &["libxkbcommon-x11", "libX11-xcb", "libXcursor", "libXi", "mesa-libEGL", "mesa-dri-drivers"]
            }
            (Self::Window, System::Arch) => &["libxkbcommon-x11", "libx11", "libxcursor", "libxi", "mesa"],
            (Self::Window, System::Suse) => {
                &["libxkbcommon-x11-0", "libX11-xcb1", "libXcursor1", "libXi6", "Mesa-libEGL1", "Mesa-dri"]
            }
            (Self::Display, System::Debian) => &["xvfb"],
            (Self::Display, System::Fedora | System::Suse) => &["xorg-x11-server-Xvfb"],
            (Self::Display, System::Arch) => &["xorg-server-xvfb"],
            (Self::PulseAudio, System::Debian) => &["pulseaudio", "pulseaudio-utils", "libasound2-plugins"],
            (Self::PulseAudio, System::Fedora) => {
                &["pulseaudio", "pulseaudio-utils", "alsa-plugins-pulseaudio"]
            }
            (Self::PulseAudio, System::Arch) => &["pulseaudio", "alsa-plugins"],
            (Self::PulseAudio, System::Suse) => &["pulseaudio", "pulseaudio-utils", "alsa-plugins-pulse"],
            // Metal and Direct3D 12, Core Audio and WASAPI come with the system.
            (
                Self::Vulkan | Self::Alsa | Self::PulseAudio | Self::Window | Self::Display,
                System::Mac | System::Windows,
            ) => &[],
            (_, System::Other) => &[],
        }
    }

    /// Whether the machine has it.
    pub(crate) fn is_met(self) -> bool {
        match self {
            Self::Pip => {
                ["python3", "python"].iter().any(|python| process::works(python, &["-m", "pip", "--version"]))
                    || ["pip3", "pip"].iter().any(|pip| process::works(pip, &["--version"]))
            }
            Self::Npm => process::works(if cfg!(windows) { "npm.cmd" } else { "npm" }, &["--version"]),
            Self::Vulkan => !cfg!(target_os = "linux") || has_vulkan(),
            Self::Alsa => !cfg!(target_os = "linux") || process::works("pkg-config", &["--exists", "alsa"]),
            Self::Window => {
                const LIBRARIES: [&str; 4] =
                    ["libxkbcommon-x11.so.0", "libXcursor.so.1", "libXi.so.6", "libEGL.so.1"];
                !cfg!(target_os = "linux") || LIBRARIES.iter().all(|library| is_listed(library))
            }
            Self::Display => !cfg!(target_os = "linux") || process::works("Xvfb", &["-help"]),
            Self::PulseAudio => {
                !cfg!(target_os = "linux")
                    || (["pulseaudio", "pactl"].iter().all(|name| process::works(name, &["--version"]))
                        && has_alsa_plugin())
            }
        }
    }
}

/// Whether a Vulkan loader and at least one driver's manifest stand where the loader looks.
fn has_vulkan() -> bool {
    let has_loader = is_listed("libvulkan.so.1")
        || ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib64"]
            .iter()
            .any(|folder| Path::new(folder).join("libvulkan.so.1").exists());
    let has_driver =
        ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"].iter().any(|key| std::env::var_os(key).is_some())
            || ["/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d"]
                .iter()
                .filter_map(|folder| std::fs::read_dir(folder).ok())
                .any(|mut entries| entries.next().is_some());
    has_loader && has_driver
}

/// Whether ALSA's plugin for PulseAudio stands where ALSA looks: a folder for the architecture, or none.
fn has_alsa_plugin() -> bool {
    let libraries = std::fs::read_dir("/usr/lib").into_iter().flatten().filter_map(Result::ok);
    let folders = libraries.map(|entry| entry.path()).chain(["/usr/lib", "/usr/lib64"].map(Into::into));
    let mut plugins = folders.map(|folder| folder.join("alsa-lib/libasound_module_pcm_pulse.so"));
    plugins.any(|plugin| plugin.exists())
}

/// Whether the system's list of shared libraries has this one; it knows the folders by architecture.
fn is_listed(library: &str) -> bool {
    ["ldconfig", "/sbin/ldconfig"].iter().any(|ldconfig| {
        Command::new(ldconfig)
            .arg("-p")
            .output()
            .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(library))
    })
}

/// How a set of needs gets met on a system.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    /// This command may be run after asking.
    Run(Vec<String>),
    /// This is what the person is told.
    Tell(String),
}

/// The plan for `needs`; `is_root` says whether packages can be installed without `sudo`.
fn plan(needs: &[Need], system: System, is_root: bool) -> Plan {
    let mut packages = Vec::new();
    for package in needs.iter().flat_map(|need| need.packages(system)) {
        if !packages.contains(package) {
            packages.push(*package);
        }
    }
    let names = needs.iter().map(|need| need.name()).collect::<Vec<_>>().join(" and ");
    if packages.is_empty() || system.installer().is_empty() {
        return Plan::Tell(format!("install {names} the way your system does it"));
    }
    let needs_sudo = !is_root && !matches!(system, System::Mac | System::Windows);
    let words = needs_sudo.then_some("sudo").into_iter();
    let words = words.chain(system.installer().iter().copied()).chain(packages);
    let words: Vec<String> = words.map(str::to_owned).collect();
    match system {
        System::Debian => Plan::Run(words),
        _ => Plan::Tell(format!("install {names}: `{}`", words.join(" "))),
    }
}

/// Tries to meet those of `needs` that are not met, and returns those that still are not. What could not be
/// installed is said, with the command that does it; whether that matters is the caller's to judge.
///
/// # Errors
/// If a command that was agreed to fails.
pub(crate) fn provide(needs: &[Need], why: &str, consent: Consent) -> Result<Vec<Need>> {
    let unmet = |needs: &[Need]| needs.iter().copied().filter(|need| !need.is_met()).collect::<Vec<_>>();
    let missing = unmet(needs);
    if missing.is_empty() {
        return Ok(missing);
    }
    let is_root = is_root();
    match plan(&missing, System::here(), is_root) {
        Plan::Tell(what) => eprintln!("{why}: {what}"),
        Plan::Run(words) => {
            let line = words.join(" ");
            let is_agreed = match consent {
                Consent::Yes => true,
                Consent::Ci => is_root,
                Consent::Ask => ask(&format!("{why}. Run `{line}`?"))?,
            };
            if is_agreed {
                install(&words, consent)?;
            } else {
                eprintln!("{why}: `{line}` installs it");
            }
        }
    }
    Ok(unmet(&missing))
}

/// What the whole workspace is built with. What must be there and is not is an error.
///
/// # Errors
/// If it can't be installed; the text before says the command that does it.
pub(crate) fn provide_for_build(consent: Consent) -> Result<()> {
    let missing = provide(&[Need::Alsa], "Microphone and speaker are built against ALSA", consent)?;
    anyhow::ensure!(missing.is_empty(), "nothing can be built without what is named above");
    Ok(())
}

/// Runs the installing command `words`, once more behind a renewed list of packages if it fails: a fresh
/// system has no list, an old one names versions that are gone.
fn install(words: &[String], consent: Consent) -> Result<()> {
    const ADVICE: &str = "see what it says above, install the packages by hand, then run this again";
    let command = |words: &[&str]| {
        let (program, args) = words.split_first().unwrap_or((&"apt-get", &[]));
        let mut command = Command::new(program);
        if *program == "sudo" && consent != Consent::Ask {
            // Nobody is there to type a password.
            command.arg("-n");
        }
        command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if process::run(&mut command(&words), ADVICE).is_ok() {
        return Ok(());
    }
    let mut update: Vec<&str> = words.iter().copied().take_while(|word| *word != "install").collect();
    update.push("update");
    process::run_twice(&mut command(&update), "see what it says above: is the network up?")?;
    process::run(&mut command(&words), ADVICE)
}

/// Makes sure that `cargo fmt` and `cargo clippy` are there; a minimal toolchain lacks them.
///
/// # Errors
/// If they are missing and can't be installed, with the command that does it.
pub(crate) fn provide_components(consent: Consent) -> Result<()> {
    let missing: Vec<&str> = [("rustfmt", "fmt"), ("clippy", "clippy")]
        .into_iter()
        .filter(|(_, subcommand)| !process::works("cargo", &[*subcommand, "--version"]))
        .map(|(component, _)| component)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let line = format!("rustup component add {}", missing.join(" "));
    let is_agreed = consent != Consent::Ask
        || ask(&format!("The Rust toolchain lacks {}. Run `{line}`?", missing.join(", ")))?;
    anyhow::ensure!(is_agreed, "the Rust toolchain lacks {}: `{line}` installs it", missing.join(", "));
    let mut command = Command::new("rustup");
    command.args(["component", "add"]).args(missing);
    process::run_twice(&mut command, "without rustup, install the components the way Rust was installed")
}

/// Asks a yes-or-no question on the terminal; yes by default, no where there is no terminal.
fn ask(question: &str) -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        eprintln!("{question} Nobody is here to answer; `--yes` does it without asking.");
        return Ok(false);
    }
    eprint!("{question} [Y/n] ");
    std::io::stderr().flush().context("asking")?;
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer).context("reading the answer")?;
    Ok(read > 0 && is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes")
}

/// Whether packages can be installed without `sudo`.
fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY_NEED: [Need; 7] =
        [Need::Pip, Need::Npm, Need::Vulkan, Need::Alsa, Need::PulseAudio, Need::Window, Need::Display];

    fn words(plan: Plan) -> String {
        match plan {
            Plan::Run(words) => words.join(" "),
            Plan::Tell(what) => panic!("only told: {what}"),
        }
    }

    #[test]
    fn consent_never_asks_with_yes_or_in_ci() {
        assert_eq!(Consent::new(false, false), Consent::Ask);
        assert_eq!(Consent::new(false, true), Consent::Ci);
        assert_eq!(Consent::new(true, false), Consent::Yes);
        assert_eq!(Consent::new(true, true), Consent::Yes);
    }

    #[test]
    fn systems_are_known_by_their_id_and_family() {
        let cases = [
            ("PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n", System::Debian),
            ("ID=ubuntu\nID_LIKE=debian\n", System::Debian),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", System::Debian),
            ("ID=fedora\n", System::Fedora),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", System::Fedora),
            ("ID='manjaro'\nID_LIKE=arch\n", System::Arch),
            ("ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"\n", System::Suse),
            // `VARIANT_ID` and `ID_LIKE` are not `ID`.
            ("VARIANT_ID=debian\nID=void\n", System::Other),
            ("", System::Other),
        ];
        for (text, system) in cases {
            assert_eq!(System::of_os_release(text), system, "{text}");
        }
    }

    #[test]
    fn debian_gets_one_command_with_every_package_once() {
        let needs = [Need::Vulkan, Need::Pip, Need::Vulkan];
        let expected =
            "apt-get install -y --no-install-recommends libvulkan1 mesa-vulkan-drivers python3-pip";
        assert_eq!(words(plan(&needs, System::Debian, true)), expected);
        assert_eq!(words(plan(&needs, System::Debian, false)), format!("sudo {expected}"));
    }

    #[test]
    fn other_systems_are_told_a_command_and_nothing_is_run() {
        for system in [System::Fedora, System::Arch, System::Suse, System::Mac, System::Windows] {
            for need in [Need::Pip, Need::Npm] {
                let Plan::Tell(what) = plan(&[need], system, true) else { panic!("{system:?} would run it") };
                let package = need.packages(system)[0];
                assert!(what.contains(system.installer()[0]) && what.contains(package), "{what}");
                assert!(what.contains(need.name()), "{what}");
            }
        }
    }

    #[test]
    fn an_unknown_system_is_told_what_is_missing() {
        let Plan::Tell(what) = plan(&EVERY_NEED, System::Other, true) else { panic!("would run something") };
        for need in EVERY_NEED {
            assert!(what.contains(need.name()), "{what}");
        }
    }

    #[test]
    fn an_empty_answer_means_yes() {
        for answer in ["\n", "y\n", "YES", " Yes \r\n"] {
            assert!(is_yes(answer), "{answer:?}");
        }
        for answer in ["n\n", "no", "what?", "yeah no"] {
            assert!(!is_yes(answer), "{answer:?}");
        }
    }
}
