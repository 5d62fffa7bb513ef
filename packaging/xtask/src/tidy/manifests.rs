//! Rules on manifests: one table of versions, one table of lints, each lint with its reason.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::Finding;

/// The findings on the manifests of the workspace at `root`.
///
/// # Errors
/// If a manifest can't be read or is no TOML.
pub(super) fn check(root: &Path) -> Result<Vec<Finding>> {
    let root_text = read(root, "Cargo.toml")?;
    let workspace = parse("Cargo.toml", &root_text)?;
    let mut findings = lint_reasons("Cargo.toml", &root_text);
    let mut used = BTreeSet::new();
    let members = get(&workspace, &["workspace", "members"]).and_then(Value::as_array);
    for member in members.into_iter().flatten().filter_map(Value::as_str) {
        let path = format!("{member}/Cargo.toml");
        let manifest = parse(&path, &read(root, &path)?)?;
        findings.extend(member_findings(&path, &manifest, &mut used));
    }
    findings.extend(unused(&workspace, &used));
    Ok(findings)
}

fn read(root: &Path, path: &str) -> Result<String> {
    fs::read_to_string(root.join(path)).with_context(|| format!("reading {path}"))
}

fn parse(path: &str, text: &str) -> Result<Table> {
    text.parse().with_context(|| format!("reading {path}"))
}

fn get<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let value = table.get(*first)?;
    if rest.is_empty() { Some(value) } else { get(value.as_table()?, rest) }
}

/// Each line of the lint tables says why.
fn lint_reasons(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_in_lints = false;
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.starts_with('[') {
            is_in_lints = line.starts_with("[workspace.lints.");
        } else if is_in_lints && line.contains('=') && !line.starts_with('#') && !line.contains(" # ") {
            findings.push(Finding::error(
                path,
                Some(number),
                "a lint without its reason: add a comment beside it",
            ));
        }
    }
    findings
}

/// A member takes versions and lints from the workspace; the names of its dependencies go into `used`.
fn member_findings(path: &str, manifest: &Table, used: &mut BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if get(manifest, &["lints", "workspace"]).and_then(Value::as_bool) != Some(true) {
        findings.push(Finding::error(path, None, "write `[lints]` with `workspace = true`"));
    }
    let platforms = get(manifest, &["target"]).and_then(Value::as_table);
    let platforms = platforms.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    for table in std::iter::once(manifest).chain(platforms) {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for (name, value) in get(table, &[kind]).and_then(Value::as_table).into_iter().flatten() {
                used.insert(name.clone());
                if value.get("workspace").and_then(Value::as_bool) != Some(true) {
                    let problem = format!(
                        "write `{name}.workspace = true`: the one table of versions is the workspace's"
                    );
                    findings.push(Finding::error(path, None, problem));
                }
            }
        }
    }
    findings
}

/// Versions that no member uses.
fn unused(workspace: &Table, used: &BTreeSet<String>) -> Vec<Finding> {
    let names = get(workspace, &["workspace", "dependencies"]).and_then(Value::as_table);
    let names = names.into_iter().flat_map(Table::keys).filter(|name| !used.contains(*name));
    names
        .map(|name| {
            Finding::error("Cargo.toml", None, format!("no member uses `{name}`: take it out of the table"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(text: &str) -> (usize, Vec<String>) {
        let mut used = BTreeSet::new();
        let found = member_findings("a/Cargo.toml", &text.parse().unwrap(), &mut used);
        (found.len(), used.into_iter().collect())
    }

    #[test]
    fn a_member_that_takes_all_from_the_workspace_is_right() {
        let text = "[lints]\nworkspace = true\n[dependencies]\na.workspace = true\nb = { workspace = true, optional = true }\n\
                    [target.'cfg(unix)'.dependencies]\nc.workspace = true\n";
        assert_eq!(member(text), (0, vec!["a".into(), "b".into(), "c".into()]));
    }

    #[test]
    fn own_versions_and_missing_lints_are_found() {
        let lints = "[lints]\nworkspace = true\n";
        for (text, count) in [
            ("[dependencies]\n", 1),
            (&format!("{lints}[dependencies]\na = \"1\"\n"), 1),
            (&format!("{lints}[dev-dependencies]\na = {{ version = \"1\" }}\n"), 1),
            (&format!("{lints}[build-dependencies]\na = {{ path = \"../a\" }}\n"), 1),
            (&format!("{lints}[target.x.dependencies]\na = \"1\"\nb = \"2\"\n"), 2),
        ] {
            assert_eq!(member(text).0, count, "{text}");
        }
    }

    #[test]
    fn a_lint_needs_its_reason() {
        let text = "[workspace.lints.rust]\na = \"warn\" # because\nb = \"deny\"\n# a line\n\n[profile.release]\nlto = false\n";
        assert_eq!(lint_reasons("Cargo.toml", text).iter().map(|f| f.line).collect::<Vec<_>>(), [Some(3)]);
    }

    #[test]
    fn a_version_that_nobody_uses_is_found() {
        let workspace = "[workspace.dependencies]\na = \"1\"\nb = \"2\"\n".parse().unwrap();
        let found = unused(&workspace, &BTreeSet::from(["b".to_owned()]));
        assert_eq!(found.len(), 1);
        assert!(found[0].problem.contains("`a`"));
    }
}
