//! Unpacking a `.tar.gz` so that nothing lands outside its folder, and the folder appears only when whole.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path};

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use jem_core::error::{Error, Result};

/// Unpacks the folder `folder` at the top of `archive` to `into/folder`, which must not exist.
pub(super) fn unpack(archive: &Path, folder: &str, into: &Path) -> Result<()> {
    let temporary = tempfile::Builder::new().prefix(".unpacking-").tempdir_in(into);
    let temporary = temporary.map_err(|e| Error::io(into, e))?;
    let file = File::open(archive).map_err(|e| Error::io(archive, e))?;
    let mut tar = Archive::new(MultiGzDecoder::new(file));
    let mut offset = 0;
    let damaged = |offset, e: std::io::Error| Error::data(archive, offset, format!("cannot unpack: {e}"));
    for entry in tar.entries().map_err(|e| damaged(0, e))? {
        let mut entry = entry.map_err(|e| damaged(offset, e))?;
        offset = entry.raw_header_position();
        let path = entry.path().map_err(|e| damaged(offset, e))?.into_owned();
        let inside = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !inside {
            let reason = format!("the entry {} would leave its folder", path.display());
            return Err(Error::data(archive, offset, reason));
        }
        let target = temporary.path().join(&path);
        match entry.header().entry_type() {
            EntryType::Directory => fs::create_dir_all(&target).map_err(|e| Error::io(&target, e))?,
            EntryType::Regular | EntryType::Continuous => {
                write(&mut entry, &target, |e| damaged(offset, e))?;
            }
            EntryType::XGlobalHeader => {}
            other => {
                let reason = format!("the entry {} is no file or folder ({other:?})", path.display());
                return Err(Error::data(archive, offset, reason));
            }
        }
    }
    let unpacked = temporary.path().join(folder);
    if !unpacked.is_dir() {
        return Err(Error::data(archive, offset, format!("there is no folder {folder} in this archive")));
    }
    let target = into.join(folder);
    fs::rename(&unpacked, &target).map_err(|e| Error::io(&target, e))
}

/// Writes an entry to a file, without its permissions and times.
fn write(
    entry: &mut Entry<impl Read>,
    target: &Path,
    damaged: impl Fn(std::io::Error) -> Error,
) -> Result<()> {
    let refused = |e| Error::io(target, e);
    fs::create_dir_all(target.parent().unwrap_or(target)).map_err(refused)?;
    let mut file = File::create(target).map_err(refused)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match entry.read(&mut buffer).map_err(&damaged)? {
            0 => return Ok(()),
            count => std::io::Write::write_all(&mut file, &buffer[..count]).map_err(refused)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A packed archive whose entries have these paths and types, each of three bytes; paths go in unchecked.
    fn packed(entries: &[(&str, EntryType)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, kind) in entries {
            let mut header = tar::Header::new_gnu();
            header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(*kind);
            header.set_size(if *kind == EntryType::Regular { 3 } else { 0 });
            header.set_cksum();
            let body: &[u8] = if *kind == EntryType::Regular { b"abc" } else { b"" };
            builder.append(&header, body).unwrap();
        }
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(&builder.into_inner().unwrap()).unwrap();
        packer.finish().unwrap()
    }

    /// The message that `bytes` are refused with, after a look at what is left behind.
    fn refusal(bytes: &[u8]) -> String {
        let outer = tempfile::tempdir().unwrap();
        let into = outer.path().join("into");
        fs::create_dir(&into).unwrap();
        let archive = into.join("x.tar.gz");
        fs::write(&archive, bytes).unwrap();
        let error = unpack(&archive, "set", &into).unwrap_err().to_string();
        let count = |path: &Path| fs::read_dir(path).unwrap().count();
        assert_eq!((count(outer.path()), count(&into)), (1, 1), "something was left behind");
        assert!(error.contains("x.tar.gz: "), "{error}");
        error
    }

    #[test]
    fn a_sound_archive_is_unpacked() {
        let into = tempfile::tempdir().unwrap();
        let archive = into.path().join("x.tar.gz");
        let entries = [
            ("set/", EntryType::Directory),
            ("./set/a", EntryType::Regular),
            ("set/b/c", EntryType::Regular),
        ];
        fs::write(&archive, packed(&entries)).unwrap();
        unpack(&archive, "set", into.path()).unwrap();
        assert_eq!(fs::read(into.path().join("set/b/c")).unwrap(), b"abc");
        assert_eq!(fs::read_dir(into.path()).unwrap().count(), 2);
    }

    #[test]
    fn paths_and_links_that_leave_the_folder_are_refused() {
        let regular = EntryType::Regular;
        assert!(refusal(&packed(&[("set/../../evil", regular)])).contains("would leave its folder"));
        assert!(refusal(&packed(&[("/evil", regular)])).contains("the entry /evil would leave"));
        let link = packed(&[("set/a", regular), ("set/link", EntryType::Symlink)]);
        assert!(refusal(&link).contains("set/link is no file or folder (Symlink) (at byte 1024)"));
    }

    #[test]
    fn damaged_archives_name_the_place() {
        let whole = packed(&[("set/a", EntryType::Regular), ("set/b", EntryType::Regular)]);
        assert!(refusal(&whole[..whole.len() / 2]).contains("cannot unpack"));
        assert!(refusal(b"no archive at all").contains("cannot unpack"));
        assert!(
            refusal(&packed(&[("other/a", EntryType::Regular)])).contains("no folder set in this archive")
        );
    }
}
