//! Downloads from good and bad servers.

use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use repartee_models::{
    Cache, CancelToken, Catalogue, Error, Event, FetchOptions, Fetcher, HubPolicy, Sha256Digest, Store,
};

use crate::server::{Server, head, send, send_upto, stall, status};
use crate::support::{TestFile, TestStore, bytes, catalogue, last_attempt, url_source};

const LEN: usize = 1_000_000;

/// A store of one file that comes from `server` at `/f`.
fn store_from(server: &Server, content: &[u8]) -> TestStore {
    TestStore::of_one(content, url_source(&server.url("f")))
}

#[test]
fn a_whole_file_arrives_with_progress_and_is_not_asked_for_again() {
    let content = bytes(LEN, 1);
    let server = Server::start({
        let content = content.clone();
        move |_, request, stream| send(stream, request, &content)
    });
    let test = store_from(&server, &content);
    let (mut seen, mut fetched) = (Vec::new(), 0);
    test.fetch_with(FetchOptions::default(), &CancelToken::new(), &mut |event| match event {
        Event::Progress { done_bytes, total_bytes, .. } => {
            assert_eq!(total_bytes, Some(LEN as u64));
            seen.push(done_bytes);
        }
        Event::Fetched { model, file, size_bytes } => {
            assert_eq!((model, file, size_bytes), ("m", "f.bin", LEN as u64));
            fetched += 1;
        }
        _ => {}
    })
    .unwrap();
    assert!(seen.is_sorted() && seen.first() == Some(&0) && seen.last() == Some(&(LEN as u64)), "{seen:?}");
    assert_eq!(fetched, 1);
    test.assert_holds(&content);
    assert!(!test.part(&content).exists());

    let mut events = Vec::new();
    test.fetch_with(FetchOptions::default(), &CancelToken::new(), &mut |event| {
        events.push(format!("{event:?}"))
    })
    .unwrap();
    assert!(matches!(&events[..], [event] if event.starts_with("Present")), "{events:?}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn what_an_earlier_fetch_left_is_gone_on_from() {
    let content = bytes(LEN, 2);
    let server = Server::start({
        let content = content.clone();
        move |_, request, stream| send(stream, request, &content)
    });
    let test = store_from(&server, &content);
    test.leave_part(&content, &content[..400_000]);
    test.fetch().unwrap();
    assert_eq!(server.offsets(), [Some(400_000)]);
    test.assert_holds(&content);
}

#[test]
fn a_part_that_is_whole_needs_no_request() {
    let content = bytes(LEN, 3);
    let server = Server::start(|_, _, stream| status(stream, "500 Internal Server Error"));
    let test = store_from(&server, &content);
    test.leave_part(&content, &content);
    test.fetch().unwrap();
    assert!(server.requests().is_empty());
    test.assert_holds(&content);
}

#[test]
fn a_server_without_ranges_sends_the_file_anew() {
    let content = bytes(LEN, 4);
    let server = Server::start({
        let content = content.clone();
        move |_, request, stream| {
            send(stream, &crate::server::Request { offset: None, ..request.clone() }, &content)
        }
    });
    let test = store_from(&server, &content);
    test.leave_part(&content, &content[..400_000]);
    test.fetch().unwrap();
    assert_eq!(server.offsets(), [Some(400_000)]);
    test.assert_holds(&content);
}

#[test]
fn a_part_of_another_file_is_thrown_away_once_the_hash_is_wrong() {
    let content = bytes(LEN, 5);
    let server = Server::start({
        let content = content.clone();
        move |_, request, stream| send(stream, request, &content)
    });
    let test = store_from(&server, &content);
    test.leave_part(&content, &bytes(400_000, 6));
    test.fetch().unwrap();
    assert_eq!(server.offsets(), [Some(400_000), None]);
    test.assert_holds(&content);

    // Longer than the file: not even asked to go on.
    let test = store_from(&server, &content);
    test.leave_part(&content, &bytes(LEN + 1, 6));
    test.fetch().unwrap();
    assert_eq!(server.offsets()[2..], [None]);
    test.assert_holds(&content);
}

#[test]
fn a_refused_or_misunderstood_range_starts_anew() {
    for bad in ["416 Range Not Satisfiable", "206 Partial Content"] {
        let content = bytes(LEN, 7);
        let server = Server::start({
            let content = content.clone();
            move |_, request, stream| match request.offset {
                Some(_) => head(
                    stream,
                    bad,
                    &[format!("Content-Range: bytes 0-{}/{LEN}", LEN - 1), "Content-Length: 0".into()],
                ),
                None => send(stream, request, &content),
            }
        });
        let test = store_from(&server, &content);
        test.leave_part(&content, &content[..1000]);
        test.fetch().unwrap();
        assert_eq!(server.offsets(), [Some(1000), None], "{bad}");
        test.assert_holds(&content);
    }
}

#[test]
fn a_broken_transfer_goes_on_by_itself() {
    let content = bytes(LEN, 8);
    let server = Server::start({
        let content = content.clone();
        move |number, request, stream| send_upto(stream, request, &content, [300_000, 700_000, LEN][number])
    });
    let test = store_from(&server, &content);
    test.fetch().unwrap();
    assert_eq!(server.offsets(), [None, Some(300_000), Some(700_000)]);
    test.assert_holds(&content);
}

#[test]
fn a_cut_file_is_never_used_and_is_gone_on_from_later() {
    let content = bytes(LEN, 9);
    let server = Server::start({
        let content = content.clone();
        // Only the third request gets past the middle.
        move |number, request, stream| {
            send_upto(stream, request, &content, if number < 2 { 500_000 } else { LEN })
        }
    });
    let test = store_from(&server, &content);
    let error = last_attempt(test.fetch());
    assert!(matches!(error, Error::Http { .. } | Error::WrongSize { .. }), "{error}");
    test.assert_empty();
    assert_eq!(std::fs::metadata(test.part(&content)).unwrap().len(), 500_000);
    assert!(matches!(
        test.store.state(&test.store.catalogue().models()[0]),
        repartee_models::ModelState::Partial { bytes: 500_000 }
    ));

    test.fetch().unwrap();
    assert_eq!(server.offsets(), [None, Some(500_000), Some(500_000)]);
    test.assert_holds(&content);
}

#[test]
fn wrong_bytes_are_refused_and_the_next_source_is_tried() {
    let content = bytes(LEN, 10);
    let server = Server::start({
        let content = content.clone();
        move |_, request, stream| {
            let mut sent = content.clone();
            if request.path == "wrong" {
                sent[LEN / 2] ^= 1;
            }
            send(stream, request, &sent)
        }
    });
    let test = TestStore::of_one(&content, url_source(&server.url("wrong")));
    match last_attempt(test.fetch()) {
        Error::WrongHash { expected, found, .. } => {
            assert!(expected == Sha256Digest::of(&content) && found != expected)
        }
        other => panic!("{other}"),
    }
    test.assert_empty();
    assert_eq!(std::fs::metadata(test.part(&content)).unwrap().len(), 0, "wrong bytes are not gone on from");

    let test = TestStore::of_one(
        &content,
        [url_source(&server.url("wrong")), url_source(&server.url("right"))].join(","),
    );
    let mut failed = Vec::new();
    test.fetch_with(FetchOptions::default(), &CancelToken::new(), &mut |event| {
        if let Event::SourceFailed { source, error, .. } = event {
            failed.push((source.to_owned(), error.to_string()));
        }
    })
    .unwrap();
    assert!(
        matches!(&failed[..], [(source, error)] if source.ends_with("/wrong") && error.contains("another hash")),
        "{failed:?}"
    );
    test.assert_holds(&content);
}

#[test]
fn wrong_lengths_are_refused() {
    let content = bytes(LEN, 11);
    // Announced: not one byte is taken.
    let server = Server::start({
        let content = content.clone();
        move |_, request, stream| send(stream, request, &content[..LEN - 1])
    });
    let test = store_from(&server, &content);
    let error = last_attempt(test.fetch());
    assert!(
        matches!(error, Error::WrongSize { expected_bytes: 1_000_000, found_bytes: 999_999, .. }),
        "{error}"
    );
    test.assert_empty();
    assert_eq!(std::fs::metadata(test.part(&content)).unwrap().len(), 0);

    // Not announced, far too long: it stops at the size that is listed.
    let server = Server::start(|_, _, stream| {
        head(stream, "200 OK", &["Transfer-Encoding: chunked".into()])?;
        // Long enough to show whether anyone stops, short enough not to fill a disk if nobody does.
        for _ in 0..64 {
            std::io::Write::write_all(stream, b"10000\r\n")?;
            std::io::Write::write_all(stream, &[0; 0x10000])?;
            std::io::Write::write_all(stream, b"\r\n")?;
        }
        std::io::Write::write_all(stream, b"0\r\n\r\n")
    });
    let test = store_from(&server, &content);
    let error = last_attempt(test.fetch());
    assert!(matches!(error, Error::WrongSize { expected_bytes: 1_000_000, .. }), "{error}");
    test.assert_empty();
    assert!(std::fs::metadata(test.part(&content)).unwrap().len() <= LEN as u64);
}

#[test]
fn a_missing_file_leads_to_the_next_source() {
    let content = bytes(LEN, 12);
    let server = Server::start({
        let content = content.clone();
        move |_, request, stream| {
            if request.path == "gone" {
                status(stream, "404 Not Found")
            } else {
                send(stream, request, &content)
            }
        }
    });
    let test = TestStore::of_one(&content, url_source(&server.url("gone")));
    let error = test.fetch().unwrap_err();
    assert!(
        error.to_string().contains("answered 404") && error.to_string().contains("models import"),
        "{error}"
    );
    assert!(matches!(last_attempt(Err(error)), Error::HttpStatus { status: 404, .. }));

    let test = TestStore::of_one(
        &content,
        [url_source(&server.url("gone")), url_source(&server.url("here"))].join(","),
    );
    test.fetch().unwrap();
    test.assert_holds(&content);
}

#[test]
fn redirects_are_followed_and_keep_the_range() {
    let content = bytes(LEN, 13);
    let server = Server::start({
        let content = content.clone();
        move |_, request, stream| match request.path.as_str() {
            "f" => head(stream, "302 Found", &["Location: /moved".into(), "Content-Length: 0".into()]),
            _ => send(stream, request, &content),
        }
    });
    let test = store_from(&server, &content);
    test.leave_part(&content, &content[..1000]);
    test.fetch().unwrap();
    assert_eq!(server.offsets(), [Some(1000), Some(1000)]);
    test.assert_holds(&content);
}

#[test]
fn a_host_that_refuses_is_asked_once_and_says_no_network() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let contents = [bytes(10, 14), bytes(10, 15)];
    let files = contents.each_ref().map(|bytes| TestFile {
        name: "f.bin",
        bytes,
        sources: url_source(&format!("http://{closed}/f")),
    });
    let text = files
        .iter()
        .enumerate()
        .map(|(i, file)| crate::support::model(&format!("m{i}"), std::slice::from_ref(file)))
        .collect::<String>();
    let folder = tempfile::TempDir::new().unwrap();
    let store = Store::new(
        Catalogue::parse(&format!("schema = 1\n{text}"), "test").unwrap(),
        Cache::at(folder.path()),
    );
    let fetcher = Fetcher::new(&store, FetchOptions::default());
    let start = Instant::now();
    let mut errors =
        ["m0", "m1"].map(|name| fetcher.fetch(name, &CancelToken::new(), &mut |_| ()).unwrap_err());
    assert!(start.elapsed() < Duration::from_secs(3), "a refused connection is no reason to wait");
    assert!(errors.iter().all(Error::is_offline));
    assert!(errors[0].to_string().contains("no network"), "{}", errors[0]);
    assert!(!errors[0].to_string().contains("not tried again"));
    errors.reverse();
    let [second, _] = errors;
    assert!(
        matches!(last_attempt(Err(second)), Error::Unreachable { reason, .. } if reason.contains("not tried again"))
    );
}

