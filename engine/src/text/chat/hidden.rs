//! Characters of a user's text that could begin a control token, hidden while a template is rendered.
//!
//! See [`chat`](super) for why. A character is hidden if a control token begins with it, or with what it
//! becomes in the other case (`ſ` is `S` in upper case), for a template may change case. It becomes a
//! character of Unicode's private planes 15 and 16 that stands neither in the texts nor in the template.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::ChatError;

/// Pairs of (character, its stand-in), by character.
#[derive(Debug)]
pub(super) struct Hidden {
    pairs: Vec<(char, char)>,
}

impl Hidden {
    /// Chooses stand-ins for the characters in `texts` that could begin a control token.
    pub(super) fn choose<'a>(
        initials: &[char],
        texts: impl Iterator<Item = &'a str>,
        template: &str,
    ) -> Result<Self, ChatError> {
        let is_initial = |c: char| {
            initials.contains(&c) || c.to_lowercase().chain(c.to_uppercase()).any(|c| initials.contains(&c))
        };
        let mut hide = BTreeSet::new();
        let mut taken: BTreeSet<char> = template.chars().filter(|&c| is_private(c)).collect();
        // Most characters are ASCII: each is judged once.
        let ascii: [bool; 128] = std::array::from_fn(|byte| is_initial(char::from(byte as u8)));
        for c in texts.flat_map(str::chars) {
            if ascii.get(c as usize).copied().unwrap_or_else(|| is_initial(c)) {
                hide.insert(c);
            }
            if is_private(c) {
                taken.insert(c);
            }
        }
        let mut free = ('\u{f0000}'..='\u{10fffd}').filter(|c| is_private(*c) && !taken.contains(c));
        let pairs: Option<Vec<_>> = hide.into_iter().map(|c| Some((c, free.next()?))).collect();
        Ok(Self { pairs: pairs.ok_or(ChatError::NoPrivateCharacters)? })
    }

    /// A user's text as the template gets it.
    pub(super) fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        replace(text, |c| self.pairs.binary_search_by_key(&c, |pair| pair.0).ok().map(|at| self.pairs[at].1))
    }

    /// What the template wrote, with the users' characters back.
    pub(super) fn show<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // Stand-ins were handed out in order, so they are sorted too.
        replace(text, |c| self.pairs.binary_search_by_key(&c, |pair| pair.1).ok().map(|at| self.pairs[at].0))
    }
}

/// Whether `c` is in planes 15 and 16, private for good.
fn is_private(c: char) -> bool {
    matches!(c, '\u{f0000}'..='\u{ffffd}' | '\u{100000}'..='\u{10fffd}')
}

fn replace(text: &str, other: impl Fn(char) -> Option<char>) -> Cow<'_, str> {
    if !text.chars().any(|c| other(c).is_some()) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| other(c).unwrap_or(c)).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn initials_in_any_case_are_hidden_and_come_back() {
        let texts = ["<|im_end|>", "sſS", "a < b"];
        let hidden = Hidden::choose(&['<', 'S'], texts.into_iter(), "").unwrap();
        for text in texts {
            let covered = hidden.hide(text).into_owned();
            assert!(!covered.contains(['<', 'S', 's', 'ſ']));
            assert!(!covered.to_uppercase().contains(['<', 'S']));
            assert_eq!(covered.chars().count(), text.chars().count());
            assert_eq!(hidden.show(&covered), text);
        }
    }

    #[test]
    fn stand_ins_differ_from_every_character_around() {
        let text = "<\u{f0000}\u{f0002}";
        let hidden = Hidden::choose(&['<'], [text].into_iter(), "\u{f0001}").unwrap();
        assert_eq!(hidden.hide(text), "\u{f0003}\u{f0000}\u{f0002}");
        assert_eq!(hidden.show(&hidden.hide(text)), text);
    }

    #[test]
    fn a_text_of_all_private_characters_is_refused() {
        let all: String = ('\u{f0000}'..='\u{10fffd}').filter(|&c| is_private(c)).chain(['<']).collect();
        assert!(matches!(
            Hidden::choose(&['<'], [all.as_str()].into_iter(), ""),
            Err(ChatError::NoPrivateCharacters)
        ));
        let without = &all[..all.len() - 1];
        assert!(Hidden::choose(&['<'], [without].into_iter(), "").is_ok());
    }

    proptest! {
        #[test]
        fn any_text_comes_back(text in any::<String>(), initials in any::<[char; 3]>()) {
            let hidden = Hidden::choose(&initials, [text.as_str()].into_iter(), "").unwrap();
            let covered = hidden.hide(&text).into_owned();
            prop_assert!(!covered.contains(initials));
            prop_assert_eq!(hidden.show(&covered), text);
        }
    }
}
