//! Links in the cache folder that lead to somebody else's files: these stay as they are, whatever is done.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use repartee_models::{CancelToken, Catalogue, Error, FetchOptions, FileState, ModelState, Sha256Digest};

use crate::server::{Server, send};
use crate::support::{TestFile, TestStore, bytes, catalogue, url_source};

/// A store of one model with a file of this name, its bytes in a user's file, and a folder of the user's with files that
/// have the names of the cache's.
fn store(name: &str, url: &str) -> (TestStore, Vec<u8>, PathBuf, PathBuf) {
    let content = bytes(1000, 1);
    let test = TestStore::new(catalogue(&[TestFile { name, bytes: &content, sources: url_source(url) }]));
    let (source, theirs) = (test.folder.path().join("source"), test.folder.path().join("theirs"));
    fs::write(&source, &content).unwrap();
    fs::create_dir_all(theirs.join("m")).unwrap();
    let hash = Sha256Digest::of(&content);
    for file in ["f.bin", "m/f.bin", "note.txt", &hash.to_string(), &format!("{hash}.lock")] {
        fs::write(theirs.join(file), "precious").unwrap();
    }
    fs::create_dir_all(test.store.cache().root()).unwrap();
    (test, content, source, theirs)
}

/// Lays a link into the cache folder.
fn link(test: &TestStore, target: &Path, name: &str) -> PathBuf {
    let path = test.store.cache().root().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(target, &path).unwrap();
    path
}

/// Every file below, with its text; so that nothing new is overlooked either.
fn all_below(folder: &Path) -> Vec<(PathBuf, String, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(all_below(&entry));
        } else {
            let mode = fs::metadata(&entry).unwrap().permissions().mode();
            found.push((entry.clone(), fs::read_to_string(&entry).unwrap(), mode));
        }
    }
    found.sort();
    found
}

fn import(test: &TestStore, source: &Path) {
    let report = test.store.import(source, None, &CancelToken::new()).unwrap();
    assert_eq!(report.imported.len(), 1);
}

#[test]
fn a_linked_folder_of_a_model_is_replaced_and_its_target_is_left_alone() {
    for (file, place) in [("f.bin", "models/m"), ("a/b/f.bin", "models/m/a"), ("a/b/f.bin", "models/m/a/b")] {
        let (test, content, source, theirs) = store(file, "https://models.invalid/f");
        let before = all_below(&theirs);
        let at = link(&test, &theirs, place);
        test.store.remove("m").unwrap();
        assert!(!at.is_symlink(), "{place}: the link itself goes");
        assert_eq!(all_below(&theirs), before, "{place}: remove");

        let at = link(&test, &theirs, place);
        import(&test, &source);
        assert!(at.is_dir() && !at.is_symlink(), "{place}: a folder of the cache");
        let folder = test.store.resolve_folder("m").unwrap();
        assert_eq!(fs::read(folder.join(file)).unwrap(), content);
        let checks = test.store.verify(&["m"], &CancelToken::new(), &mut |_| ()).unwrap();
        assert!(matches!(checks[0].state, FileState::Right));
        assert_eq!(all_below(&theirs), before, "{place}: import");

        // A link that leads to a view which looks right, and is not.
        fs::rename(test.store.cache().model_folder("m"), test.folder.path().join("away")).unwrap();
        let at = link(&test, &test.folder.path().join("away"), "models/m");
        test.store.resolve("m", file).unwrap();
        assert!(!at.is_symlink());
    }
}

#[test]
fn linked_folders_of_the_cache_are_replaced() {
    for place in ["models", "locks", "verified", "pins", "tmp", "blobs/sha256"] {
        let (test, content, source, theirs) = store("f.bin", "https://models.invalid/f");
        let before = all_below(&theirs);
        link(&test, &theirs, place);
        test.store.remove("m").unwrap();
        assert_eq!(all_below(&theirs), before, "{place}: remove");
        import(&test, &source);
        assert_eq!(fs::read(test.store.resolve("m", "f.bin").unwrap()).unwrap(), content);
        test.store.remove("m").unwrap();
        assert_eq!(all_below(&theirs), before, "{place}");
    }
}