#[test]
fn a_name_that_does_not_resolve_fails_at_once() {
    // RFC 6761 reserves `invalid`: no resolver knows it.
    let test = TestStore::of_one(&bytes(10, 16), url_source("https://models.invalid/f"));
    let start = Instant::now();
    let error = last_attempt(test.fetch());
    assert!(matches!(&error, Error::Unreachable { host, .. } if host == "models.invalid"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_server_that_falls_silent_is_given_up() {
    let options = FetchOptions { stall_timeout: Duration::from_millis(200), ..FetchOptions::default() };
    let content = bytes(LEN, 17);
    let server = Server::start({
        let content = content.clone();
        move |_, request, stream| {
            send_upto(stream, request, &content, 500_000)?;
            stall(stream)
        }
    });
    let test = store_from(&server, &content);
    let error = last_attempt(test.fetch_with(options.clone(), &CancelToken::new(), &mut |_| ()));
    assert!(matches!(error, Error::Stalled { .. }), "{error}");
    // The second request brought nothing more: no third.
    assert_eq!(server.offsets(), [None, Some(500_000)]);
    test.assert_empty();

    let server = Server::start(|_, _, stream| stall(stream));
    let test = store_from(&server, &content);
    let error = last_attempt(test.fetch_with(options, &CancelToken::new(), &mut |_| ()));
    assert!(matches!(&error, Error::Unreachable { reason, .. } if reason.contains("no answer")), "{error}");
}

#[test]
fn an_interrupted_fetch_goes_on_later() {
    let content = bytes(4 * LEN, 18);
    let server = Server::start({
        let content = content.clone();
        move |number, request, stream| {
            send_upto(stream, request, &content, if number == 0 { LEN } else { content.len() })?;
            if number == 0 { stall(stream) } else { Ok(()) }
        }
    });
    let test = store_from(&server, &content);
    let cancel = CancelToken::new();
    // The wait for more bytes ends soon after the cancel, by the short limit on silence.
    let options = FetchOptions { stall_timeout: Duration::from_millis(300), ..FetchOptions::default() };
    let error = test.fetch_with(options, &cancel, &mut |event| {
        if matches!(event, Event::Progress { .. }) {
            cancel.cancel();
        }
    });
    assert!(matches!(error, Err(Error::Interrupted { .. })), "{error:?}");
    test.assert_empty();
    let kept = std::fs::metadata(test.part(&content)).unwrap().len() as usize;

    test.fetch().unwrap();
    assert_eq!(server.offsets(), [None, (kept > 0).then_some(kept)]);
    test.assert_holds(&content);
}

#[test]
fn two_fetches_of_one_file_ask_once() {
    let content = bytes(LEN, 19);
    let (waiting, is_waiting) = mpsc::channel::<()>();
    let is_waiting = Mutex::new(is_waiting);
    let server = Server::start({
        let content = content.clone();
        move |_, request, stream| {
            // The answer comes once the other fetch has found the lock taken.
            let _ = is_waiting.lock().unwrap().recv_timeout(Duration::from_secs(20));
            send(stream, request, &content)
        }
    });
    let test = store_from(&server, &content);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (waiting, test) = (waiting.clone(), &test);
            scope.spawn(move || {
                test.fetch_with(FetchOptions::default(), &CancelToken::new(), &mut |event| {
                    if matches!(event, Event::Waiting { .. }) {
                        waiting.send(()).unwrap();
                    }
                })
                .unwrap();
            });
        }
    });
    assert_eq!(server.requests().len(), 1);
    test.assert_holds(&content);
}

