//! The window: a view of the live conversation, and what its buttons ask for.
//!
//! Painting is apart from logic: [`view::View`] gets a snapshot and gives requests, and tests show it any conversation.
//! It is painted anew only when something changed: the conversation wakes it, a figure that runs on asks for the next
//! tenth of a second, and nothing else does.
//!
//! Before there is a conversation the window shows a [`page`]: that another program talks already, or which models are
//! not here.

mod action;
mod choices;
mod earlier;
mod header;
mod notices;
mod overlay;
mod page;
mod program;
mod settings;
mod status;
mod talk;
#[cfg(test)]
mod tests;
mod tokens;
mod transcript;
mod view;

pub(crate) use program::run;
