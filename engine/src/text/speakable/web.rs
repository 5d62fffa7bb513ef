//! Addresses: URLs, hosts, e-mail, handles, hashtags, paths and file names.

use super::scan::{Kind, Scan, Spoken};
use super::{Locale, identifiers, numbers};

/// Endings that make letters with a full stop a host.
#[rustfmt::skip]
const DOMAINS: &[&str] = &[
    "com", "org", "net", "edu", "gov", "mil", "int", "io", "ai", "dev", "app", "co", "info", "biz", "xyz", "me", "tv", "uk",
    "us", "ca", "au", "de", "fr", "jp", "cn", "eu", "ch", "at", "nl", "se", "it", "es", "in", "br", "nz", "ie", "example",
    "online", "site", "tech", "cloud", "blog", "shop", "store", "wiki", "news", "fm", "gg", "ly", "sh", "so",
];

/// Endings of file names, with a reading if they are not spelled.
#[rustfmt::skip]
const EXTENSIONS: &[(&str, &str)] = &[
    ("txt", ""), ("md", ""), ("rs", ""), ("py", ""), ("js", ""), ("ts", ""), ("jsx", ""), ("tsx", ""), ("c", ""), ("h", ""),
    ("cpp", ""), ("hpp", ""), ("cs", ""), ("go", "go"), ("java", "java"), ("kt", ""), ("swift", "swift"), ("rb", ""),
    ("php", ""), ("html", ""), ("htm", ""), ("css", ""), ("scss", ""), ("json", "Jason"), ("yaml", "yaml"), ("yml", ""),
    ("toml", "toml"), ("xml", ""), ("csv", ""), ("tsv", ""), ("sql", ""), ("sh", ""), ("bat", "bat"), ("ps1", "P S one"),
    ("exe", ""), ("dll", ""), ("so", ""), ("zip", "zip"), ("gz", ""), ("tar", "tar"), ("rar", "rar"), ("pdf", ""), ("doc", "doc"),
    ("docx", "doc X"), ("xls", ""), ("xlsx", ""), ("ppt", ""), ("pptx", ""), ("png", ""), ("jpg", ""), ("jpeg", "jay peg"),
    ("gif", "gif"), ("svg", ""), ("webp", "web P"), ("mp3", "M P three"), ("mp4", "M P four"), ("wav", "wav"), ("flac", "flac"),
    ("mov", ""), ("avi", ""), ("mkv", ""), ("log", "log"), ("lock", "lock"), ("ini", ""), ("cfg", ""), ("conf", "conf"),
    ("env", "env"), ("bin", "bin"), ("iso", ""), ("dmg", ""), ("deb", "deb"), ("gguf", ""), ("onnx", ""), ("wgsl", ""),
    ("vue", "vue"), ("ipynb", ""), ("tex", "tex"), ("lua", "lua"),
];

/// Any address that starts at token `i`.
pub(super) fn rule(scan: &Scan, i: usize) -> Option<Spoken> {
    if !scan.starts_run(i) {
        return None;
    }
    match scan.kind(i)? {
        Kind::Mark('@') => handle(scan, i),
        Kind::Mark('#') => hashtag(scan, i),
        Kind::Mark('/' | '~' | '.' | '\\') => path(scan, i),
        Kind::Word | Kind::Digits => url(scan, i)
            .or_else(|| email(scan, i))
            .or_else(|| path(scan, i))
            .or_else(|| host_or_file(scan, i)),
        _ => None,
    }
}

/// The end of the run from token `i`, without the punctuation that closes a sentence.
fn run_end(scan: &Scan, i: usize) -> usize {
    let mut end = i;
    let mut depth = 0usize;
    while let Some(kind) = scan.kind(end) {
        match kind {
            Kind::Space | Kind::Foreign(_) | Kind::Mark('"' | '<' | '>' | '—') => break,
            Kind::Mark('(') => depth += 1,
            Kind::Mark(')') if depth == 0 => break,
            Kind::Mark(')') => depth -= 1,
            _ => {}
        }
        end += 1;
    }
    while end > i && scan.is_mark(end - 1, ".,;:!?'*_]") {
        end -= 1;
    }
    end
}

