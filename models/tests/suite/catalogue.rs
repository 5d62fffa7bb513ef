//! The embedded catalogue is whole, and wrong ones are refused with the place.

use std::collections::{HashMap, HashSet};

use repartee_models::{Catalogue, Error, Registry, Role, Source};

/// Hashes taken from the files themselves, apart from the catalogue: `(model, file, sha256)`.
const MEASURED: &str = include_str!("measured.sha256");

fn embedded() -> Catalogue {
    Catalogue::embedded().expect("the embedded catalogue is right")
}

#[test]
fn listed_hashes_equal_the_measured_ones() {
    let catalogue = embedded();
    let mut checked = HashMap::<&str, usize>::new();
    for line in MEASURED.lines() {
        let (hash, path) = line.split_once("  ").expect("sha256sum's layout");
        let (model, file) = path.split_once('/').expect("model/file");
        let content = catalogue.model(model).unwrap().file(file).unwrap().content.expect("a size and hash");
        assert_eq!(content.sha256.to_string(), hash, "{path}");
        *checked.entry(model).or_default() += 1;
    }
    for model in catalogue.models().iter().filter(|model| !model.hub) {
        assert_eq!(
            checked.get(model.name.as_str()),
            Some(&model.files.len()),
            "every file of {} is measured",
            model.name
        );
    }
}

#[test]
fn default_set_has_every_role_and_two_ways_to_each_file() {
    let catalogue = embedded();
    let defaults = catalogue.models().iter().filter(|model| model.default).collect::<Vec<_>>();
    let roles = defaults.iter().map(|model| model.role).collect::<HashSet<_>>();
    assert_eq!(roles, HashSet::from([Role::Vad, Role::Stt, Role::Llm, Role::Tts, Role::Lexicon]));
    for file in catalogue.models().iter().filter(|model| !model.hub).flat_map(|model| &model.files) {
        assert!(file.content.is_some(), "{}", file.name);
        assert!(
            matches!(file.sources.last(), Some(Source::Packages(_))),
            "{} can be had from a package",
            file.name
        );
    }
}

#[test]
fn addresses_are_those_of_public_models_only() {
    let hosts = ["https://huggingface.co/", "https://github.com/", "https://raw.githubusercontent.com/"];
    let catalogue = embedded();
    for file in catalogue.models().iter().flat_map(|model| &model.files) {
        for source in &file.sources {
            if let Source::Url(url) = source {
                assert!(hosts.iter().any(|host| url.starts_with(host)) && !url.contains('{'), "{url}");
            }
        }
    }
}

#[test]
fn joined_files_list_their_parts_in_order() {
    let catalogue = embedded();
    let file = &catalogue.model("qwen2.5-coder-0.5b").unwrap().files[0];
    let Some(Source::Packages(parts)) = file.sources.get(1) else { panic!("packages are the second source") };
    let members = parts.iter().map(|part| part.member.as_str()).collect::<Vec<_>>();
    assert_eq!(members, (1..=6).map(|i| format!("*/data/part0{i}.bin")).collect::<Vec<_>>());
    assert!(parts.iter().all(|part| part.package.registry == Registry::Pypi));
}

#[test]
fn hub_models_are_never_default() {
    let catalogue = embedded();
    let hub = catalogue.models().iter().filter(|model| model.hub).collect::<Vec<_>>();
    assert!(hub.len() >= 15);
    assert!(
        hub.iter().all(|model| !model.default && model.files.iter().all(|file| !file.sources.is_empty()))
    );
}

/// A catalogue of one model with one file, where `model` and `file` are further lines of each.
fn one(model: &str, file: &str) -> String {
    format!(
        "schema = 1\n[[model]]\nname = \"m\"\nrole = \"llm\"\nfamily = \"llama\"\nformat = \"gguf\"\nlicence = \"MIT\"\n\
         description = \"d\"\n{model}\n[[model.file]]\n{file}\n"
    )
}

