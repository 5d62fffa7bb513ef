//! The sandbox that chat templates run in.
//!
//! minijinja has no access to files or the network, and no template loader is set. Its fuel is charged for
//! instructions, items and bytes alike, so one budget bounds a rendering's time and memory (about 64 bytes
//! a unit). The budget grows with the messages, for honest templates copy each a few times.
//!
//! One thing is charged only afterwards: a list repeated with `*` or joined with `+` is lazy, a list may hold another one
//! twice, and a single step that walks it (`{{ }}`, `~`, `==`) pays at its end. A template written for it can so waste
//! time and memory, all of it in the worst case. It reaches nothing else by that, and no honest template comes near.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Kwargs;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Value};
use minijinja_contrib::pycompat;

use super::clock::strftime;
use super::hidden::Hidden;
use super::{ChatError, ChatOptions, Message};

/// Longest template; published ones have up to some 20 kB.
const SOURCE_LIMIT: usize = 256 << 10;

/// Fuel of a rendering: for the template itself, for each message, and for each byte of text. A byte costs
/// 1/64 for each copy of it, so the last allows 64 copies.
const FUEL: u64 = 500_000;
const FUEL_PER_MESSAGE: u64 = 5_000;
const FUEL_PER_BYTE: u64 = 1;
const MOST_FUEL: u64 = 1_500_000;

/// Lists in lists are printed and dropped by recursion. Each level costs some fuel, so that this holds the deepest that can be
/// paid for (a test nests that deep); the system provides only what is used of it.
const STACK_BYTES: usize = 512 << 20;

/// Bytes of JSON that a unit of fuel pays for, and the most spaces that it is indented by.
const BYTES_PER_FUEL: u64 = 64;
const MOST_INDENT: i64 = 16;

/// Bytes of output: for the template itself, and for each byte of text.
const OUTPUT: usize = 1 << 20;
const OUTPUT_PER_BYTE: usize = 8;

/// Nesting of macros, loops and conditions.
const RECURSION: usize = 64;

/// The prefix of errors that the template raised itself.
const RAISED: &str = "raised: ";

const NAME: &str = "chat_template";

/// A compiled template and the environment it runs in.
#[derive(Debug, Clone)]
pub(super) struct Jinja {
    environment: Environment<'static>,
    source: String,
    bos: String,
    eos: String,
}

impl Jinja {
    pub(super) fn new(source: &str, bos: String, eos: String) -> Result<Self, ChatError> {
        if source.len() > SOURCE_LIMIT {
            return Err(ChatError::SourceTooLong { bytes: source.len(), limit: SOURCE_LIMIT });
        }
        let source = without_generation_tags(source);
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(failed)?;
        super::screen::screen(&source, &syntax)?;
        environment.set_syntax(syntax);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_unknown_method_callback(pycompat::unknown_method_callback);
        environment.set_recursion_limit(RECURSION);
        environment.add_function("raise_exception", |message: String| -> Result<Value, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, format!("{RAISED}{message}")))
        });
        environment.add_template_owned(NAME, source.clone()).map_err(|error| ChatError::Syntax {
            line: error.line().unwrap_or(1),
            detail: describe(&error),
        })?;
        Ok(Self { environment, source, bos, eos })
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Renders with the texts hidden, on a stack that holds whatever a template can nest.
    pub(super) fn render(
        &self,
        messages: &[Message],
        options: &ChatOptions,
        hidden: &Hidden,
    ) -> Result<String, ChatError> {
        let unable =
            |what: &str| ChatError::Failed { line: 1, detail: format!("it could not be run: {what}") };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("template".into()).stack_size(STACK_BYTES);
            let run = thread.spawn_scoped(scope, || self.render_here(messages, options, hidden));
            run.map_err(|e| unable(&e.to_string()))?.join().unwrap_or_else(|_| Err(unable("it broke off")))
        })
    }

    fn render_here(
        &self,
        messages: &[Message],
        options: &ChatOptions,
        hidden: &Hidden,
    ) -> Result<String, ChatError> {
        let mut context: Vec<(&str, Value)> = options
            .variables
            .iter()
            .map(|(name, value)| (name.as_str(), jinja_value(value, hidden)))
            .collect();
        let now = options.local_time_secs;
        context.extend([
            ("messages", messages.iter().map(|message| message_value(message, hidden)).collect()),
            ("add_generation_prompt", Value::from(options.add_generation_prompt)),
            ("bos_token", Value::from(self.bos.as_str())),
            ("eos_token", Value::from(self.eos.as_str())),
            ("strftime_now", Value::from_function(move |format: String| strftime(&format, now_secs(now)))),
        ]);
        let bytes = messages.iter().map(|message| message.content.len()).sum::<usize>()
            + options.variables.values().flat_map(super::texts_in).map(str::len).sum::<usize>();
        let mut environment = self.environment.clone();
        let fuel = FUEL + FUEL_PER_MESSAGE * messages.len() as u64 + FUEL_PER_BYTE * bytes as u64;
        let fuel = fuel.min(MOST_FUEL);
        environment.set_fuel(Some(fuel));
        let written = AtomicU64::new(0);
        environment.add_filter("tojson", move |value: &Value, indent: Option<Value>, named: Kwargs| {
            let json = to_json(value, indent, named)?;
            let length = json.as_str().map_or(0, str::len) as u64;
            match written.fetch_add(length, Ordering::Relaxed) + length {
                bytes if bytes > fuel * BYTES_PER_FUEL => Err(ErrorKind::OutOfFuel.into()),
                _ => Ok(json),
            }
        });
        let template = environment.get_template(NAME).map_err(failed)?;
        let rendered = template.render(Value::from_pairs(context)).map_err(failed)?;
        let limit = OUTPUT + OUTPUT_PER_BYTE * bytes;
        if rendered.len() > limit {
            return Err(ChatError::OutputTooLong { bytes: rendered.len(), limit });
        }
        Ok(rendered)
    }
}