/// `https://example.com/docs?q=1`, `www.example.com`, `mailto:a@b.example`.
fn url(scan: &Scan, i: usize) -> Option<Spoken> {
    let scheme = scan.word(i)?.to_lowercase();
    if matches!(scheme.as_str(), "mailto" | "tel") && scan.is_mark(i + 1, ":") {
        return if scheme == "tel" { None } else { email(scan, i + 2) };
    }
    let known =
        matches!(scheme.as_str(), "http" | "https" | "ftp" | "ws" | "wss" | "ssh" | "git" | "file" | "s3");
    let slashes = scan.is_mark(i + 1, ":") && scan.is_mark(i + 2, "/") && scan.is_mark(i + 3, "/");
    let start = match () {
        () if known && slashes => i + 4,
        () if scheme == "www" && scan.is_mark(i + 1, ".") && !scan.ends(i + 2) => i,
        () => return None,
    };
    let end = run_end(scan, start);
    if end == start {
        return Spoken::new(start, "a link");
    }
    Spoken::new(end, say_address(scan.span(start, end), scan.locale))
}

/// Host, port and a short path; query and fragment are never said.
fn say_address(address: &str, locale: Locale) -> String {
    let address = address.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = address.split_once('/').unwrap_or((address, ""));
    let host = host.rsplit('@').next().unwrap_or_default();
    let (host, port) = host.split_once(':').unwrap_or((host, ""));
    let host = host.strip_prefix("www.").unwrap_or(host);
    let mut words = say_host(host, locale);
    if words.is_empty() {
        return "a link".into();
    }
    if !port.is_empty() && port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit()) {
        words.push_str(&format!(" port {}", numbers::code(port, locale)));
    }
    let segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
    // A long path is for reading, not for hearing.
    if segments.len() <= 2 && segments.iter().all(|s| is_sayable(s)) {
        for segment in segments {
            words.push_str(&format!(" slash {}", say_file(segment, locale)));
        }
    }
    words
}

fn is_sayable(segment: &str) -> bool {
    let digits = segment.bytes().filter(u8::is_ascii_digit).count();
    segment.len() <= 24
        && digits <= 4
        && segment.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        && segment.bytes().any(|b| b.is_ascii_alphanumeric())
}

fn say_host(host: &str, locale: Locale) -> String {
    if host.len() > 100 {
        return "a link".into();
    }
    let labels: Vec<&str> = host.split('.').filter(|l| !l.is_empty()).collect();
    let numeric = labels.iter().all(|l| l.bytes().all(|b| b.is_ascii_digit()));
    let last = labels.len().saturating_sub(1);
    let words: Vec<String> = labels
        .iter()
        .enumerate()
        .map(|(n, label)| match *label {
            "edu" if n == last && n > 0 => "E D U".into(),
            label
                if n == last
                    && n > 0
                    && label.len() == 2
                    && !numeric
                    && !matches!(label, "co" | "me" | "it" | "so") =>
            {
                super::acronyms::spell(label, "")
            }
            label => identifiers::words(label, locale),
        })
        .filter(|w| !w.is_empty())
        .collect();
    words.join(" dot ")
}

