//! Command lines that cannot be meant, and numbers that an option takes.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The command was called wrongly: the program ends with 2, as for what clap refuses.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WrongUsage(String);

impl WrongUsage {
    /// As an error of a command; `message` says what is wrong and what is possible.
    pub(crate) fn error(message: impl Into<String>) -> anyhow::Error {
        Self(message.into()).into()
    }
}

/// A number of an option, for clap: within `range`, which NaN never is.
pub(crate) fn within<T>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| {
        let value: T = text.parse().map_err(|_| format!("{text:?} is no number that fits here"))?;
        if range.contains(&value) {
            return Ok(value);
        }
        Err(format!("from {} to {}", range.start(), range.end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_refused_with_the_range() {
        let temperature = within(0.0_f32..=5.0);
        assert_eq!(temperature("0.7"), Ok(0.7));
        for text in ["-1", "NaN", "inf", "5.1", "warm", ""] {
            assert!(temperature(text).is_err(), "{text}");
        }
        assert_eq!(within(1_usize..=1000)("0"), Err("from 1 to 1000".into()));
    }
}
