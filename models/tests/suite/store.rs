//! What is in the cache: checking, importing, removing.

use std::fs;
use std::path::Path;

use repartee_models::{CancelToken, Catalogue, Error, FileState, Model, ModelFile, ModelState, Trust};

use crate::support::{TestFile, TestStore, bytes, catalogue, model, url_source};

/// An address that nobody asks for.
fn nowhere() -> String {
    url_source("https://models.invalid/f")
}

fn import(test: &TestStore, path: &Path) -> repartee_models::ImportReport {
    test.store.import(path, None, &CancelToken::new()).unwrap()
}

/// Overwrites bytes of a blob as a fault of the disk would: same length.
fn spoil(path: &Path) {
    let path = fs::canonicalize(path).unwrap();
    let mut content = fs::read(&path).unwrap();
    content[0] ^= 1;
    fs::remove_file(&path).unwrap();
    fs::write(&path, content).unwrap();
}

#[test]
fn files_are_recognised_by_their_bytes() {
    let contents = [bytes(1000, 1), bytes(1000, 2)];
    let test = TestStore::new(catalogue(&[
        TestFile { name: "f.bin", bytes: &contents[0], sources: nowhere() },
        TestFile { name: "g.bin", bytes: &contents[1], sources: nowhere() },
    ]));
    let user = test.folder.path().join("user");
    fs::create_dir_all(user.join("deep")).unwrap();
    fs::write(user.join("deep").join("renamed"), &contents[0]).unwrap();
    fs::write(user.join("same-size"), bytes(1000, 3)).unwrap();
    fs::write(user.join("other"), b"other").unwrap();
    assert_eq!(test.store.state(&test.store.catalogue().models()[0]), ModelState::Absent);

    let report = import(&test, &user);
    assert_eq!(report.unknown, 2);
    let found =
        report.imported.iter().map(|found| (found.model.as_str(), found.file.as_str())).collect::<Vec<_>>();
    assert_eq!(found, [("m", "f.bin")]);
    test.assert_holds(&contents[0]);
    assert_eq!(test.store.state(&test.store.catalogue().models()[0]), ModelState::Partial { bytes: 1000 });

    // The user's file may go; the bytes stay.
    fs::remove_dir_all(&user).unwrap();
    test.assert_holds(&contents[0]);

    let single = test.folder.path().join("single");
    fs::write(&single, &contents[1]).unwrap();
    assert_eq!(import(&test, &single).imported.len(), 1);
    assert_eq!(test.store.state(&test.store.catalogue().models()[0]), ModelState::Present);
    assert!(test.store.resolve_folder("m").unwrap().join("g.bin").exists());
}

#[test]
fn a_missing_path_is_named() {
    let test = TestStore::of_one(&bytes(10, 1), nowhere());
    let path = test.folder.path().join("none");
    match test.store.import(&path, None, &CancelToken::new()) {
        Err(Error::Io { path: named, .. }) => assert_eq!(named, path),
        other => panic!("{other:?}"),
    }
}

#[test]
fn hub_files_can_be_imported_by_name_when_their_model_is_named() {
    let text = "schema = 1\n[[model]]\nname = \"m\"\nrole = \"llm\"\nfamily = \"llama\"\nformat = \"gguf\"\nhub = true\nlicence = \"MIT\"\n\
                description = \"d\"\nsources = [{ url = \"https://models.invalid/{file}\" }]\n\
                files = [{ name = \"config.json\" }, { name = \"inner/config.json\" }]\n";
    let test = TestStore::new(Catalogue::parse(text, "test").unwrap());
    let user = test.folder.path().join("user");
    fs::create_dir_all(user.join("inner")).unwrap();
    fs::write(user.join("config.json"), b"outer").unwrap();
    fs::write(user.join("inner/config.json"), b"inn").unwrap();
    assert_eq!(import(&test, &user).imported.len(), 0);
    let fits = |_: &Model, file: &ModelFile, path: &Path| match fs::read(path) {
        Ok(bytes) if bytes.ends_with(b"er") => Ok(()),
        _ => Err(format!("{} is cut off", file.name)),
    };
    let take =
        || test.store.import(&user, Some(Trust { model: "m", fits: &fits }), &CancelToken::new()).unwrap();
    let report = take();
    assert_eq!(report.imported.len(), 1);
    assert!(
        matches!(&report.refused[..], [Error::Unfit { reason, .. }] if reason == "inner/config.json is cut off")
    );
    fs::write(user.join("inner/config.json"), b"inner").unwrap();
    assert_eq!(take().imported.len(), 2);
    // What was taken once is what counts, until it is forgotten.
    fs::write(user.join("config.json"), b"another").unwrap();
    assert!(matches!(&take().refused[..], [Error::WrongHash { .. }]));
    test.store.forget("m").unwrap();
    assert_eq!(take().imported.len(), 2);
    fs::write(user.join("config.json"), b"outer").unwrap();
    test.store.forget("m").unwrap();
    assert_eq!(take().imported.len(), 2);
    let folder = test.store.resolve_folder("m").unwrap();
    assert_eq!(fs::read(folder.join("config.json")).unwrap(), b"outer");
    assert_eq!(fs::read(folder.join("inner/config.json")).unwrap(), b"inner");
}

