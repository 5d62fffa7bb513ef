//! What a template must not be, looked for before it is compiled.
//!
//! minijinja bounds nesting in brackets and blocks. It follows chains (`1+1+1…`, `a.b.c…`, `elif`) by recursion all the
//! same, and a namespace that holds itself without end; both overflow the stack, which ends the process. So tags have a
//! bounded number of tokens, conditions a bounded number of branches, and a namespace serves for nothing but its attributes:
//! `ns.found`, never `ns`. Published templates come nowhere near these limits.

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::ChatError;

/// Tokens of a tag. Each may cost the stack a level: twenty thousand were too many for 8 MiB, twelve thousand were not.
const TAG_TOKENS: usize = 1_000;
/// `elif`s of a template.
const BRANCHES: usize = 500;

const NAMESPACE: &str = "namespace";

/// Refuses what would overflow the stack.
///
/// # Errors
/// [`ChatError::Syntax`].
pub(super) fn screen(source: &str, syntax: &SyntaxConfig) -> Result<(), ChatError> {
    let mut branches = 0;
    let mut tags = Vec::new();
    let mut tag: Option<Vec<Token<'_>>> = None;
    for token in tokenize(source, false, syntax.clone()) {
        let (token, span) =
            token.map_err(|error| refused(error.line().unwrap_or(1), super::jinja::describe(&error)))?;
        match token {
            Token::VariableStart | Token::BlockStart => tag = Some(vec![token]),
            Token::VariableEnd | Token::BlockEnd => tags.extend(tag.take()),
            token => {
                let Some(tag) = &mut tag else { continue };
                if matches!((tag.as_slice(), &token), ([Token::BlockStart], Token::Ident("elif"))) {
                    branches += 1;
                }
                tag.push(token);
                if tag.len() > TAG_TOKENS || branches > BRANCHES {
                    let detail = format!("more than {TAG_TOKENS} tokens in a tag, or {BRANCHES} branches");
                    return Err(refused(span.start_line.into(), detail));
                }
            }
        }
    }
    tags.extend(tag);
    let namespaces: Vec<&str> = tags.iter().filter_map(|tag| defined(tag)).collect();
    for tag in &tags {
        let body = if defined(tag).is_some() { 5 } else { 0 };
        for (i, token) in tag.iter().enumerate().skip(body) {
            let Token::Ident(name) = token else { continue };
            let is_attribute = matches!(tag.get(i.wrapping_sub(1)), Some(Token::Dot));
            let has_attribute = matches!(tag.get(i + 1), Some(Token::Dot));
            let is_name = namespaces.contains(name) && !has_attribute || *name == NAMESPACE;
            if is_name && !is_attribute {
                return Err(refused(1, format!("`{name}` may only be used for its attributes")));
            }
        }
    }
    Ok(())
}

/// The name in `{% set NAME = namespace(…`.
fn defined<'a>(tag: &[Token<'a>]) -> Option<&'a str> {
    match tag {
        [
            Token::BlockStart,
            Token::Ident("set"),
            Token::Ident(name),
            Token::Assign,
            Token::Ident(NAMESPACE),
            ..,
        ] => Some(name),
        _ => None,
    }
}

fn refused(line: usize, detail: String) -> ChatError {
    ChatError::Syntax { line, detail }
}
