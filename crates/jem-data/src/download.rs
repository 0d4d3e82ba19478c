//! Fetching the official archives: resumable, checked by MD5, unpacked only when whole.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use md5::{Digest, Md5};
use ureq::http::{HeaderMap, StatusCode, header};
use ureq::{Agent, Body};

use super::cifar::{CIFAR10_FOLDER, CIFAR100_FOLDER};
use super::unpack::unpack;
use jem_core::error::{Error, Result, ensure};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// A `.tar.gz` on a server, its MD5 sum, and the folder that it holds.
///
/// ```no_run
/// use jem_data::{Archive, cifar};
/// let folder = Archive::cifar10().fetch("data", |done, total| eprintln!("{done} of {total:?} bytes"))?;
/// let split = cifar::cifar10(folder)?;
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// The sum guards against damage in transit, not against an attacker: MD5 is what the authors publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    url: String,
    md5: String,
    folder: String,
}

impl Archive {
    /// CIFAR-10 in its binary version: 170 MB, the folder `cifar-10-batches-bin`.
    pub fn cifar10() -> Self {
        Self {
            url: "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz".to_owned(),
            md5: "c32a1d4ab5d03f1284b67883e8d87530".to_owned(),
            folder: CIFAR10_FOLDER.to_owned(),
        }
    }

    /// CIFAR-100 in its binary version: 169 MB, the folder `cifar-100-binary`.
    pub fn cifar100() -> Self {
        Self {
            url: "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz".to_owned(),
            md5: "03b5dce01913d631647c71ecec9e9cb8".to_owned(),
            folder: CIFAR100_FOLDER.to_owned(),
        }
    }

    /// Another archive: its address, its MD5 sum in hexadecimal, and the one folder at its top.
    ///
    /// # Errors
    /// [`Error::Config`] unless the address is `http(s)` and ends in a file name, the sum has 32 hexadecimal
    /// digits, and the folder is a plain name.
    pub fn new(url: impl Into<String>, md5: impl Into<String>, folder: impl Into<String>) -> Result<Self> {
        let (url, md5, folder) = (url.into(), md5.into().to_lowercase(), folder.into());
        let hexadecimal = md5.len() == 32 && md5.bytes().all(|digit| digit.is_ascii_hexdigit());
        ensure(hexadecimal, "Archive.md5", &md5, "32 hexadecimal digits")?;
        ensure(is_plain_name(&folder), "Archive.folder", &folder, "the name of a folder, without a path")?;
        Self { url: String::new(), md5, folder }.with_url(url)
    }

    /// The same archive from another server.
    ///
    /// # Errors
    /// [`Error::Config`] unless the address is `http(s)` and ends in a file name.
    pub fn with_url(mut self, url: impl Into<String>) -> Result<Self> {
        self.url = url.into();
        let scheme = self.url.starts_with("http://") || self.url.starts_with("https://");
        let allowed = "http(s)://server/../file.tar.gz";
        ensure(scheme && is_plain_name(self.file_name()), "Archive.url", &self.url, allowed)?;
        Ok(self)
    }

    /// Where the archive comes from.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The data, in a folder of its own below `into`: fetched and unpacked unless it is there already.
    ///
    /// `progress` is told the bytes that are there and, if the server says so, the bytes that there will be.
    /// A transfer that ends early leaves a `.part` file, from which the next call goes on. The folder appears
    /// only when it is complete; the archive stays beside it. Proxies are taken from the environment as usual,
    /// except for this machine's own addresses.
    ///
    /// # Errors
    /// [`Error::Download`] if the server refuses, the connection breaks or the sum is wrong (a damaged part is
    /// deleted); [`Error::Data`] if an archive that was there before has another sum, or the archive is
    /// damaged, lacks its folder, or holds a path or a link that would leave it; [`Error::Io`] if files cannot
    /// be written.
    pub fn fetch(
        &self,
        into: impl AsRef<Path>,
        mut progress: impl FnMut(u64, Option<u64>),
    ) -> Result<PathBuf> {
        let into = into.as_ref();
        let target = into.join(&self.folder);
        if target.is_dir() {
            return Ok(target);
        }
        fs::create_dir_all(into).map_err(|e| Error::io(into, e))?;
        let archive = into.join(self.file_name());
        if archive.exists() {
            let found = md5_of(&archive)?;
            if found != self.md5 {
                let reason =
                    format!("MD5 is {found}, expected {}: delete the file to fetch it anew", self.md5);
                return Err(Error::data(&archive, 0, reason));
            }
        } else {
            self.transfer(&archive, &mut progress)?;
        }
        unpack(&archive, &self.folder, into)?;
        Ok(target)
    }

