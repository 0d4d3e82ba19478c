//! The layers: imports go strictly downward between crates and between modules, no file names a backend, files stay short.

use std::path::{Path, PathBuf};

/// The layer of each crate.
const CRATES: &[(&str, u8)] = &[
    ("jem_core", 0),
    ("jem_nn", 1),
    ("jem_data", 1),
    ("jem_eval", 1),
    ("jem_plot", 2),
    ("jem_mpi", 2),
    ("jem_cli", 3),
];

/// The layer of each module of jem-core. `train` sees evaluation only through observers.
const MODULES: &[(&str, u8)] = &[
    ("error", 0),
    ("math", 0),
    ("noise", 0),
    ("persist", 0),
    ("schedule", 0),
    ("energy", 1),
    ("data", 1),
    ("workers", 1),
    ("samplers", 2),
    ("inference", 2),
    ("objectives", 3),
    ("train", 4),
];

/// Within a layer, who may see whom.
const SIDEWAYS: &[(&str, &str)] = &[
    ("persist", "error"),
    ("schedule", "error"),
    ("noise", "error"),
    ("math", "error"),
    ("inference", "samplers"), // a search for answers is a chain
];

/// A source file of a crate of the workspace.
struct Source {
    /// The crate, as code names it.
    of: String,
    /// The module at the top level.
    module: String,
    path: PathBuf,
    text: String,
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

fn workspace() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![("jem_core".to_owned(), root.join("src"))];
    for entry in std::fs::read_dir(root.join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().replace('-', "_");
        folders.push((name, path.join("src")));
    }
    let mut files = Vec::new();
    for (of, src) in folders {
        let mut paths = Vec::new();
        sources(&src, &mut paths);
        paths.sort();
        for path in paths {
            let inside = path.strip_prefix(&src).unwrap();
            let module = inside.components().next().unwrap().as_os_str().to_string_lossy();
            let module = module.trim_end_matches(".rs").to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            files.push(Source { of: of.clone(), module, path, text });
        }
    }
    assert!(files.len() > 20);
    files
}

/// The part of a file before its unit tests.
fn code(text: &str) -> &str {
    text.split("\n#[cfg(test)]").next().and_then(|text| text.split("\n#[cfg(all(test").next()).unwrap_or(text)
}

/// What a line of code names after `crate::`.
fn imports(line: &str) -> impl Iterator<Item = &str> {
    let is_comment = line.trim_start().starts_with("//");
    line.split("crate::")
        .skip(usize::from(!is_comment).max(1))
        .filter(move |_| !is_comment)
        .map(|rest| rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or(""))
}

/// The crates of the workspace that a line of code names.
fn crates_named(line: &str) -> impl Iterator<Item = &'static str> {
    let is_comment = line.trim_start().starts_with("//");
    CRATES
        .iter()
        .map(|(name, _)| *name)
        .filter(move |name| !is_comment && line.contains(&format!("{name}::")))
}

fn layer(of: &[(&str, u8)], name: &str) -> Option<u8> {
    of.iter().find(|(known, _)| *known == name).map(|(_, layer)| *layer)
}

fn breaks_the_rule(of: &[(&str, u8)], from: &str, imported: &str) -> bool {
    let (Some(above), Some(below)) = (layer(of, from), layer(of, imported)) else { return false };
    from != imported && above <= below && !SIDEWAYS.contains(&(from, imported))
}

#[test]
fn imports_go_strictly_downward() {
    let mut upward = Vec::new();
    for Source { of, module, path, text } in workspace() {
        assert!(layer(CRATES, &of).is_some(), "{of} has no layer");
        let is_core = of == "jem_core";
        assert!(!is_core || module == "lib" || layer(MODULES, &module).is_some(), "{module} has no layer");
        for (number, line) in code(&text).lines().enumerate() {
            let at = || format!("{}:{}", path.display(), number + 1);
            for named in crates_named(line).filter(|named| breaks_the_rule(CRATES, &of, named)) {
                upward.push(format!("{}: {of} imports {named}", at()));
            }
            if is_core && module != "lib" {
                for named in imports(line).filter(|named| breaks_the_rule(MODULES, &module, named)) {
                    upward.push(format!("{}: {module} imports {named}", at()));
                }
            }
        }
    }
    assert!(upward.is_empty(), "{}", upward.join("\n"));
    // The rule can fail.
    assert!(breaks_the_rule(MODULES, "samplers", "objectives") && breaks_the_rule(MODULES, "energy", "data"));
    assert!(breaks_the_rule(CRATES, "jem_core", "jem_nn") && breaks_the_rule(CRATES, "jem_eval", "jem_data"));
    assert_eq!(imports("use crate::train::Trainer;").collect::<Vec<_>>(), ["train"]);
    assert_eq!(crates_named("use jem_nn::Cnn;").collect::<Vec<_>>(), ["jem_nn"]);
}

/// The module whose purpose is one backend.
const OF_A_BACKEND: &str = "kernels";

#[test]
fn no_other_module_names_a_backend() {
    let names = [
        "Device::flex",
        "Device::wgpu",
        "Device::cuda",
        "Device::libtorch",
        "burn_flex",
        "burn_wgpu",
        "burn_tch",
        "backend::",
    ];
    for Source { module, path, text, .. } in workspace() {
        if module == OF_A_BACKEND {
            continue;
        }
        for (number, line) in code(&text).lines().enumerate() {
            let found = names.iter().find(|name| line.contains(**name));
            assert!(found.is_none(), "{}:{} names {}", path.display(), number + 1, found.unwrap());
        }
    }
}

#[test]
fn every_file_is_one_page_and_says_what_it_is() {
    for Source { path, text, .. } in workspace() {
        let lines = code(&text).lines().count();
        assert!(lines <= 300, "{} has {lines} lines before its tests", path.display());
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("//! ") && first.len() > 20, "{} opens with {first:?}", path.display());
    }
}