/// `john.doe@example.com`
fn email(scan: &Scan, i: usize) -> Option<Spoken> {
    let mut at = i;
    while scan.word(at).is_some() || scan.digits(at).is_some() || scan.is_mark(at, "._+%-") {
        at += 1;
    }
    if at == i || !scan.is_mark(at, "@") {
        return None;
    }
    let (labels, end) = host_end(scan, at + 1)?;
    (labels > 1).then_some(())?;
    let mut words = String::new();
    for k in i..at {
        let said = match scan.mark(k) {
            Some('.') => "dot".into(),
            Some('_') => "underscore".into(),
            Some('-') => "dash".into(),
            Some('+') => "plus".into(),
            Some(_) => continue,
            None => identifiers::words(scan.text(k), scan.locale),
        };
        words.push_str(&said);
        words.push(' ');
    }
    words.push_str(&format!("at {}", say_host(scan.span(at + 1, end), scan.locale)));
    // "user@10.0.0.5:22"
    if let Some(port) = scan.digits(end + 1).filter(|p| p.len() <= 5 && scan.is_mark(end, ":")) {
        return Spoken::new(end + 2, format!("{words} port {}", numbers::code(port, scan.locale)));
    }
    Spoken::new(end, words)
}

/// Labels joined by full stops from token `i`: how many, and the index after them.
fn host_end(scan: &Scan, i: usize) -> Option<(usize, usize)> {
    let part = |k: usize| scan.word(k).is_some() || scan.digits(k).is_some();
    let (mut labels, mut at) = (1, i);
    if !part(at) {
        return None;
    }
    loop {
        at += 1;
        if part(at) || scan.is_mark(at, "-_") && part(at + 1) {
            continue;
        }
        if scan.is_mark(at, ".") && part(at + 1) {
            labels += 1;
            continue;
        }
        return Some((labels, at));
    }
}

/// `example.com/docs`, `main.rs`, `Node.js`.
fn host_or_file(scan: &Scan, i: usize) -> Option<Spoken> {
    let (labels, end) = host_end(scan, i)?;
    if labels < 2 {
        return None;
    }
    let text = scan.span(i, end);
    let last = text.rsplit('.').next().unwrap_or_default();
    let letters = text.bytes().any(|b| b.is_ascii_alphabetic());
    let stem = &text[..text.len() - last.len()];
    // "U.S.", "e.g." and "3.5in" are not names.
    let short = stem.split('.').all(|label| label.chars().count() <= 1);
    let number = stem.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if !letters || short && labels > 2 || number {
        return None;
    }
    if DOMAINS.contains(&last) && !short {
        let path = scan.is_mark(end, "/") && !scan.ends(end + 1);
        let stop = if path || scan.is_mark(end, ":") && scan.digits(end + 1).is_some() {
            run_end(scan, i)
        } else {
            end
        };
        return Spoken::new(stop, say_address(scan.span(i, stop), scan.locale));
    }
    // "D.C." is no file written in C.
    let known = is_extension(last) || !short && is_extension(&last.to_lowercase());
    known.then(|| Spoken { next: end, words: say_file(text, scan.locale) })
}

/// Whether the tokens `i..end` are an address without a scheme: "drive.example.com/folders/…".
pub(super) fn is_address(scan: &Scan, i: usize, end: usize) -> bool {
    host_or_file(scan, i).is_some_and(|spoken| spoken.next >= end)
}

/// A file name or path segment.
fn say_file(name: &str, locale: Locale) -> String {
    let labels: Vec<&str> = name.split('.').collect();
    let last = labels.len() - 1;
    let words: Vec<String> = labels
        .iter()
        .enumerate()
        .map(|(n, label)| {
            let lower = label.to_lowercase();
            match EXTENSIONS.iter().find(|(ext, _)| n > 0 && n == last && *ext == lower) {
                Some((_, "")) => super::acronyms::spell(label, ""),
                Some((_, said)) => (*said).to_string(),
                None => identifiers::words(label, locale),
            }
        })
        .collect();
    words.join(" dot ").trim().to_string()
}

