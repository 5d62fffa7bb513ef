//! Downloads over HTTPS that go on where they broke off.
//!
//! Going on is safe without asking whether the file changed in between: the hash of the whole is checked, and
//! a wrong one after a resume starts the file anew once.

use std::io;

use ureq::http::{HeaderMap, Response, StatusCode, header};
use ureq::{Agent, Body};

use super::progress::Watch;
use super::{FetchOptions, Unreachable};
use crate::part::{CopyError, MAX_UNKNOWN_BYTES, PartFile};
use crate::{CancelToken, Content, Error, Result};

/// A broken transfer is gone on with this often, as long as each try brings some bytes.
const MAX_RESUMES: usize = 5;

pub(super) fn agent(options: &FetchOptions) -> Agent {
    Agent::config_builder()
        .user_agent(concat!("repartee/", env!("CARGO_PKG_VERSION")))
        // Ranges count bytes of what is sent: it must be the file itself, not a compressed form of it.
        .accept_encoding("identity")
        .http_status_as_error(false)
        .max_redirects(10)
        .timeout_resolve(Some(options.connect_timeout))
        .timeout_connect(Some(options.connect_timeout))
        .timeout_send_request(Some(options.stall_timeout))
        .timeout_recv_response(Some(options.stall_timeout))
        .timeout_per_read(Some(options.stall_timeout))
        .build()
        .new_agent()
}

/// One address to download from.
pub(super) struct Download<'a> {
    pub(super) agent: &'a Agent,
    pub(super) unreachable: &'a Unreachable,
    pub(super) options: &'a FetchOptions,
    pub(super) url: &'a str,
}

/// Why a transfer ended before the end of the file.
enum Broken {
    /// The connection broke or stalled; what has arrived is right as far as anyone knows.
    Midway(Error),
    /// What is there does not fit to what the server has: start anew.
    Unfit(Error),
    /// Nothing to be done with this source.
    Final(Error),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

impl Download<'_> {
    /// Completes `part` from this address.
    pub(super) fn run(
        &self,
        mut part: PartFile<'_>,
        cancel: &CancelToken,
        watch: &mut Watch<'_>,
    ) -> Result<Content> {
        let mut resumes = 0;
        let mut may_restart = true;
        let mut resumed = part.len_bytes() > 0;
        loop {
            let before = part.len_bytes();
            match self.transfer(&mut part, cancel, watch) {
                Ok(()) if resumed && may_restart => {
                    // What came before may be of another version of the file: its hash is found out without
                    // losing the part's lock.
                    match part.commit_or_restart()? {
                        Ok(content) => return Ok(content),
                        Err(restarted) => part = restarted,
                    }
                    (may_restart, resumed) = (false, false);
                }
                Ok(()) => return part.commit(),
                Err(Broken::Unfit(_)) if may_restart => {
                    part.restart()?;
                    (may_restart, resumed) = (false, false);
                }
                Err(Broken::Midway(error)) if part.len_bytes() > before && resumes < MAX_RESUMES => {
                    tracing::debug!(%error, url = self.url, "the transfer broke and goes on");
                    resumes += 1;
                    resumed = true;
                }
                Err(Broken::Midway(error) | Broken::Unfit(error) | Broken::Final(error)) => {
                    return Err(error);
                }
            }
        }
    }

    /// Asks for what `part` lacks and appends it.
    fn transfer(
        &self,
        part: &mut PartFile<'_>,
        cancel: &CancelToken,
        watch: &mut Watch<'_>,
    ) -> Result<(), Broken> {
        if part.is_complete() {
            return Ok(());
        }
        let offset = part.len_bytes();
        let response = self.request(offset)?;
        let total_bytes = self.accept(&response, part)?;
        let missing = total_bytes.map_or(0, |total| total.saturating_sub(part.len_bytes()));
        part.ensure_room(missing)?;
        watch.begin(part.len_bytes(), total_bytes);
        let mut body = response
            .into_body()
            .into_with_config()
            .limit(MAX_UNKNOWN_BYTES.max(missing).saturating_add(1))
            .reader();
        match part.append_all(&mut body, cancel, |done| watch.progress(done, total_bytes)) {
            Ok(_) => {}
            Err(CopyError::Read(error)) => return Err(Broken::Midway(self.read_failed(error))),
            // More bytes than listed: the server has another file, or what was there before was of another
            // one.
            Err(CopyError::Write(error @ Error::WrongSize { .. })) if offset > 0 => {
                return Err(Broken::Unfit(error));
            }
            Err(CopyError::Write(error)) => return Err(error.into()),
        }
        match total_bytes {
            Some(expected_bytes) if part.len_bytes() < expected_bytes => {
                Err(Broken::Midway(Error::WrongSize {
                    what: self.url.into(),
                    expected_bytes,
                    found_bytes: part.len_bytes(),
                }))
            }
            _ => Ok(()),
        }
    }

    fn request(&self, offset: u64) -> Result<Response<Body>> {
        let host = host_of(self.url);
        self.unreachable.check(host)?;
        // A redirect must not leave HTTPS; only addresses of this machine itself are plain.
        let mut request =
            self.agent.get(self.url).config().https_only(self.url.starts_with("https:")).build();
        if offset > 0 {
            request = request.header(header::RANGE, format!("bytes={offset}-"));
        }
        request.call().map_err(|error| self.request_failed(host, error))
    }

