//! Disks that are full, that fill up, or that can't be written. Needs the right to mount; without it the
//! tests say so and pass.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use repartee_models::{Cache, CancelToken, Error, FetchOptions, Fetcher, Store};

use crate::server::{Server, head, send};
use crate::support::{TestFile, bytes, catalogue, url_source};

/// A file system in memory, of one MiB.
struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = tempfile::TempDir::new().unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(folder.path()).output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self { folder }),
            Ok(output) => skip(String::from_utf8_lossy(&output.stderr).trim()),
            Err(error) => skip(&error.to_string()),
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn make_read_only(&self) {
        assert!(
            Command::new("mount").args(["-o", "remount,ro"]).arg(self.path()).status().unwrap().success()
        );
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}

#[expect(clippy::print_stderr, reason = "a test that is skipped says why")]
fn skip<T>(reason: &str) -> Option<T> {
    eprintln!("skipped: no small file system can be mounted here: {reason}");
    None
}

/// A store on the disk with one file that comes from `server`.
fn store(disk: &SmallDisk, server: &Server, content: &[u8]) -> Store {
    let catalogue =
        catalogue(&[TestFile { name: "f.bin", bytes: content, sources: url_source(&server.url("f")) }]);
    Store::new(catalogue, Cache::at(disk.path().join("cache")))
}

fn fetch(store: &Store) -> repartee_models::Result<PathBuf> {
    Fetcher::new(store, FetchOptions::default()).fetch("m", &CancelToken::new(), &mut |_| ())
}

#[test]
fn a_file_that_does_not_fit_is_refused_before_it_is_written() {
    let Some(disk) = SmallDisk::mount() else { return };
    let content = bytes(2 << 20, 1);
    let server = Server::start({
        let content = content.clone();
        move |_, request, stream| send(stream, request, &content)
    });
    let store = store(&disk, &server, &content);
    match fetch(&store) {
        Err(error @ Error::DiskFull { needed_bytes: Some(2_097_152), free_bytes: Some(free), .. }) => {
            assert!(free <= 1 << 20);
            assert!(error.to_string().contains("REPARTEE_CACHE"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(store.resolve("m", "f.bin"), Err(Error::NotInCache { .. })));
}

#[test]
fn a_disk_that_fills_up_midway_keeps_what_arrived() {
    let Some(disk) = SmallDisk::mount() else { return };
    let content = bytes(600_000, 2);
    let filler = disk.path().join("filler");
    let (server, fill) = {
        let (content, filler) = (content.clone(), filler.clone());
        let (first, then) = std::sync::mpsc::channel::<()>();
        let then = Mutex::new(then);
        let server = Server::start(move |number, request, stream| {
            if number > 0 {
                return send(stream, request, &content);
            }
            head(stream, "200 OK", &[format!("Content-Length: {}", content.len())])?;
            std::io::Write::write_all(stream, &content[..200_000])?;
            // Once some bytes are taken in, another program fills the disk.
            let _ = then.lock().unwrap().recv();
            let _ = std::fs::write(&filler, vec![0; 2 << 20]);
            std::io::Write::write_all(stream, &content[200_000..])
        });
        (server, first)
    };
    let store = store(&disk, &server, &content);
    let result =
        Fetcher::new(&store, FetchOptions::default()).fetch("m", &CancelToken::new(), &mut |event| {
            if matches!(event, repartee_models::Event::Progress { done_bytes: 0, .. }) {
                fill.send(()).unwrap();
            }
        });
    assert!(matches!(result, Err(Error::DiskFull { .. })), "{result:?}");
    assert!(matches!(store.resolve("m", "f.bin"), Err(Error::NotInCache { .. })));

    std::fs::remove_file(filler).unwrap();
    fetch(&store).unwrap();
    assert_eq!(std::fs::read(store.resolve("m", "f.bin").unwrap()).unwrap(), content);
}

#[test]
fn a_read_only_cache_can_be_used_but_not_filled() {
    let Some(disk) = SmallDisk::mount() else { return };
    let contents = [bytes(100_000, 3), bytes(100_000, 4)];
    let server = Server::start({
        let contents = contents.clone();
        move |_, request, stream| send(stream, request, &contents[usize::from(request.path == "g")])
    });
    let filled = store(&disk, &server, &contents[0]);
    fetch(&filled).unwrap();
    let other = Store::new(
        catalogue(&[TestFile { name: "f.bin", bytes: &contents[1], sources: url_source(&server.url("g")) }]),
        filled.cache().clone(),
    );
    disk.make_read_only();
    assert_eq!(std::fs::read(filled.resolve("m", "f.bin").unwrap()).unwrap(), contents[0]);
    for error in [fetch(&other).unwrap_err(), filled.remove("m").unwrap_err()] {
        assert!(matches!(error, Error::ReadOnly { .. }), "{error}");
        assert!(error.to_string().contains("REPARTEE_CACHE"), "{error}");
    }
    // Nor does a wrong trust arise: what can't be recorded is hashed each time.
    assert!(filled.verify(&["m"], &CancelToken::new(), &mut |_| ()).is_ok());
}