/// `/usr/local/bin`, `~/notes.txt`, `./run.sh`, `src/main.rs`, `C:\Music\old`, `.gitignore`.
fn path(scan: &Scan, i: usize) -> Option<Spoken> {
    let drive =
        scan.word(i).is_some_and(|w| w.len() == 1) && scan.is_mark(i + 1, ":") && scan.is_mark(i + 2, "\\");
    if drive {
        let end = run_end(scan, i + 3);
        let names = say_folders(scan, i + 3, end);
        return Spoken::new(end.max(i + 3), format!("{} colon backslash {names}", scan.text(i)).trim_end());
    }
    let share = scan.is_mark(i, "\\") && scan.is_mark(i + 1, "\\") && !scan.ends(i + 2);
    if share {
        let end = run_end(scan, i + 2);
        return Spoken::new(end, format!("backslash backslash {}", say_folders(scan, i + 2, end)));
    }
    let dotted = scan.is_mark(i, ".") && scan.word(i + 1).is_some_and(|w| w.len() > 1);
    if dotted {
        let (_, end) = host_end(scan, i + 1)?;
        return Spoken::new(end, format!("dot {}", say_file(scan.span(i + 1, end), scan.locale)));
    }
    let rooted = scan.is_mark(i, "/") && (scan.word(i + 1).is_some() || scan.is_mark(i + 1, "."));
    let home = scan.is_mark(i, "~") && scan.is_mark(i + 1, "/");
    let relative = scan.is_mark(i, ".")
        && (scan.is_mark(i + 1, "/") || scan.is_mark(i + 1, ".") && scan.is_mark(i + 2, "/"));
    let mut end = i;
    while scan.word(end).is_some() || scan.digits(end).is_some() || scan.is_mark(end, "/.~-_+") {
        end += 1;
    }
    while end > i && scan.is_mark(end - 1, ".-") {
        end -= 1;
    }
    let text = scan.span(i, end);
    let file = text.contains('/') && text.rsplit('.').next().is_some_and(is_extension) && text.contains('.');
    if !(rooted || home || relative || file) {
        return None;
    }
    let names: Vec<String> = text
        .split('/')
        .filter(|s| !matches!(*s, "" | "." | ".." | "~"))
        .map(|s| say_file(s, scan.locale))
        .filter(|w| !w.is_empty())
        .collect();
    if names.is_empty() {
        return Spoken::new(end.max(i + 1), "");
    }
    let names = names.join(" slash ");
    let words = match () {
        () if home => format!("home slash {names}"),
        () if rooted => format!("slash {names}"),
        () => names,
    };
    Spoken::new(end, words)
}

/// `Users\\me\\notes.txt`
fn say_folders(scan: &Scan, from: usize, end: usize) -> String {
    let names = scan.span(from, end).split('\\').filter(|s| !s.is_empty());
    names.map(|s| say_file(s, scan.locale)).collect::<Vec<_>>().join(" backslash ")
}

fn is_extension(ext: &str) -> bool {
    EXTENSIONS.iter().any(|(known, _)| *known == ext)
}

/// `@user`
fn handle(scan: &Scan, i: usize) -> Option<Spoken> {
    let end = name_end(scan, i + 1);
    (end > i + 1).then(|| Spoken {
        next: end,
        words: format!("at {}", identifiers::words(scan.span(i + 1, end), scan.locale)),
    })
}

/// `#RustLang`; numbers are left to the rule for symbols.
fn hashtag(scan: &Scan, i: usize) -> Option<Spoken> {
    let word = scan.word(i + 1)?;
    // "#A1234" is an order, not a topic.
    if (scan.digits(i + 2).is_some() || scan.is_mark(i + 2, "-")) && word.chars().all(char::is_uppercase) {
        return None;
    }
    let end = name_end(scan, i + 1);
    Spoken::new(end, format!("hashtag {}", identifiers::words(scan.span(i + 1, end), scan.locale)))
}

fn name_end(scan: &Scan, i: usize) -> usize {
    let mut end = i;
    while scan.word(end).is_some() || scan.digits(end).is_some() || scan.is_mark(end, "_") {
        end += 1;
    }
    end
}
