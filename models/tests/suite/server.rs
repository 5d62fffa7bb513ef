//! A web server on this machine, as faulty as a test wants it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// What a client asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// First byte wanted, if the client asked for a range.
    pub(crate) offset: Option<usize>,
}

/// Serves until dropped; each connection is one request.
pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    stop: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// `answer` gets the number of the request, counted from 0.
    pub(crate) fn start(
        answer: impl Fn(usize, &Request, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on this machine");
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let accepting = std::thread::spawn({
            let (requests, stop, answer) = (requests.clone(), stop.clone(), Arc::new(answer));
            move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    let (requests, answer) = (requests.clone(), answer.clone());
                    std::thread::spawn(move || serve(stream, &requests, &*answer));
                }
            }
        });
        Self { address, requests, stop, accepting: Some(accepting) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// The offsets asked for, in order.
    pub(crate) fn offsets(&self) -> Vec<Option<usize>> {
        self.requests().into_iter().map(|request| request.offset).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for a connection.
        let _ = TcpStream::connect(self.address);
        let _ = self.accepting.take().map(JoinHandle::join);
    }
}

type Answer = dyn Fn(usize, &Request, &mut TcpStream) -> std::io::Result<()> + Send + Sync;

fn serve(mut stream: TcpStream, requests: &Mutex<Vec<Request>>, answer: &Answer) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let Some(Ok(first)) = lines.next() else { return };
    let mut offset = None;
    for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
        let line = line.to_ascii_lowercase();
        if let Some(range) = line.strip_prefix("range: bytes=") {
            offset = Some(range.trim_end_matches('-').parse().expect("an open range"));
        }
    }
    let path = first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
    let request = Request { path, offset };
    let number = {
        let mut requests = requests.lock().unwrap();
        requests.push(request.clone());
        requests.len() - 1
    };
    // A client that went away is what many tests are about.
    let _ = answer(number, &request, &mut stream);
}

/// Sends the head of an answer; `headers` are lines without their ends.
pub(crate) fn head(stream: &mut TcpStream, status: &str, headers: &[String]) -> std::io::Result<()> {
    let headers = headers.iter().map(|line| format!("{line}\r\n")).collect::<String>();
    stream.write_all(format!("HTTP/1.1 {status}\r\nConnection: close\r\n{headers}\r\n").as_bytes())
}

/// Answers as a good server does: all of `bytes`, or what is asked for.
pub(crate) fn send(stream: &mut TcpStream, request: &Request, bytes: &[u8]) -> std::io::Result<()> {
    send_upto(stream, request, bytes, bytes.len())
}

/// As [`send`], but breaks off after the byte `end` of the file.
pub(crate) fn send_upto(
    stream: &mut TcpStream,
    request: &Request,
    bytes: &[u8],
    end: usize,
) -> std::io::Result<()> {
    let total = bytes.len();
    match request.offset {
        Some(offset) => {
            let headers = [
                format!("Content-Range: bytes {offset}-{}/{total}", total - 1),
                format!("Content-Length: {}", total - offset),
            ];
            head(stream, "206 Partial Content", &headers)?;
            stream.write_all(&bytes[offset..end.max(offset)])
        }
        None => {
            head(stream, "200 OK", &[format!("Content-Length: {total}")])?;
            stream.write_all(&bytes[..end])
        }
    }
}

/// Answers with an empty body.
pub(crate) fn status(stream: &mut TcpStream, status: &str) -> std::io::Result<()> {
    head(stream, status, &["Content-Length: 0".into()])
}

/// Sends nothing more until the client gives up (or, if it never does, for so long that the test fails).
pub(crate) fn stall(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(std::time::Duration::from_secs(20)))?;
    stream.read_to_end(&mut Vec::new()).map(|_| ())
}
