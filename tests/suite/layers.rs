//! The house: imports go strictly downward, no file of the library names a backend, files stay short.

use std::path::{Path, PathBuf};

/// The floor of each room. `train` sees evaluation only through observers.
const FLOORS: &[(&str, u8)] = &[
    ("error", 0),
    ("math", 0),
    ("noise", 0),
    ("persist", 0),
    ("schedule", 0),
    ("energy", 1),
    ("data", 1),
    ("viz", 1),
    ("kernels", 1),
    ("workers", 1),
    ("samplers", 2),
    ("nn", 2),
    ("inference", 2),
    ("objectives", 3),
    ("eval", 3),
    ("pytorch", 3),
    ("train", 4),
];

/// Within a floor, who may see whom.
const SIDEWAYS: &[(&str, &str)] = &[
    ("persist", "error"),
    ("schedule", "error"),
    ("noise", "error"),
    ("math", "error"),
    ("inference", "samplers"), // a search for answers is a chain
];

fn floor(room: &str) -> Option<u8> {
    FLOORS.iter().find(|(name, _)| *name == room).map(|(_, floor)| *floor)
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

fn library() -> Vec<(String, PathBuf, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    sources(&src, &mut paths);
    let mut files: Vec<_> = paths
        .into_iter()
        .map(|path| {
            let inside = path.strip_prefix(&src).unwrap();
            let room = inside.components().next().unwrap().as_os_str().to_string_lossy();
            let room = room.trim_end_matches(".rs").to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            (room, path, text)
        })
        .collect();
    files.sort();
    assert!(files.len() > 20);
    files
}

/// The part of a file before its unit tests.
fn code(text: &str) -> &str {
    text.split("\n#[cfg(test)]").next().and_then(|text| text.split("\n#[cfg(all(test").next()).unwrap_or(text)
}

/// Rooms that a line of code imports.
fn imports(line: &str) -> impl Iterator<Item = &str> {
    let is_comment = line.trim_start().starts_with("//");
    line.split("crate::")
        .skip(usize::from(!is_comment).max(1))
        .filter(move |_| !is_comment)
        .map(|rest| rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or(""))
}

fn breaks_the_rule(room: &str, imported: &str) -> bool {
    let (Some(from), Some(to)) = (floor(room), floor(imported)) else { return false };
    room != imported && from <= to && !SIDEWAYS.contains(&(room, imported))
}

#[test]
fn imports_go_strictly_downward() {
    let mut upward = Vec::new();
    for (room, path, text) in library() {
        if room == "lib" {
            continue;
        }
        assert!(floor(&room).is_some(), "{room} has no floor");
        for (number, line) in code(&text).lines().enumerate() {
            for imported in imports(line).filter(|imported| breaks_the_rule(&room, imported)) {
                upward.push(format!("{}:{}: {room} imports {imported}", path.display(), number + 1));
            }
        }
    }
    assert!(upward.is_empty(), "{}", upward.join("\n"));
    // The rule can fail.
    assert!(breaks_the_rule("samplers", "objectives") && breaks_the_rule("energy", "data"));
    assert_eq!(imports("use crate::train::Trainer;").collect::<Vec<_>>(), ["train"]);
}

/// The room whose purpose is one backend.
const OF_A_BACKEND: &str = "kernels";

#[test]
fn no_other_room_names_a_backend() {
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
    for (room, path, text) in library() {
        if room == OF_A_BACKEND {
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
    for (_, path, text) in library() {
        let lines = code(&text).lines().count();
        assert!(lines <= 300, "{} has {lines} lines before its tests", path.display());
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("//! ") && first.len() > 20, "{} opens with {first:?}", path.display());
    }
}