/// A hub model whose file has neither size nor hash.
fn hub_catalogue(url: &str) -> Catalogue {
    let text = format!(
        "schema = 1\n[[model]]\nname = \"m\"\nrole = \"llm\"\nfamily = \"llama\"\nformat = \"gguf\"\nhub = true\nlicence = \"MIT\"\n\
         description = \"d\"\nfiles = [{{ name = \"f.bin\", sources = [{{ url = \"{url}\" }}] }}]\n"
    );
    Catalogue::parse(&text, "test").unwrap()
}

#[test]
fn hub_files_are_trusted_on_first_use_and_only_then() {
    let contents = [bytes(LEN, 20), bytes(LEN, 21)];
    let server = Server::start({
        let contents = contents.clone();
        // From the second request on the hub has another file under the same address.
        move |number, request, stream| send(stream, request, &contents[number.min(1)])
    });
    let test = TestStore::new(hub_catalogue(&server.url("f")));
    let trusting = || FetchOptions { hub: HubPolicy::TrustOnFirstUse, ..FetchOptions::default() };
    let fetch = || test.fetch_with(trusting(), &CancelToken::new(), &mut |_| ());

    assert!(matches!(test.fetch(), Err(Error::HubNotAllowed { .. })));
    assert!(test.store.resolve("m", "f.bin").unwrap_err().to_string().contains("models fetch m --hub"));
    assert!(server.requests().is_empty());
    fetch().unwrap();
    test.assert_holds(&contents[0]);
    fetch().unwrap();
    assert_eq!(server.requests().len(), 1);

    test.store.remove("m").unwrap();
    let error = last_attempt(fetch());
    assert!(
        matches!(error, Error::WrongHash { expected, .. } if expected == Sha256Digest::of(&contents[0])),
        "{error}"
    );
    assert!(error.to_string().contains("pins"), "it says where the first use is recorded: {error}");
    test.assert_empty();
}

