//! A conversation on disk: an exchange a line, and one more for the question of a reply under way, so that a crash costs at
//! most the line being written.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use repartee_engine::turn::message::Exchange;
use serde::{Deserialize, Serialize};

use super::Home;

/// More of a file is not read: its oldest exchanges are beyond every model's memory.
const MAX_BYTES: u64 = 16 << 20;

/// So much of a file is read to say what it is about.
const START_BYTES: u64 = 64 << 10;

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    /// When, as RFC 3339.
    at: String,
    user: String,
    heard: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
    /// It takes the place of the line before, which was written when the reply was first heard.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    replaces: bool,
}

/// The file of a conversation under way.
#[derive(Debug)]
pub(crate) struct Conversation {
    folder: PathBuf,
    /// `None` until something was said.
    file: Option<(PathBuf, File)>,
    /// The last line is of a reply under way.
    is_open: bool,
}

impl Conversation {
    /// A new conversation; its file comes with its first exchange.
    pub(crate) fn new(home: &Home) -> Self {
        Self { folder: home.conversations.clone(), file: None, is_open: false }
    }

    /// The last conversation, to go on with, and what was said in it. A line that is cut off, or no exchange, is passed over.
    ///
    /// # Errors
    /// Its file can't be read or written.
    pub(crate) fn last(home: &Home) -> Result<(Self, Vec<Exchange>)> {
        match newest(&home.conversations) {
            Some(path) => Self::open(home, path),
            None => Ok((Self::new(home), Vec::new())),
        }
    }

    /// The conversation in `path`, to go on with, and what was said in it. It is the last one from now on.
    ///
    /// # Errors
    /// Its file can't be read or written.
    pub(crate) fn resume(home: &Home, path: &Path) -> Result<(Self, Vec<Exchange>)> {
        let (conversation, exchanges) = Self::open(home, path.to_owned())?;
        if let Some((_, file)) = &conversation.file {
            // The first thing said in it does the same.
            let _ = file.set_modified(SystemTime::now());
        }
        Ok((conversation, exchanges))
    }

    fn open(home: &Home, path: PathBuf) -> Result<(Self, Vec<Exchange>)> {
        let read = || -> std::io::Result<(File, String)> {
            let mut file = OpenOptions::new().read(true).append(true).open(&path)?;
            let mut bytes = Vec::new();
            (&mut file).take(MAX_BYTES).read_to_end(&mut bytes)?;
            // After a crash the last line may have no end.
            if bytes.last().is_some_and(|byte| *byte != b'\n') {
                file.write_all(b"\n")?;
            }
            Ok((file, String::from_utf8_lossy(&bytes).into_owned()))
        };
        let (file, text) = read().with_context(|| format!("cannot read {}", path.display()))?;
        let exchanges = exchanges(&text);
        let (folder, file) = (home.conversations.clone(), Some((path, file)));
        Ok((Self { folder, file, is_open: false }, exchanges))
    }

    /// All conversations but this one, the newest first.
    pub(crate) fn earlier(&self) -> Vec<Earlier> {
        let own = self.file.as_ref().map(|(path, _)| path);
        let mut paths: Vec<_> = files(&self.folder).filter(|path| Some(path) != own).collect();
        paths.sort_unstable_by(|a, b| b.cmp(a));
        paths.into_iter().filter_map(Earlier::of).collect()
    }

    /// Writes what the user said when the reply is first heard, so that a crash does not cost it. The exchange that is added
    /// next takes its place.
    ///
    /// # Errors
    /// The folder or the file can't be written.
    pub(crate) fn begin(&mut self, at: Timestamp, user: &str) -> Result<()> {
        let unanswered = Exchange { user: user.into(), heard: "".into(), interrupted: true };
        self.write(at, &unanswered)?;
        self.is_open = true;
        Ok(())
    }

    /// Writes an exchange, all the way to the disk. What can't be written whole leaves the file as it was.
    ///
    /// # Errors
    /// The folder or the file can't be written.
    pub(crate) fn add(&mut self, at: Timestamp, exchange: &Exchange) -> Result<()> {
        self.write(at, exchange)?;
        self.is_open = false;
        Ok(())
    }