#[test]
fn records_of_first_use_are_neither_written_nor_removed_through_a_link() {
    let text = "schema = 1\n[[model]]\nname = \"m\"\nrole = \"llm\"\nfamily = \"llama\"\nformat = \"gguf\"\nhub = true\nlicence = \"MIT\"\n\
                description = \"d\"\nsources = [{ url = \"https://models.invalid/{file}\" }]\nfiles = [{ name = \"f.bin\" }]\n";
    let (mut test, _, _, theirs) = store("f.bin", "https://models.invalid/f");
    test.store =
        repartee_models::Store::new(Catalogue::parse(text, "test").unwrap(), test.store.cache().clone());
    let before = all_below(&theirs);
    link(&test, &theirs, "pins/m");
    test.store.forget("m").unwrap();
    assert_eq!(all_below(&theirs), before);
    link(&test, &theirs, "pins/m");
    let user = test.folder.path().join("user");
    fs::create_dir(&user).unwrap();
    fs::write(user.join("f.bin"), "bytes").unwrap();
    let trust = repartee_models::Trust { model: "m", fits: &|_, _, _| Ok(()) };
    assert_eq!(test.store.import(&user, Some(trust), &CancelToken::new()).unwrap().imported.len(), 1);
    assert_eq!(all_below(&theirs), before);
    assert_eq!(fs::read(test.store.resolve("m", "f.bin").unwrap()).unwrap(), b"bytes");
}

#[test]
fn a_linked_lock_is_not_emptied() {
    let (test, content, source, theirs) = store("f.bin", "https://models.invalid/f");
    let before = all_below(&theirs);
    let name = format!("locks/{}.lock", Sha256Digest::of(&content));
    let at = link(&test, &theirs.join("note.txt"), &name);
    import(&test, &source);
    assert!(at.is_file() && !at.is_symlink());
    assert_eq!(all_below(&theirs), before);
}

#[test]
fn a_linked_partial_file_is_not_written_through() {
    for is_hard in [false, true] {
        let content = bytes(1000, 1);
        let answer = content.clone();
        let server = Server::start(move |_, request, stream| send(stream, request, &answer));
        let (test, _, _, theirs) = store("f.bin", &server.url("f.bin"));
        let before = all_below(&theirs);
        let (note, part) = (theirs.join("note.txt"), test.part(&content));
        fs::create_dir_all(part.parent().unwrap()).unwrap();
        if is_hard { fs::hard_link(note, part) } else { symlink(note, part) }.unwrap();
        test.fetch_with(FetchOptions::default(), &CancelToken::new(), &mut |_| ()).unwrap();
        test.assert_holds(&content);
        let blob = test.store.cache().blob_path(&Sha256Digest::of(&content));
        assert!(!blob.is_symlink(), "a blob is a file");
        assert_eq!(all_below(&theirs), before, "not even its permissions");
    }
}

#[test]
fn a_link_is_no_blob() {
    let (test, content, source, theirs) = store("f.bin", "https://models.invalid/f");
    fs::write(theirs.join("note.txt"), &content[..0]).unwrap();
    let blob = link(&test, &source, &format!("blobs/sha256/{}", Sha256Digest::of(&content)));
    assert_eq!(test.store.state(&test.store.catalogue().models()[0]), ModelState::Absent);
    assert!(matches!(test.store.resolve("m", "f.bin"), Err(Error::NotInCache { .. })));
    import(&test, &source);
    assert!(!blob.is_symlink());
    test.assert_holds(&content);
    assert_eq!(fs::read(&source).unwrap(), content);
}

#[test]
fn the_cache_and_its_large_folders_may_be_on_another_disk() {
    let (test, content, source, _) = store("f.bin", "https://models.invalid/f");
    let (root, disk) = (test.store.cache().root().to_path_buf(), test.folder.path().join("disk"));
    for folder in ["cache", "blobs", "partial"] {
        fs::create_dir_all(disk.join(folder)).unwrap();
    }
    fs::remove_dir(&root).unwrap();
    symlink(disk.join("cache"), &root).unwrap();
    let links = ["blobs", "partial"].map(|name| link(&test, &disk.join(name), name));
    import(&test, &source);
    test.assert_holds(&content);
    assert!(root.is_symlink() && links.iter().all(|link| link.is_symlink()));
    let hash = Sha256Digest::of(&content).to_string();
    assert!(disk.join("blobs/sha256").join(&hash).is_file());
    test.store.remove("m").unwrap();
    assert!(!disk.join("blobs/sha256").join(&hash).exists() && links[0].is_symlink());
}

#[test]
fn an_import_outlasts_removals_beside_it() {
    let (test, content, source, _) = store("f.bin", "https://models.invalid/f");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                test.store.remove("m").unwrap();
            }
        });
        let results: Vec<_> =
            (0..50).map(|_| test.store.import(&source, None, &CancelToken::new())).collect();
        is_over.store(true, Ordering::Release);
        for result in results {
            assert_eq!(result.unwrap().imported.len(), 1);
        }
    });
    import(&test, &source);
    test.assert_holds(&content);
}