    /// Judges the answer's head; starts `part` anew if the whole file comes. Returns the length of the whole
    /// file, if known.
    fn accept(&self, response: &Response<Body>, part: &mut PartFile<'_>) -> Result<Option<u64>, Broken> {
        let headers = response.headers();
        let expected = part.expected().map(|content| content.size_bytes);
        let length = number(headers, header::CONTENT_LENGTH);
        let total = match response.status() {
            StatusCode::PARTIAL_CONTENT => {
                let range = headers
                    .get(header::CONTENT_RANGE)
                    .and_then(|value| parse_content_range(value.to_str().ok()?));
                match range {
                    Some((start, total)) if start == part.len_bytes() => {
                        total.or_else(|| length.map(|length| start.saturating_add(length)))
                    }
                    _ => {
                        let reason =
                            "the server answered with another part of the file than asked for".into();
                        return Err(Broken::Unfit(Error::Http { url: self.url.into(), reason }));
                    }
                }
            }
            StatusCode::OK => {
                part.restart()?;
                length
            }
            StatusCode::RANGE_NOT_SATISFIABLE if part.len_bytes() > 0 => {
                return Err(Broken::Unfit(Error::HttpStatus {
                    url: self.url.into(),
                    status: response.status().as_u16(),
                }));
            }
            status => {
                return Err(Broken::Final(Error::HttpStatus {
                    url: self.url.into(),
                    status: status.as_u16(),
                }));
            }
        };
        let is_encoded = headers.get(header::CONTENT_ENCODING).is_some_and(|value| value != "identity");
        match (expected, total) {
            // The length of an encoded body is not the file's.
            (Some(expected), _) if is_encoded => Ok(Some(expected)),
            (Some(expected_bytes), Some(found_bytes)) if expected_bytes != found_bytes => {
                Err(Broken::Final(Error::WrongSize { what: self.url.into(), expected_bytes, found_bytes }))
            }
            (Some(expected), _) => Ok(Some(expected)),
            (None, Some(total)) if !is_encoded && total <= MAX_UNKNOWN_BYTES => Ok(Some(total)),
            // Without a length nobody could tell a whole file from a cut one.
            (None, _) => {
                let reason = "the server does not say how long the file is, or it is too long to be taken without a known hash".into();
                Err(Broken::Final(Error::Http { url: self.url.into(), reason }))
            }
        }
    }

    /// No answer: a host that can't be reached is remembered.
    fn request_failed(&self, host: &str, error: ureq::Error) -> Error {
        use io::ErrorKind as K;
        use ureq::{Error as E, Timeout};
        let secs = |timeout: std::time::Duration| timeout.as_secs_f32();
        match error {
            E::HostNotFound => self.unreachable.remember(host, "its name cannot be resolved".into()),
            E::Timeout(Timeout::Resolve | Timeout::Connect) => self
                .unreachable
                .remember(host, format!("no connection within {} s", secs(self.options.connect_timeout))),
            E::Timeout(_) => self
                .unreachable
                .remember(host, format!("no answer within {} s", secs(self.options.stall_timeout))),
            // These come from a server that is there; all others from the way to it.
            E::Io(error)
                if matches!(
                    error.kind(),
                    K::UnexpectedEof | K::ConnectionReset | K::ConnectionAborted | K::BrokenPipe
                ) =>
            {
                Error::Http { url: self.url.into(), reason: format!("the connection broke: {error}") }
            }
            E::Io(error) => self.unreachable.remember(host, error.to_string()),
            error @ (E::ConnectionFailed
            | E::ConnectProxyFailed(_)
            | E::InvalidProxyUrl
            | E::Tls(_)
            | E::Rustls(_)
            | E::TlsRequired) => self.unreachable.remember(host, error.to_string()),
            error => Error::Http { url: self.url.into(), reason: error.to_string() },
        }
    }

    /// The answer broke off.
    fn read_failed(&self, error: io::Error) -> Error {
        match ureq::Error::from(error) {
            ureq::Error::Timeout(_) => {
                Error::Stalled { what: self.url.into(), secs: self.options.stall_timeout.as_secs() }
            }
            error => Error::Http { url: self.url.into(), reason: format!("the connection broke: {error}") },
        }
    }
}

/// Host and port of an address.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

fn number(headers: &HeaderMap, name: header::HeaderName) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

/// `bytes START-END/TOTAL` (RFC 9110, 14.4) as start and total, the latter `None` if it is `*`.
fn parse_content_range(value: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = value.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (start, end) = range.split_once('-')?;
    let (start, end): (u64, u64) = (start.trim().parse().ok()?, end.trim().parse().ok()?);
    let total = match total.trim() {
        "*" => None,
        total => Some(total.parse::<u64>().ok()?),
    };
    (start <= end && total.is_none_or(|total| end < total)).then_some((start, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges() {
        assert_eq!(parse_content_range("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(parse_content_range("bytes 5-9/*"), Some((5, None)));
        for wrong in
            ["", "bytes */10", "bytes 9-5/10", "bytes 5-10/10", "items 5-9/10", "bytes 5-9", "bytes -1-9/10"]
        {
            assert_eq!(parse_content_range(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn hosts() {
        assert_eq!(host_of("https://example.com/a/b?c"), "example.com");
        assert_eq!(host_of("http://127.0.0.1:80/a"), "127.0.0.1:80");
    }
}