    /// Fetches the archive, going on from a part if there is one.
    fn transfer(&self, archive: &Path, progress: &mut dyn FnMut(u64, Option<u64>)) -> Result<()> {
        let part = archive.with_file_name(format!("{}.part", self.file_name()));
        if !part.exists() || md5_of(&part)? != self.md5 {
            self.download(&part, progress)?;
            let found = md5_of(&part)?;
            if found != self.md5 {
                fs::remove_file(&part).map_err(|e| Error::io(&part, e))?;
                let reason =
                    format!("MD5 is {found}, expected {}; the part is deleted, so try again", self.md5);
                return Err(self.failure(reason));
            }
        }
        fs::rename(&part, archive).map_err(|e| Error::io(archive, e))
    }

    fn download(&self, part: &Path, progress: &mut dyn FnMut(u64, Option<u64>)) -> Result<()> {
        let agent = self.agent();
        let mut offset = part.metadata().map_or(0, |metadata| metadata.len());
        let mut response = self.request(&agent, offset)?;
        if offset > 0 && response.status() != StatusCode::PARTIAL_CONTENT {
            // The server ignores ranges, or has nothing beyond the part: start again.
            let restart = response.status() == StatusCode::RANGE_NOT_SATISFIABLE;
            offset = 0;
            if restart {
                response = self.request(&agent, 0)?;
            }
        }
        let status = response.status();
        if !status.is_success() {
            return Err(self.failure(format!("the server answered {status}")));
        }
        if status == StatusCode::PARTIAL_CONTENT && range_start(response.headers()) != Some(offset) {
            return Err(self.failure("the server sent another range than asked for"));
        }
        let length = response.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        let total = length.and_then(|length| length.parse().ok()).map(|length: u64| offset + length);
        self.save(response.into_body(), part, offset, total, progress)
    }

    /// Writes a body to `part`, after the first `offset` bytes of it.
    fn save(
        &self,
        body: Body,
        part: &Path,
        offset: u64,
        total: Option<u64>,
        progress: &mut dyn FnMut(u64, Option<u64>),
    ) -> Result<()> {
        let options = if offset > 0 { OpenOptions::new().append(true).clone() } else { rewrite() };
        let mut file = options.open(part).map_err(|e| Error::io(part, e))?;
        let mut reader = body.into_with_config().limit(u64::MAX).reader();
        let mut buffer = vec![0; 1 << 16];
        let mut done = offset;
        progress(done, total);
        loop {
            let of = total.map_or(String::new(), |total| format!(" of {total}"));
            let cut = |why: String| self.failure(format!("{why} after {done}{of} bytes; try again to go on"));
            let count = reader.read(&mut buffer).map_err(|e| cut(format!("the connection broke ({e})")))?;
            if count == 0 {
                let whole = total.is_none_or(|total| done == total);
                return if whole { Ok(()) } else { Err(cut("the connection ended".to_owned())) };
            }
            file.write_all(&buffer[..count]).map_err(|e| Error::io(part, e))?;
            done += count as u64;
            progress(done, total);
        }
    }

    fn request(&self, agent: &Agent, offset: u64) -> Result<ureq::http::Response<Body>> {
        let mut request = agent.get(&self.url);
        if offset > 0 {
            request = request.header(header::RANGE, format!("bytes={offset}-"));
        }
        request.call().map_err(|error| self.failure(error.to_string()))
    }

    fn agent(&self) -> Agent {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .accept_encoding("identity")
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_per_read(Some(READ_TIMEOUT));
        if is_local(&self.url) {
            config = config.proxy(None);
        }
        config.build().into()
    }

    fn file_name(&self) -> &str {
        self.url.rsplit('/').next().unwrap_or_default()
    }

    fn failure(&self, reason: impl Into<String>) -> Error {
        Error::Download { url: self.url.clone(), reason: reason.into() }
    }
}

fn rewrite() -> OpenOptions {
    OpenOptions::new().write(true).create(true).truncate(true).clone()
}

/// The first byte of `Content-Range: bytes 100-199/200`.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    let range = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}

/// Whether an address is on this machine, where no proxy leads.
fn is_local(url: &str) -> bool {
    let host = url.split("://").nth(1).unwrap_or_default();
    ["127.", "localhost:", "localhost/", "[::1]"].iter().any(|local| host.starts_with(local))
}