#[test]
fn a_changed_file_is_not_used_and_verify_says_so() {
    let content = bytes(1000, 1);
    let test = TestStore::of_one(&content, nowhere());
    let user = test.folder.path().join("user");
    fs::write(&user, &content).unwrap();
    import(&test, &user);
    let path = test.store.resolve("m", "f.bin").unwrap();
    let model = &test.store.catalogue().models()[0];
    assert!(test.store.is_trusted(model));
    spoil(&path);
    // Known without reading it, although the size is right.
    assert!(test.store.state(model) == ModelState::Present && !test.store.is_trusted(model));
    match test.store.resolve("m", "f.bin") {
        Err(error @ Error::Damaged { .. }) => assert!(error.to_string().contains("fetch m`"), "{error}"),
        other => panic!("{other:?}"),
    }
    let checks = test.store.verify(&["m"], &CancelToken::new(), &mut |_| ()).unwrap();
    assert!(
        matches!(&checks[..], [check] if matches!(check.state, FileState::Wrong(Error::WrongHash { .. }))),
        "{checks:?}"
    );
    // A right file takes the wrong one's place.
    import(&test, &user);
    test.assert_holds(&content);
    let checks = test.store.verify(&["m"], &CancelToken::new(), &mut |_| ()).unwrap();
    assert!(matches!(checks[0].state, FileState::Right));

    let path = fs::canonicalize(test.store.resolve("m", "f.bin").unwrap()).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, &content[..999]).unwrap();
    assert!(matches!(
        test.store.resolve("m", "f.bin"),
        Err(Error::Damaged { source, .. }) if matches!(*source, Error::WrongSize { found_bytes: 999, .. })
    ));
}

#[test]
fn a_verified_file_is_not_read_again_but_verify_reads_it() {
    let content = bytes(1000, 1);
    let test = TestStore::of_one(&content, nowhere());
    let user = test.folder.path().join("user");
    fs::write(&user, &content).unwrap();
    import(&test, &user);
    // Other bytes under the same size and time: only reading could tell.
    let blob = fs::canonicalize(test.store.resolve("m", "f.bin").unwrap()).unwrap();
    let modified = fs::metadata(&blob).unwrap().modified().unwrap();
    spoil(&blob);
    fs::File::options().write(true).open(&blob).unwrap().set_modified(modified).unwrap();
    assert!(test.store.resolve("m", "f.bin").is_ok(), "size and time are trusted");
    let checks = test.store.verify(&["m"], &CancelToken::new(), &mut |_| ()).unwrap();
    assert!(matches!(checks[0].state, FileState::Wrong(Error::WrongHash { .. })));
    assert!(test.store.resolve("m", "f.bin").is_err(), "and no longer trusted after that");
}

#[test]
fn shared_bytes_stay_until_their_last_model_goes() {
    let (shared, own) = (bytes(1000, 1), bytes(500, 2));
    let file = |name, bytes| TestFile { name, bytes, sources: nowhere() };
    let text =
        model("m", &[file("f.bin", &shared), file("own.bin", &own)]) + &model("n", &[file("g.bin", &shared)]);
    let test = TestStore::new(Catalogue::parse(&format!("schema = 1\n{text}"), "test").unwrap());
    let user = test.folder.path().join("user");
    fs::create_dir(&user).unwrap();
    fs::write(user.join("a"), &shared).unwrap();
    fs::write(user.join("b"), &own).unwrap();
    import(&test, &user);

    assert_eq!(test.store.remove("m").unwrap(), 500);
    assert!(matches!(test.store.resolve("m", "own.bin"), Err(Error::NotInCache { .. })));
    assert_eq!(fs::read(test.store.resolve("n", "g.bin").unwrap()).unwrap(), shared);
    assert_eq!(test.store.remove("n").unwrap(), 1000);
    assert!(matches!(test.store.resolve("n", "g.bin"), Err(Error::NotInCache { .. })));
    assert_eq!(test.store.remove("n").unwrap(), 0, "twice does no harm");
}

#[test]
fn errors_name_the_command_that_helps() {
    let test = TestStore::of_one(&bytes(10, 1), nowhere());
    assert!(test.store.resolve("m", "f.bin").unwrap_err().to_string().contains("`repartee models fetch m`"));
    assert!(matches!(test.store.resolve("x", "f.bin"), Err(Error::UnknownModel { .. })));
    assert!(matches!(test.store.resolve("m", "x"), Err(Error::UnknownFile { .. })));
}

#[test]
fn the_cache_folder_may_be_moved() {
    let content = bytes(1000, 1);
    let test = TestStore::of_one(&content, nowhere());
    let user = test.folder.path().join("user");
    fs::write(&user, &content).unwrap();
    import(&test, &user);
    let moved = test.folder.path().join("moved");
    fs::rename(test.store.cache().root(), &moved).unwrap();
    assert_eq!(fs::read(moved.join("models/m/f.bin")).unwrap(), content);
}
