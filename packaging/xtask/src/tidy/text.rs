//! Rules on the text of files: words that tie the repository to a place, and length.

use super::{Finding, Level};

/// From this length on a source file should be taken apart; a notice.
const LONG_LINES: usize = 600;
/// Above this length it must be.
const TOO_LONG_LINES: usize = 700;
/// The endings of files that people write and read; tables of data may be as long as their data.
const SOURCE_ENDINGS: [&str; 9] = ["rs", "wgsl", "cu", "cuh", "c", "h", "metal", "py", "sh"];

/// Test references and sample recordings stay below this; weights never stand in the repository.
const MAX_FILE_BYTES: usize = 2_000_000;

/// Package registries by host. Packages are named by registry and name, and fetched with the user's own
/// client, so that mirrors and proxies hold. (In two pieces each: this file is looked at, too.)
const REGISTRY_HOSTS: [&str; 8] = [
    concat!("pypi", ".org"),
    concat!("python", "hosted.org"),
    concat!("npm", "js.org"),
    concat!("npm", "js.com"),
    concat!("yarn", "pkg.com"),
    concat!("crates", ".io"),
    concat!("deb.debian", ".org"),
    concat!("archive.ubuntu", ".com"),
];

/// Beginnings of absolute paths that hold on one machine only. (In two pieces each, as above.) Those of other
/// systems stay out: what the program reads aloud may hold paths, and its tests do.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/wo", "rk/"), concat!("/tmp/pe", "ers")];

/// Written by a tool that has to name where crates come from.
const MACHINE_WRITTEN: [&str; 1] = ["Cargo.lock"];

/// The finding on a file of `len_bytes`, if it is too large.
pub(super) fn size(path: &str, len_bytes: usize) -> Option<Finding> {
    (len_bytes > MAX_FILE_BYTES).then(|| {
        let problem = format!(
            "{len_bytes} bytes: files above {MAX_FILE_BYTES} belong into the catalogue of models, not here"
        );
        Finding::error(path, None, problem)
    })
}

/// The findings on the text of one file.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(length(path, text));
    let name = path.rsplit('/').next().unwrap_or(path);
    if MACHINE_WRITTEN.contains(&name) {
        return findings;
    }
    for (line, number) in text.lines().zip(1..) {
        let lower = line.to_ascii_lowercase();
        for host in REGISTRY_HOSTS {
            if lower.contains(host) {
                let problem = format!(
                    "`{host}` is a package registry's host: name the package and its registry instead"
                );
                findings.push(Finding::error(path, Some(number), problem));
            }
        }
        for start in MACHINE_PATHS {
            if holds_path(line, start) {
                let problem = format!("a path under `{start}` holds on one machine only: make it relative");
                findings.push(Finding::error(path, Some(number), problem));
            }
        }
    }
    findings
}

fn length(path: &str, text: &str) -> Option<Finding> {
    let (_, ending) = path.rsplit_once('.')?;
    let lines = text.lines().count();
    if !SOURCE_ENDINGS.contains(&ending) || lines <= LONG_LINES {
        return None;
    }
    let level = if lines > TOO_LONG_LINES { Level::Error } else { Level::Notice };
    let problem = format!(
        "{lines} lines: a source file stays under about {LONG_LINES} and never above {TOO_LONG_LINES}; take it apart by concept"
    );
    Some(Finding { level, path: path.into(), line: None, problem })
}

/// Whether `start` stands in `line` as the beginning of an absolute path, not inside a longer path or address.
fn holds_path(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !"/\\.-_~}$".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(findings: &[Finding]) -> Vec<usize> {
        findings.iter().filter_map(|finding| finding.line).collect()
    }

    #[test]
    fn registry_hosts_are_found_wherever_they_stand() {
        for host in REGISTRY_HOSTS {
            let text =
                format!("fine\nsee https://{host}/x\n  url = \"https://www.{}\"\n", host.to_uppercase());
            assert_eq!(lines_of(&check("a.md", &text)), [2, 3], "{host}");
            assert_eq!(check("Cargo.lock", &text), [], "{host}");
            assert_eq!(lines_of(&check("docs/Cargo.lock.md", &text)), [2, 3], "{host}");
        }
        assert_eq!(check("a.md", "the PyPI package, `npm pack`, a crate, debian"), []);
    }

    #[test]
    fn absolute_machine_paths_are_found() {
        for start in MACHINE_PATHS {
            for before in ["", "\"", "(", "`", "= ", "file:", ":"] {
                assert_eq!(lines_of(&check("a.rs", &format!("{before}{start}x"))), [1], "{before}{start}");
            }
        }
    }

    #[test]
    fn parts_of_longer_paths_and_addresses_are_not() {
        for start in MACHINE_PATHS {
            for before in ["https://host.example", "..", ".", "~", "$HOME", "${HOME}", "a/b", "target"] {
                assert_eq!(check("a.rs", &format!("{before}{start}x")), [], "{before}{start}");
            }
        }
        assert_eq!(check("a.rs", "/tmp/x /usr/share/vulkan /etc/os-release"), []);
    }

    #[test]
    fn long_source_files_are_noticed_and_too_long_ones_refused() {
        let levels = |path: &str, lines: usize| {
            check(path, &"x\n".repeat(lines)).iter().map(|finding| finding.level).collect::<Vec<_>>()
        };
        assert_eq!(levels("a/b.rs", 600), []);
        assert_eq!(levels("a/b.rs", 601), [Level::Notice]);
        assert_eq!(levels("a/b.wgsl", 700), [Level::Notice]);
        assert_eq!(levels("a/b.py", 701), [Level::Error]);
        assert_eq!(levels("a/b.toml", 5000), []);
        assert_eq!(levels("LICENSE", 5000), []);
    }

    #[test]
    fn large_files_are_refused() {
        assert_eq!(size("a.bin", 2_000_000), None);
        assert_eq!(size("a.bin", 2_000_001).map(|finding| finding.level), Some(Level::Error));
    }
}
