//! Rules on the files of the repository that no compiler checks: each finding says what and why.

mod manifests;
mod text;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// How a finding is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// Worth a look; fails nothing.
    Notice,
    /// Must be mended.
    Error,
}

/// One thing that a rule found.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    level: Level,
    /// Relative to the root, parts joined by `/`.
    path: String,
    /// Counted from one; none if it is about the whole file.
    line: Option<usize>,
    problem: String,
}

impl Finding {
    fn error(path: &str, line: Option<usize>, problem: impl Into<String>) -> Self {
        Self { level: Level::Error, path: path.into(), line, problem: problem.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Notice => "notice",
            Level::Error => "error",
        };
        write!(f, "{level}: {}", self.path)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

/// Looks through the files of the repository at `root`.
///
/// # Errors
/// If a rule is broken, after all findings were shown; or if a file can't be read.
pub(crate) fn run(root: &Path) -> Result<()> {
    let findings = findings(root)?;
    for finding in &findings {
        eprintln!("{finding}");
    }
    let errors = findings.iter().filter(|finding| finding.level == Level::Error).count();
    if errors > 0 {
        bail!("{errors} rule(s) on files are broken: each is named above with what to do");
    }
    Ok(())
}

fn findings(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for path in files(root)? {
        let full = root.join(&path);
        let name =
            path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/");
        let bytes = match fs::read(&full) {
            Ok(bytes) => bytes,
            // Removed in the work tree, not yet in the index.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| format!("reading {}", full.display())),
        };
        findings.extend(text::size(&name, bytes.len()));
        // As `git` does: a file with a zero byte early on is not text.
        if !bytes.iter().take(8000).any(|byte| *byte == 0) {
            findings.extend(text::check(&name, &String::from_utf8_lossy(&bytes)));
        }
    }
    findings.extend(manifests::check(root)?);
    Ok(findings)
}

/// The repository's files, relative to `root`: those that `git` tracks or would; without `git`, all but build
/// outputs and hidden folders.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    match output {
        Ok(output) if output.status.success() => {
            let listed = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
            Ok(listed
                .split_terminator('\0')
                .filter(|name| !root.join(name).is_dir())
                .map(PathBuf::from)
                .collect())
        }
        _ => {
            let mut files = Vec::new();
            walk(root, Path::new(""), &mut files)?;
            files.sort();
            Ok(files)
        }
    }
}

fn walk(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let full = root.join(folder);
    for entry in fs::read_dir(&full).with_context(|| format!("listing {}", full.display()))? {
        let entry = entry.with_context(|| format!("listing {}", full.display()))?;
        let path = folder.join(entry.file_name());
        let kind = entry.file_type().with_context(|| format!("looking at {}", path.display()))?;
        let name = entry.file_name();
        if kind.is_file() {
            files.push(path);
        } else if kind.is_dir() && name != "target" && name != "__pycache__" && name != ".git" {
            walk(root, &path, files)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_keeps_its_rules() {
        let errors: Vec<String> = findings(&crate::workspace::root())
            .unwrap()
            .iter()
            .filter(|finding| finding.level == Level::Error)
            .map(ToString::to_string)
            .collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }

    #[test]
    fn without_git_build_outputs_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        for path in ["src/main.rs", "target/debug/x", "tests/__pycache__/y", ".git/config", ".ci/run"] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let mut files = Vec::new();
        walk(root.path(), Path::new(""), &mut files).unwrap();
        files.sort();
        assert_eq!(files, [Path::new(".ci/run"), Path::new("src/main.rs")]);
    }

    #[test]
    fn a_finding_says_where() {
        let finding = Finding::error("a/b.rs", Some(3), "wrong");
        assert_eq!(finding.to_string(), "error: a/b.rs:3: wrong");
        let finding = Finding { level: Level::Notice, line: None, ..finding };
        assert_eq!(finding.to_string(), "notice: a/b.rs: wrong");
    }
}