    fn write(&mut self, at: Timestamp, exchange: &Exchange) -> Result<()> {
        if self.file.is_none() {
            fs::create_dir_all(&self.folder)
                .with_context(|| format!("cannot create the folder {}", self.folder.display()))?;
            let (path, file) = create(&self.folder, at)?;
            self.file = Some((path, file));
        }
        let Some((path, file)) = &mut self.file else { return Ok(()) };
        let (user, heard) = (exchange.user.to_string(), exchange.heard.to_string());
        let (interrupted, replaces) = (exchange.interrupted, self.is_open);
        let line = Line { at: at.to_string(), user, heard, interrupted, replaces };
        let mut line = serde_json::to_string(&line)?;
        line.push('\n');
        let mut write = || {
            let whole = file.metadata()?.len();
            let written = file.write_all(line.as_bytes()).and_then(|()| file.sync_data());
            written.inspect_err(|_| {
                // Half a line would spoil the next one. A disk that is full still does this much.
                let _ = file.set_len(whole);
            })
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }
}

/// The lines that count; one that is cut off, or no exchange, is passed over.
fn lines(text: &str) -> Vec<Line> {
    let mut kept: Vec<Line> = Vec::new();
    for line in text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
        kept.pop_if(|_| line.replaces);
        kept.push(line);
    }
    kept
}

/// What the lines say.
fn exchanges(text: &str) -> Vec<Exchange> {
    lines(text)
        .into_iter()
        .map(|Line { user, heard, interrupted, .. }| Exchange {
            user: user.into(),
            heard: heard.into(),
            interrupted,
        })
        .collect()
}

/// An earlier conversation, as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Earlier {
    /// Its file.
    pub(crate) path: PathBuf,
    /// The day on which it began, where the user is: `Monday, November 30, 2026`.
    pub(crate) day: String,
    /// The time: `3:27 PM`.
    pub(crate) time: String,
    /// What the user said first.
    pub(crate) first: String,
}

impl Earlier {
    /// From the first exchange in the file; `None` if it has none.
    fn of(path: PathBuf) -> Option<Self> {
        let mut start = Vec::new();
        File::open(&path).ok()?.take(START_BYTES).read_to_end(&mut start).ok()?;
        let start = String::from_utf8_lossy(&start);
        let line = lines(&start).into_iter().next()?;
        let at = line.at.parse::<Timestamp>().ok()?.to_zoned_datetime(TimeZone::system());
        let (day, time) = (at.strftime("%A, %B %-d, %Y").to_string(), at.strftime("%-I:%M %p").to_string());
        Some(Self { path, day, time, first: line.user })
    }

    /// What was said and heard.
    ///
    /// # Errors
    /// The file can't be read.
    pub(crate) fn read(&self) -> Result<Vec<Exchange>> {
        let read = || -> std::io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            File::open(&self.path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().with_context(|| format!("cannot read {}", self.path.display()))?;
        Ok(exchanges(&String::from_utf8_lossy(&bytes)))
    }

    /// Removes its file for good.
    ///
    /// # Errors
    /// The file can't be removed.
    pub(crate) fn delete(&self) -> Result<()> {
        fs::remove_file(&self.path).with_context(|| format!("cannot delete {}", self.path.display()))
    }
}

/// A new file for a conversation that begins at `at`; of two in a millisecond, the second is a millisecond late.
fn create(folder: &Path, mut at: Timestamp) -> Result<(PathBuf, File)> {
    let mut options = OpenOptions::new();
    options.append(true).create_new(true);
    // What was said is nobody else's business.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    loop {
        let path = folder.join(format!("{}.jsonl", at.strftime("%Y-%m-%dT%H-%M-%S-%3f")));
        match options.open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => at += SignedDuration::from_millis(1),
            Err(error) => return Err(error).with_context(|| format!("cannot write {}", path.display())),
        }
    }
}

/// The files of all conversations.
fn files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|end| end == "jsonl") && path.is_file())
}

