//! `metrics.jsonl`: every record of a run, one a line, cut back to the checkpoint on resume.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::observer::{Control, Observer, View};
use super::record::Record;
use crate::error::{Error, Result};

/// Appends every record to a file as a line of JSON.
#[derive(Debug)]
pub struct JsonLines {
    path: PathBuf,
    file: BufWriter<File>,
}

impl JsonLines {
    /// A new file at `path`.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Self::resume(path, 0)
    }

    /// The file at `path` without what came at or after `iteration`, and without a last line that was cut short.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read or written.
    pub fn resume(path: impl AsRef<Path>, iteration: u64) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        let failed = |source| Error::io(&path, source);
        let mut kept = String::new();
        if iteration > 0 && path.exists() {
            for line in BufReader::new(File::open(&path).map_err(failed)?).lines() {
                let line = line.map_err(failed)?;
                let before = |record: Record| record.iteration() < iteration;
                if serde_json::from_str(&line).is_ok_and(before) {
                    kept.push_str(&line);
                    kept.push('\n');
                }
            }
        }
        std::fs::write(&path, kept).map_err(failed)?;
        let file = OpenOptions::new().append(true).open(&path).map_err(failed)?;
        Ok(Self { path, file: BufWriter::new(file) })
    }
}

impl<M, S> Observer<M, S> for JsonLines {
    fn on_record(&mut self, record: &Record, _view: &View<'_, M, S>) -> Result<Control> {
        let line = serde_json::to_string(record).map_err(std::io::Error::from);
        line.and_then(|line| writeln!(self.file, "{line}"))
            .and_then(|()| self.file.flush())
            .map_err(|source| Error::io(&self.path, source))?;
        Ok(Control::Continue)
    }
}

/// The records in a `metrics.jsonl`.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read, [`Error::Data`] naming the byte at which a line is not a record.
pub fn read_records(path: impl AsRef<Path>) -> Result<Vec<Record>> {
    let path = path.as_ref();
    let text = std::fs::read_to_string(path).map_err(|source| Error::io(path, source))?;
    let mut offset = 0;
    text.lines()
        .map(|line| {
            let start = offset;
            offset += line.len() as u64 + 1;
            serde_json::from_str(line)
                .map_err(|error| Error::data(path, start, format!("not a record: {error}")))
        })
        .collect()
}