#[test]
fn wrong_catalogues_are_refused_with_the_reason() {
    let hash = "0".repeat(64);
    let good = format!("name = \"f\"\nsize = 1\nsha256 = \"{hash}\"\n");
    let url = "sources = [{ url = \"https://a/b\" }]";
    assert!(Catalogue::parse(&one(url, &good), "test").is_ok());
    let package = |fields: &str| format!("sources = [{{ registry = \"pypi\", {fields} }}]");
    let cases = [
        ("schema = 2\nmodel = []".into(), "schema 2"),
        ("schema = 1\n".into(), "lists no model"),
        (" \n".into(), "empty"),
        (one(url, &good.replace("size = 1", "size = -1")), "a number of bytes"),
        (one("", &good), "no sources"),
        (one(url, "name = \"f\""), "size and sha256"),
        (one(url, "name = \"f\"\nsize = 1"), "size and sha256"),
        (one(url, &good.replace("size = 1", "size = 0")), "outside"),
        (one(url, &good.replace("size = 1", "size = 99999999999999")), "outside"),
        (one(url, &good.replace("\"f\"", "\"../f\"")), "each part of the name"),
        (one(url, &good.replace("\"f\"", "\"a//f\"")), "each part of the name"),
        (one(url, &good.replace("\"f\"", "\"/f\"")), "each part of the name"),
        (one(url, &good.replace("\"f\"", "'a\\f'")), "each part of the name"),
        (one(url, &good.replace(&hash, "abc")), "not a sha256"),
        (one(url, &good).replace("\"m\"", "\"-m\""), "the name may have"),
        (one(&format!("default = true\nhub = true\n{url}"), &good), "neither"),
        (one("sources = [{ url = \"http://a/b\" }]", &good), "not an https address"),
        (one("sources = [{ url = \"file:///etc/passwd\" }]", &good), "not an https address"),
        (one("sources = [{ url = \"https://a/b\", name = \"x\" }]", &good), "either `url`"),
        (
            one(&package("name = \"--index-url=x\", version = \"1\", member = \"a\""), &good),
            "not a package name",
        ),
        (one(&package("name = \"x\", version = \"1 --pre\", member = \"a\""), &good), "not an exact version"),
        (one(&package("name = \"x\", version = \"1\", member = \"../a\""), &good), "not a path inside"),
        (one(&package("name = \"x\", version = \"1\""), &good), "either `url`"),
        (one(&format!("surprise = 1\n{url}"), &good), "surprise"),
        (one(url, &good).replace("\"llm\"", "\"cook\""), "cook"),
        (format!("{}{}", one(url, &good), one(url, &good).replace("schema = 1\n", "")), "listed twice"),
    ];
    for (text, reason) in cases {
        match Catalogue::parse(&text, "test") {
            Err(Error::Catalogue { origin, reason: found }) => {
                assert_eq!(origin, "test");
                assert!(found.contains(reason), "`{found}` should say `{reason}`");
            }
            other => panic!("`{reason}` was not found: {other:?}"),
        }
    }
}

#[test]
fn a_file_that_is_no_text_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.toml");
    std::fs::write(&path, b"\xff\xfe").unwrap();
    let said = Catalogue::load(&path).unwrap_err().to_string();
    assert!(said.contains("c.toml") && said.contains("UTF-8"), "{said}");
}

#[test]
fn scoped_npm_names_pass_and_only_there() {
    let file = format!("name = \"f\"\nsize = 1\nsha256 = \"{}\"\n", "0".repeat(64));
    let of = |registry: &str| {
        one(
            &format!(
                "sources = [{{ registry = \"{registry}\", name = \"@a/b\", version = \"1.0.0\", member = \"c\" }}]"
            ),
            &file,
        )
    };
    assert!(Catalogue::parse(&of("npm"), "test").is_ok());
    assert!(Catalogue::parse(&of("pypi"), "test").is_err());
}

#[test]
fn unknown_names_list_the_known_ones() {
    let catalogue = embedded();
    assert!(catalogue.model("whisper").unwrap_err().to_string().contains("whisper-base"));
    let model = catalogue.model("whisper-base").unwrap();
    assert!(model.file("model.onnx").unwrap_err().to_string().contains("model.bin"));
}

#[test]
fn what_has_no_end_is_no_catalogue() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &std::path::Path| match Catalogue::load(path) {
        Err(error @ Error::Catalogue { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(refused(folder.path()).contains("it is no file"));
    #[cfg(unix)]
    {
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        assert!(refused(&link).contains("it is no file"));
    }
    let large = folder.path().join("large");
    std::fs::write(&large, vec![b'#'; (4 << 20) + 1]).unwrap();
    assert!(refused(&large).contains("more than 4 MiB"));
}