#[test]
fn a_hub_file_of_unknown_length_is_not_taken() {
    let server = Server::start(|_, _, stream| {
        head(stream, "200 OK", &[])?;
        std::io::Write::write_all(stream, b"who knows whether this is all")
    });
    let test = TestStore::new(hub_catalogue(&server.url("f")));
    let options = FetchOptions { hub: HubPolicy::TrustOnFirstUse, ..FetchOptions::default() };
    let error = last_attempt(test.fetch_with(options, &CancelToken::new(), &mut |_| ()));
    assert!(error.to_string().contains("how long"), "{error}");
    test.assert_empty();
}

#[test]
fn files_in_folders_of_a_model_get_their_folders() {
    let content = bytes(1000, 22);
    let server = Server::start({
        let content = content.clone();
        move |_, request, stream| send(stream, request, &content)
    });
    let sources = url_source(&server.url("f"));
    let test = TestStore::new(catalogue(&[TestFile { name: "onnx/model.onnx", bytes: &content, sources }]));
    let folder = test.fetch().unwrap();
    assert_eq!(std::fs::read(folder.join("onnx").join("model.onnx")).unwrap(), content);
    assert_eq!(test.store.resolve_folder("m").unwrap(), folder);
    test.store.remove("m").unwrap();
    assert!(!folder.exists());
}