fn is_plain_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\\', '?', '#', ':'])
}

fn md5_of(path: &Path) -> Result<String> {
    let mut hash = Md5::new();
    let mut file = File::open(path).map_err(|e| Error::io(path, e))?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(|e| Error::io(path, e))? {
            0 => break,
            count => hash.update(&buffer[..count]),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::{TcpListener, TcpStream};
    use std::thread::JoinHandle;

    /// What the server does with one request.
    #[derive(Clone, Copy)]
    enum Answer {
        Whole,
        Range,
        IgnoreRange,
        WrongRange,
        CutAfter(usize),
        NotFound,
    }

    /// Answers one request after the other on a port of its own; gives back the `Range` lines.
    fn serve(file: Vec<u8>, answers: Vec<Answer>) -> (String, JoinHandle<Vec<Option<usize>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mirror/set.tar.gz", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            answers.into_iter().map(|answer| respond(accept(&listener), &file, answer)).collect()
        });
        (url, server)
    }

    /// The next connection, which must come within ten seconds.
    fn accept(listener: &TcpListener) -> TcpStream {
        listener.set_nonblocking(true).unwrap();
        for _ in 0..1_000 {
            if let Ok((stream, _)) = listener.accept() {
                stream.set_nonblocking(false).unwrap();
                return stream;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("no request came");
    }

    fn respond(mut stream: TcpStream, file: &[u8], answer: Answer) -> Option<usize> {
        let mut range = None;
        for line in BufReader::new(stream.try_clone().unwrap()).lines() {
            let line = line.unwrap().to_lowercase();
            if let Some(from) = line.strip_prefix("range: bytes=") {
                range = Some(from.trim_end_matches('-').parse().unwrap());
            } else if line.is_empty() {
                break;
            }
        }
        let from = match answer {
            Answer::Range => range.unwrap_or(0),
            Answer::WrongRange => range.unwrap_or(0) + 1,
            _ => 0,
        };
        let status = match answer {
            Answer::NotFound => "404 Not Found",
            Answer::Range if from >= file.len() => "416 Range Not Satisfiable",
            Answer::Range | Answer::WrongRange if range.is_some() => "206 Partial Content",
            _ => "200 OK",
        };
        let body = match status {
            "404 Not Found" | "416 Range Not Satisfiable" => &[][..],
            _ => &file[from..],
        };
        let last = file.len() - 1;
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nContent-Range: bytes {from}-{last}/{}\r\nConnection: close\r\n\r\n",
            body.len(),
            file.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let sent = match answer {
            Answer::CutAfter(count) => &body[..count],
            _ => body,
        };
        stream.write_all(sent).unwrap();
        range
    }

    /// An archive with one file of 10,000 bytes that do not compress.
    fn archive() -> Vec<u8> {
        let mut state = 1u32;
        let body: Vec<u8> = (0..10_000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        let packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut builder = tar::Builder::new(packer);
        let mut entry = tar::Header::new_gnu();
        entry.set_size(body.len() as u64);
        entry.set_mode(0o644);
        builder.append_data(&mut entry, "set/test.bin", body.as_slice()).unwrap();
        builder.into_inner().unwrap().finish().unwrap()
    }

    fn sum(bytes: &[u8]) -> String {
        Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Fetches from a server with the given answers into a folder that may hold a part.
    fn fetch(
        folder: &Path,
        md5: &str,
        answers: &[Answer],
    ) -> (Result<PathBuf>, Vec<Option<usize>>, Vec<u64>) {
        let (url, server) = serve(archive(), answers.to_vec());
        let mut seen = Vec::new();
        let result = Archive::new(url, md5, "set").unwrap().fetch(folder, |done, _| seen.push(done));
        (result, server.join().unwrap(), seen)
    }

    fn assert_complete(folder: &Path) {
        assert_eq!(fs::metadata(folder.join("set/test.bin")).unwrap().len(), 10_000);
        assert!(folder.join("set.tar.gz").exists() && !folder.join("set.tar.gz.part").exists());
        assert_eq!(fs::read_dir(folder).unwrap().count(), 2); // nothing temporary is left
    }

    #[test]
    fn a_whole_transfer_is_unpacked_and_not_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let md5 = sum(&archive());
        let (result, ranges, seen) = fetch(folder.path(), &md5, &[Answer::Whole]);
        assert_eq!(result.unwrap(), folder.path().join("set"));
        assert_eq!((ranges, seen.last()), (vec![None], Some(&(archive().len() as u64))));
        assert_complete(folder.path());
        assert!(fetch(folder.path(), &md5, &[]).0.is_ok()); // without a request
        fs::remove_dir_all(folder.path().join("set")).unwrap();
        assert!(fetch(folder.path(), &md5, &[]).0.is_ok()); // from the archive
        assert_complete(folder.path());
    }

    #[test]
    fn a_cut_connection_is_reported_and_resumed() {
        for second in [Answer::Range, Answer::IgnoreRange] {
            let folder = tempfile::tempdir().unwrap();
            let md5 = sum(&archive());
            let (result, ..) = fetch(folder.path(), &md5, &[Answer::CutAfter(4_000)]);
            let error = result.unwrap_err();
            assert!(error.is_recoverable() && error.to_string().contains("after 4000 of "), "{error}");
            assert!(!folder.path().join("set").exists());
            let (result, ranges, seen) = fetch(folder.path(), &md5, &[second]);
            result.unwrap();
            assert_eq!(ranges, [Some(4_000)]);
            assert_eq!(seen[0], if matches!(second, Answer::Range) { 4_000 } else { 0 });
            assert_complete(folder.path());
        }
    }

    #[test]
    fn a_part_that_is_complete_or_too_long_is_dealt_with() {
        let folder = tempfile::tempdir().unwrap();
        let (part, md5) = (folder.path().join("set.tar.gz.part"), sum(&archive()));
        fs::write(&part, archive()).unwrap();
        fetch(folder.path(), &md5, &[]).0.unwrap();
        assert_complete(folder.path());

        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("set.tar.gz.part"), [7; 20_000]).unwrap();
        let (result, ranges, _) = fetch(folder.path(), &md5, &[Answer::Range, Answer::Whole]);
        result.unwrap();
        assert_eq!(ranges, [Some(20_000), None]);
        assert_complete(folder.path());
    }

    #[test]
    fn a_wrong_sum_deletes_the_part_and_names_both() {
        let folder = tempfile::tempdir().unwrap();
        let (wrong, right) = ("0".repeat(32), sum(&archive()));
        let error = fetch(folder.path(), &wrong, &[Answer::Whole]).0.unwrap_err().to_string();
        assert!(error.contains(&wrong) && error.contains(&right) && error.contains("set.tar.gz"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

        fs::write(folder.path().join("set.tar.gz"), "a file of one's own").unwrap();
        let error = fetch(folder.path(), &right, &[]).0.unwrap_err().to_string();
        assert!(error.contains("set.tar.gz: MD5 is") && error.contains("delete the file"), "{error}");
        assert!(folder.path().join("set.tar.gz").exists());
    }

    #[test]
    fn refusals_say_what_the_server_said() {
        let folder = tempfile::tempdir().unwrap();
        let md5 = sum(&archive());
        let error = fetch(folder.path(), &md5, &[Answer::NotFound]).0.unwrap_err().to_string();
        assert!(error.contains("127.0.0.1") && error.contains("404 Not Found"), "{error}");
        fs::write(folder.path().join("set.tar.gz.part"), [7; 10]).unwrap();
        let error = fetch(folder.path(), &md5, &[Answer::WrongRange]).0.unwrap_err().to_string();
        assert!(error.contains("another range"), "{error}");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap(); // closed again
        let nobody = Archive::new(format!("http://{port}/x.tar.gz"), md5, "x").unwrap();
        assert!(matches!(nobody.fetch(folder.path(), |_, _| ()), Err(Error::Download { .. })));
    }

    #[test]
    fn addresses_sums_and_folders_are_checked() {
        let md5 = "0".repeat(32);
        let refused =
            |url: &str, md5: &str, folder: &str| Archive::new(url, md5, folder).unwrap_err().to_string();
        assert!(refused("ftp://a/b.tar.gz", &md5, "x").contains("Archive.url"));
        assert!(refused("https://a/", &md5, "x").contains("Archive.url"));
        assert!(refused("https://a/b", "12", "x").contains("32 hexadecimal"));
        assert!(refused("https://a/b", &md5, "../x").contains("Archive.folder"));
        assert!(Archive::cifar100().with_url("https://mirror/cifar-100-binary.tar.gz").is_ok());
        assert!(is_local("http://127.0.0.1:80/x") && !is_local("https://example.org/127.x"));
    }
}