/// The filter `tojson`. Its own indentation has no bound, and is paid for only when all of it has been written.
fn to_json(value: &Value, indent: Option<Value>, named: Kwargs) -> Result<Value, Error> {
    let asked = match &indent {
        Some(indent) => Some(indent.clone()),
        None => named.peek::<Option<Value>>("indent")?,
    };
    if asked.is_some_and(|indent| i64::try_from(indent).is_ok_and(|spaces| spaces > MOST_INDENT)) {
        let detail = format!("tojson indents by {MOST_INDENT} spaces at most");
        return Err(Error::new(ErrorKind::InvalidOperation, detail));
    }
    minijinja::filters::tojson(value, indent, named)
}

fn now_secs(local: Option<i64>) -> i64 {
    let utc = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    local.unwrap_or_else(utc)
}

fn message_value(message: &Message, hidden: &Hidden) -> Value {
    Value::from_pairs([
        ("role", Value::from(message.role.as_str())),
        ("content", Value::from(hidden.hide(&message.content).as_ref())),
    ])
}

fn jinja_value(value: &serde_json::Value, hidden: &Hidden) -> Value {
    use serde_json::Value as Json;
    match value {
        Json::Null => Value::from(()),
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Value::from(integer),
            (None, Some(integer)) => Value::from(integer),
            (None, None) => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(hidden.hide(text).as_ref()),
        Json::Array(items) => items.iter().map(|item| jinja_value(item, hidden)).collect(),
        Json::Object(map) => Value::from_pairs(
            map.iter().map(|(key, item)| (hidden.hide(key).into_owned(), jinja_value(item, hidden))),
        ),
    }
}

/// `{% generation %}` and `{% endgeneration %}` mark the model's part for training (an extension of
/// `transformers`); rendering needs a block of any kind in their place.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start);
        out.push_str(before);
        let Some(length) = tag.find("%}").map(|end| end + 2) else {
            rest = tag;
            break;
        };
        let (tag, behind) = tag.split_at(length);
        let inner = &tag[2..tag.len() - 2];
        let name = inner.trim_matches(['-', '+']).trim();
        match name {
            "generation" => out.push_str(&format!("{{%{}%}}", inner.replacen(name, "if true", 1))),
            "endgeneration" => out.push_str(&format!("{{%{}%}}", inner.replacen(name, "endif", 1))),
            _ => out.push_str(tag),
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

pub(super) fn describe(error: &Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

fn failed(error: Error) -> ChatError {
    // An error inside a macro or a callback is the cause of the one that arrives here.
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(current) = cause {
        if let Some(inner) = current.downcast_ref::<Error>() {
            if inner.kind() == ErrorKind::OutOfFuel {
                return ChatError::OutOfFuel;
            }
            if let Some(message) = inner.detail().and_then(|detail| detail.strip_prefix(RAISED)) {
                return ChatError::Refused(message.to_owned());
            }
        }
        cause = current.source();
    }
    ChatError::Failed { line: error.line().unwrap_or(1), detail: describe(&error) }
}
