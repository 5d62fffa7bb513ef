//! Members of wheels (zip) and npm packages (tar, gzip), read as hostile input.
//!
//! Nothing is ever written under a name from an archive: the one wanted member is streamed into the partial
//! file, which refuses more bytes than the catalogue lists. An archive with a name that would leave its
//! folder is refused whole all the same: it is not what it claims to be.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

use crate::{CancelToken, Error, Registry, Result};

/// More entries than any package of models has.
const MAX_ENTRIES: usize = 100_000;
/// An unpacked npm package is not larger; a small one that unpacks to more is made to do harm.
pub(super) const MAX_TAR_BYTES: u64 = 1 << 30;
/// Long names and attributes of a tar entry stand in memory.
const MAX_TAR_EXTENSION_BYTES: u64 = 64 * 1024;

/// Why an archive can't be used.
#[derive(Debug)]
pub(super) enum PrepareError {
    /// The package is damaged or hostile.
    Package(String),
    /// This machine's fault.
    Local(Error),
}

/// Makes an archive ready for many members: a `.tgz` is inflated once (to `limit_bytes` at most), since each
/// member would be reached only through all before it.
pub(super) fn prepare(
    archive: &Path,
    registry: Registry,
    limit_bytes: u64,
    cancel: &CancelToken,
) -> Result<PathBuf, PrepareError> {
    if registry == Registry::Pypi {
        return Ok(archive.into());
    }
    let tar = archive.with_extension("tar");
    let input = File::open(archive).map_err(|e| PrepareError::Local(Error::reading("open", archive, e)))?;
    let mut output =
        File::create(&tar).map_err(|e| PrepareError::Local(Error::writing("create", &tar, e)))?;
    let mut input = GzDecoder::new(input);
    let mut chunk = vec![0; crate::digest::CHUNK_BYTES];
    let mut total = 0;
    loop {
        if cancel.is_cancelled() {
            return Err(PrepareError::Local(Error::Interrupted { what: archive.display().to_string() }));
        }
        let count = match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(PrepareError::Package(format!("it cannot be unpacked: {error}"))),
        };
        total += count as u64;
        if total > limit_bytes {
            return Err(PrepareError::Package(format!("it unpacks to more than {limit_bytes} bytes")));
        }
        io::Write::write_all(&mut output, &chunk[..count])
            .map_err(|e| PrepareError::Local(Error::writing("write", &tar, e)))?;
    }
    Ok(tar)
}

/// Calls `read` with the one member of the prepared archive whose path matches `pattern`.
///
/// The outer error is about the archive: damaged, hostile, or without exactly one such member.
pub(super) fn with_member<T>(
    archive: &Path,
    registry: Registry,
    pattern: &str,
    read: impl FnOnce(&mut dyn Read) -> T,
) -> Result<T, String> {
    let file = File::open(archive).map_err(|error| error.to_string())?;
    match registry {
        Registry::Pypi => with_zip_member(file, pattern, read),
        Registry::Npm => with_tar_member(file, pattern, read),
    }
}

fn with_zip_member<T>(file: File, pattern: &str, read: impl FnOnce(&mut dyn Read) -> T) -> Result<T, String> {
    let damaged = |error: zip::result::ZipError| format!("it is not a whole zip archive: {error}");
    let mut archive = zip::ZipArchive::new(io::BufReader::new(file)).map_err(damaged)?;
    let mut choice = Choice::new(pattern, archive.len())?;
    for index in 0..archive.len() {
        let name = archive.name_for_index(index).ok_or("it lost an entry")?.map_err(damaged)?.into_owned();
        choice.offer(&name, index)?;
    }
    let mut member = archive.by_index(choice.chosen()?).map_err(damaged)?;
    if !member.is_file() || member.encrypted() {
        return Err(format!("`{pattern}` is not a plain file in it"));
    }
    Ok(read(&mut member))
}

