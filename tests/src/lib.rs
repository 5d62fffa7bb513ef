//! Helpers shared by the tests that span the workspace.
