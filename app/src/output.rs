//! Files that a command writes: looked at before the work is done, written whole or not at all.

use std::io::{Error, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::usage::WrongUsage;

/// A file that the command line asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output<'a> {
    /// The option that names it, for messages.
    pub(crate) option: &'static str,
    /// Where it goes.
    pub(crate) path: &'a Path,
}

/// Looks at all files of a command before its work: an hour of computing must not end at a wrong path, nor a
/// recording be lost because it was named twice.
///
/// # Errors
/// [`WrongUsage`] if two names mean one file, or one means a folder or a device; else what keeps the file from being
/// written, as far as can be known before.
pub(crate) fn check(inputs: &[&Path], outputs: &[Output<'_>]) -> Result<()> {
    let mut taken: Vec<(String, PathBuf)> = Vec::new();
    for input in inputs {
        taken.push((input.display().to_string(), identity(input)?));
    }
    for output in outputs {
        let path = output.path;
        let name = format!("{} {}", output.option, path.display());
        let refused = |problem: &str| Err(WrongUsage::error(format!("{name}: {problem}")));
        if path.as_os_str() == "-" {
            return refused(
                "nothing is written to the standard output; name a file (`./-`, if that is its name)",
            );
        }
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => return refused("that is a folder; name a file in it"),
            // A rename would put a file in the place of the device, for the whole system if root does it.
            Ok(found) if !found.is_file() => {
                return refused("that is a device or a pipe, which can't be replaced; name a file");
            }
            Ok(found) if found.permissions().readonly() => return refused("the file is write-protected"),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("cannot write {name}")),
        }
        let identity = identity(path)?;
        if let Some((other, _)) = taken.iter().find(|(_, known)| *known == identity) {
            return refused(&format!("the same file as {other}; choose another name"));
        }
        let folder = folder_of(&identity);
        if !folder.is_dir() {
            return refused(&format!("there is no folder {}; make it first", folder.display()));
        }
        // Only a try tells: permissions, a read-only file system, a full disk.
        tempfile::tempfile_in(folder)
            .map_err(|error| Error::from(error.kind()))
            .with_context(|| format!("cannot write {name}"))?;
        taken.push((name, identity));
    }
    Ok(())
}

/// Refuses a name for a WAV file that every program would take for another format.
///
/// # Errors
/// [`WrongUsage`].
pub(crate) fn check_sound(path: &Path) -> Result<()> {
    let end = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    if ["mp3", "ogg", "opus", "flac", "m4a", "aac", "wma", "aiff", "json", "txt"].contains(&end.as_str()) {
        return Err(WrongUsage::error(format!("{}: sound is written as WAV; name it .wav", path.display())));
    }
    Ok(())
}

/// Writes `text` to `path`: under a temporary name in the same folder, then renamed. A link stays; the file that it
/// names is replaced.
///
/// # Errors
/// What the system says, with the path.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let target = identity(path).map_err(Error::other)?;
        let old = std::fs::metadata(&target).ok();
        if old.as_ref().is_some_and(|old| !old.is_file()) {
            return Err(Error::other("a folder or a device stands there"));
        }
        let mut builder = tempfile::Builder::new();
        // Without this, the file would be private to the user even after the rename.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        // The system's words alone: the temporary name says nothing to the user.
        let mut file = builder
            .prefix(".repartee-")
            .tempfile_in(folder_of(&target))
            .map_err(|error| Error::from(error.kind()))?;
        file.as_file_mut().write_all(text.as_bytes())?;
        // Who may read the old file may read the new one, and nobody else.
        if let Some(old) = old {
            file.as_file().set_permissions(old.permissions())?;
        }
        file.as_file().sync_all()?;
        file.persist(&target).map_err(|error| error.error)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// The folder that a path's file stands in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The same for all paths to one file, which need not be there yet.
fn identity(path: &Path) -> Result<PathBuf> {
    if let Ok(found) = std::fs::canonicalize(path) {
        return Ok(found);
    }
    // A link to what is not there yet means that.
    if let Ok(target) = std::fs::read_link(path) {
        return Ok(folder_of(path).join(target));
    }
    let name = path.file_name().ok_or_else(|| WrongUsage::error(format!("{:?} names no file", path)))?;
    let folder = folder_of(path);
    Ok(std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf()).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(inputs: &[&Path], outputs: &[Output<'_>]) -> String {
        let error = check(inputs, outputs).expect_err("this cannot be meant");
        assert!(error.downcast_ref::<WrongUsage>().is_some(), "{error:#}");
        format!("{error:#}")
    }

    #[test]
    fn what_would_lose_data_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("question.wav"), "sound").expect("a recording");
        let output = |path| Output { option: "--output", path };
        let (question, report) = (at("question.wav"), at("report.json"));
        check(&[&question], &[output(&report)]).expect("two files");
        let roundabout = at("../").join(folder.path().file_name().expect("a name")).join("question.wav");
        assert!(problem(&[&question], &[output(&roundabout)]).contains("the same file as"));
        let new = folder.path().join(".").join("report.json");
        let twice = [Output { option: "--report", path: &report }, output(&new)];
        assert!(problem(&[], &twice).contains("the same file as --report"));
        assert!(problem(&[], &[output(folder.path())]).contains("folder"));
        let nowhere = at("none/a.wav");
        assert!(problem(&[], &[output(&nowhere)]).contains("make it first"));
        assert!(problem(&[], &[output(Path::new("/"))]).contains("folder"));
        assert!(problem(&[], &[output(Path::new(""))]).contains("names no file"));
        let mut permissions = std::fs::metadata(&question).expect("a file").permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(&question, permissions).expect("a protected file");
        assert!(problem(&[], &[output(&question)]).contains("write-protected"));
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing is left behind");
    }

    #[cfg(unix)]
    #[test]
    fn pipes_stay_and_links_are_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let pipe =
            std::ffi::CString::new(at("pipe").to_str().expect("a readable path")).expect("no zero byte");
        // SAFETY: the path is a string that ends with zero.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        let path = at("pipe");
        assert!(problem(&[], &[Output { option: "--report", path: &path }]).contains("a device or a pipe"));
        assert!(write(&path, "text").is_err());
        std::os::unix::fs::symlink(at("target"), at("link")).expect("a link");
        std::fs::write(at("target"), "old").expect("a file");
        write(&at("link"), "new").expect("a file");
        assert_eq!(std::fs::read_to_string(at("target")).expect("a file"), "new");
        assert!(at("link").is_symlink());
        std::os::unix::fs::symlink("fresh", at("dangling")).expect("a link");
        write(&at("dangling"), "new").expect("a file");
        assert!(at("dangling").is_symlink() && at("fresh").is_file());
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(at("fresh"), private).expect("a private file");
        write(&at("fresh"), "newer").expect("a file");
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(at("fresh")).expect("a file").permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
        let error = format!("{:#}", write(&at("none/file"), "").expect_err("there is no such folder"));
        assert!(error.contains("none/file") && !error.contains(".repartee-"), "{error}");
    }
}