/// The one that was written last. The names are the times at which they began.
fn newest(folder: &Path) -> Option<PathBuf> {
    files(folder).max_by_key(|path| (fs::metadata(path).and_then(|meta| meta.modified()).ok(), path.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(user: &str, heard: &str) -> Exchange {
        Exchange { user: user.into(), heard: heard.into(), interrupted: heard.is_empty() }
    }

    #[test]
    fn a_conversation_goes_on_where_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::at(folder.path());
        let (mut conversation, past) = Conversation::last(&home).expect("nothing yet");
        assert!(past.is_empty() && !folder.path().join("conversations").exists());
        let all = [exchange("Hello,\n\"you\".", "Hello!"), exchange("Go on", "")];
        conversation.add(Timestamp::now(), &all[0]).expect("a file");
        let (mut conversation, past) = Conversation::last(&home).expect("a file");
        assert_eq!(past, all[..1]);
        conversation.add(Timestamp::now(), &all[1]).expect("a file");
        assert_eq!(Conversation::last(&home).expect("a file").1, all);
    }

    #[test]
    fn a_crash_costs_one_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::at(folder.path());
        let mut conversation = Conversation::new(&home);
        conversation.add(Timestamp::now(), &exchange("One", "1")).expect("a file");
        let path = newest(&home.conversations).expect("a file");
        let mut file = OpenOptions::new().append(true).open(&path).expect("the file");
        file.write_all(b"{\"at\":\"2026-01-01T00:00:00Z\",\"user\":\"Tw").expect("half a line");
        let (mut conversation, past) = Conversation::last(&home).expect("a file");
        assert_eq!(past, [exchange("One", "1")]);
        conversation.add(Timestamp::now(), &exchange("Three", "3")).expect("a file");
        assert_eq!(
            Conversation::last(&home).expect("a file").1,
            [exchange("One", "1"), exchange("Three", "3")]
        );
    }

    #[test]
    fn a_crash_in_a_reply_leaves_the_question() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::at(folder.path());
        let mut conversation = Conversation::new(&home);
        let read = || Conversation::new(&home).earlier()[0].read().expect("a file");
        conversation.begin(Timestamp::now(), "One").expect("a file");
        assert_eq!(read(), [exchange("One", "")]);
        // What the user said may have grown.
        conversation.add(Timestamp::now(), &exchange("One, two", "3")).expect("a file");
        assert_eq!(read(), [exchange("One, two", "3")]);
        assert_eq!(Conversation::new(&home).earlier()[0].first, "One, two");
        conversation.begin(Timestamp::now(), "Four").expect("a file");
        drop(conversation);
        let (mut conversation, past) = Conversation::last(&home).expect("a file");
        let mut all = vec![exchange("One, two", "3"), exchange("Four", "")];
        assert_eq!(past, all);
        // What comes next is another exchange.
        conversation.begin(Timestamp::now(), "Five").expect("a file");
        conversation.add(Timestamp::now(), &exchange("Five", "6")).expect("a file");
        all.push(exchange("Five", "6"));
        assert_eq!(read(), all);
    }

    #[test]
    fn earlier_conversations_are_listed_read_and_deleted() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::at(folder.path());
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let mut old = Conversation::new(&home);
        old.add(at("2026-02-03T12:00:00Z"), &exchange("One", "1")).expect("a file");
        old.add(at("2026-02-03T12:01:00Z"), &exchange("Two", "")).expect("a file");
        let mut newer = Conversation::new(&home);
        newer.add(at("2026-02-05T12:00:00Z"), &exchange("Three", "3")).expect("a file");
        fs::write(home.conversations.join("2026-02-04T00-00-00-000.jsonl"), "no exchange").expect("a file");
        fs::write(home.conversations.join("notes.txt"), "not ours").expect("a file");
        assert_eq!(newer.earlier().len(), 1, "without the one under way");
        let all = Conversation::new(&home).earlier();
        let firsts: Vec<_> = all.iter().map(|e| (e.first.as_str(), e.day.as_str())).collect();
        assert_eq!(firsts, [("Three", "Thursday, February 5, 2026"), ("One", "Tuesday, February 3, 2026")]);
        assert_eq!(all[1].read().expect("a file"), [exchange("One", "1"), exchange("Two", "")]);
        all[1].delete().expect("it is there");
        assert_eq!(Conversation::new(&home).earlier(), all[..1]);
        let error = format!("{:#}", all[1].delete().expect_err("it is gone"));
        assert!(error.contains("2026-02-03"), "{error}");
        assert!(all[1].read().is_err());
    }

    #[cfg(unix)]
    #[test]
    fn what_was_said_is_for_the_user_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::at(folder.path());
        Conversation::new(&home).add(Timestamp::now(), &exchange("a", "b")).expect("a file");
        let path = newest(&home.conversations).expect("a file");
        assert_eq!(fs::metadata(path).expect("a file").permissions().mode() & 0o077, 0);
    }
}