fn with_tar_member<T>(
    mut file: File,
    pattern: &str,
    read: impl FnOnce(&mut dyn Read) -> T,
) -> Result<T, String> {
    let damaged = |error: io::Error| format!("it is not a whole tar archive: {error}");
    // First without reading names or attributes into memory: only their sizes.
    let mut count = 0;
    for entry in tar::Archive::new(&file).entries_with_seek().map_err(damaged)?.raw(true) {
        let mut entry = entry.map_err(damaged)?;
        let kind = entry.header().entry_type();
        let is_pax = kind.is_pax_local_extensions() || kind.is_pax_global_extensions();
        if is_pax || kind.is_gnu_longname() || kind.is_gnu_longlink() {
            if entry.size() > MAX_TAR_EXTENSION_BYTES {
                return Err(format!("an entry has {} bytes of name and attributes", entry.size()));
            }
            let mut attributes = Vec::new();
            entry.read_to_end(&mut attributes).map_err(damaged)?;
            // Such a size moves all that follows, so that this pass and the next would not see the same
            // entries.
            if is_pax && attributes.windows(6).any(|bytes| bytes == b" size=") {
                return Err("it gives sizes as attributes".into());
            }
        }
        count += 1;
    }
    let mut choice = Choice::new(pattern, count)?;
    file.rewind().map_err(damaged)?;
    for (index, entry) in tar::Archive::new(&file).entries_with_seek().map_err(damaged)?.enumerate() {
        let entry = entry.map_err(damaged)?;
        let name =
            String::from_utf8(entry.path_bytes().into_owned()).map_err(|_| "a name in it is not UTF-8")?;
        choice.offer(&name, index)?;
    }
    let chosen = choice.chosen()?;
    file.rewind().map_err(damaged)?;
    let mut archive = tar::Archive::new(&file);
    let mut member = archive
        .entries_with_seek()
        .map_err(damaged)?
        .nth(chosen)
        .ok_or("it lost an entry")?
        .map_err(damaged)?;
    if !member.header().entry_type().is_file() {
        return Err(format!("`{pattern}` is not a plain file in it"));
    }
    Ok(read(&mut member))
}

/// The one entry that matches a pattern, chosen while all names are judged.
struct Choice<'a> {
    pattern: &'a str,
    chosen: Option<usize>,
}

impl<'a> Choice<'a> {
    fn new(pattern: &'a str, entries: usize) -> Result<Self, String> {
        if entries > MAX_ENTRIES {
            return Err(format!("it has more than {MAX_ENTRIES} entries"));
        }
        Ok(Self { pattern, chosen: None })
    }

    fn offer(&mut self, name: &str, index: usize) -> Result<(), String> {
        if !is_inside(name) {
            return Err(format!("it is hostile: the entry {name:?} would leave its folder"));
        }
        if matches(self.pattern, name) && self.chosen.replace(index).is_some() {
            return Err(format!("more than one entry matches `{}`", self.pattern));
        }
        Ok(())
    }

    fn chosen(self) -> Result<usize, String> {
        self.chosen.ok_or_else(|| format!("it has no entry `{}`", self.pattern))
    }
}

/// Whether a name stays inside the folder it is unpacked in, on every system.
fn is_inside(name: &str) -> bool {
    let name = name.strip_suffix('/').unwrap_or(name);
    !name.contains(['\\', '\0', ':']) && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Whether `name` has the form of `pattern`, where `*` stands for any characters within one part of the path.
fn matches(pattern: &str, name: &str) -> bool {
    let (mut patterns, mut names) = (pattern.split('/'), name.split('/'));
    loop {
        match (patterns.next(), names.next()) {
            (None, None) => return true,
            (Some(pattern), Some(name)) if matches_part(pattern, name) => {}
            _ => return false,
        }
    }
}

fn matches_part(pattern: &str, name: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut rest) = name.strip_prefix(head) else { return false };
    let mut pieces = tail.split('*').collect::<Vec<_>>();
    let last = pieces.pop().unwrap_or_default();
    // The shortest match of each piece leaves the most for the next.
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stay_within_one_part_of_the_path() {
        for (pattern, name, fits) in [
            ("a/b", "a/b", true),
            ("*/data/part01.bin", "pkg/data/part01.bin", true),
            ("*/data/part01.bin", "x/pkg/data/part01.bin", false),
            ("*/data/part01.bin", "pkg/data/part02.bin", false),
            ("*/*.gguf", "pkg/model.gguf", true),
            ("*/*.gguf", "pkg/model.gguf.part", false),
            ("a*b*c", "abbc", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("*", "a/b", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn names_that_leave_the_folder_are_found() {
        for name in
            ["../a", "a/../../b", "/etc/passwd", "a//b", "./a", "C:/a", "a\\..\\b", "", "a/..", "nul\0"]
        {
            assert!(!is_inside(name), "{name:?}");
        }
        for name in ["a", "a/b.txt", "a/b/", "a..b/c"] {
            assert!(is_inside(name), "{name:?}");
        }
    }

    #[test]
    fn unpacking_stops_at_the_limit() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("x.tgz");
        let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        io::Write::write_all(&mut bomb, &vec![0; 10 << 20]).unwrap();
        std::fs::write(&path, bomb.finish().unwrap()).unwrap();
        let cancel = CancelToken::new();
        assert!(prepare(&path, Registry::Npm, 10 << 20, &cancel).is_ok());
        match prepare(&path, Registry::Npm, 1 << 20, &cancel) {
            Err(PrepareError::Package(reason)) => {
                assert!(reason.contains("more than 1048576 bytes"), "{reason}")
            }
            other => panic!("{other:?}"),
        }
        assert!(std::fs::metadata(path.with_extension("tar")).unwrap().len() <= 1 << 20);
    }
}
