//! `evaluation.json`: every part with its result, kept from one start of the program to the next.

use std::path::{Path, PathBuf};

use jem_core::error::{Error, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The file's content.
#[derive(Debug, Serialize, Deserialize)]
struct Content {
    /// What the results are of: another subject, or other settings, and none of them counts.
    subject: Value,
    /// The results, by part.
    parts: Map<String, Value>,
}

/// Results, on disk after every part.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    content: Content,
}

impl Ledger {
    /// The results so far of `subject`, unless they are to be made again.
    pub fn open(path: &Path, subject: Value, again: bool) -> Self {
        let saved = std::fs::read(path).ok().and_then(|text| serde_json::from_slice::<Content>(&text).ok());
        let content = match saved {
            Some(content) if content.subject == subject && !again => content,
            _ => Content { subject, parts: Map::new() },
        };
        Self { path: path.to_path_buf(), content }
    }

    /// The result of a part: the saved one, or that of `measure`, which is then saved.
    pub fn part<T>(&mut self, name: &str, measure: impl FnOnce() -> Result<T>) -> Result<T>
    where
        T: Serialize + DeserializeOwned,
    {
        let saved = self.content.parts.get(name).cloned();
        if let Some(result) = saved.and_then(|value| serde_json::from_value(value).ok()) {
            eprintln!("{name}: done before");
            return Ok(result);
        }
        eprintln!("{name} ...");
        let started = std::time::Instant::now();
        let result = measure()?;
        eprintln!("{name}: {:.1} s", started.elapsed().as_secs_f64());
        let failed = |error: &dyn std::fmt::Display| Error::checkpoint(&self.path, error.to_string());
        let value = serde_json::to_value(&result).map_err(|error| failed(&error))?;
        self.content.parts.insert(name.to_owned(), value);
        let text = serde_json::to_vec_pretty(&self.content).map_err(|error| failed(&error))?;
        let aside = self.path.with_extension("json.partial");
        std::fs::write(&aside, text)
            .and_then(|()| std::fs::rename(&aside, &self.path))
            .map_err(|source| Error::io(&self.path, source))?;
        Ok(result)
    }
}
