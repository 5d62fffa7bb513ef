//! Set-up, tests and checks of the workspace.

fn main() {}
