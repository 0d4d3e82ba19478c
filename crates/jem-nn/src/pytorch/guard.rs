//! What a pickle may be: the instructions that rebuild tensors, and no names but those of tensors.

/// Names that a pickle of tensors has. None of them does anything here but describe a tensor.
const NAMES: &[(&str, &[&str])] = &[
    ("collections", &["OrderedDict"]),
    ("torch._utils", &["_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_parameter"]),
    (
        "torch",
        &[
            "FloatStorage",
            "DoubleStorage",
            "HalfStorage",
            "BFloat16Storage",
            "LongStorage",
            "IntStorage",
            "ShortStorage",
            "CharStorage",
            "ByteStorage",
            "BoolStorage",
        ],
    ),
];

/// Walks through the instructions of a pickle, without carrying any of them out, and returns where it ends.
///
/// `Err` says what is not allowed, and at which byte. Allowed are the instructions of protocol 2, which is what
/// `torch.save` writes, less those that make objects of classes, and the names in [`NAMES`].
pub(super) fn check(pickle: &[u8]) -> Result<usize, String> {
    let mut rest = Rest { pickle, at: 0 };
    loop {
        let at = rest.at;
        match rest.byte()? {
            b'.' => return Ok(rest.at),
            // Marks, tuples, lists, dictionaries, None, true, false; memo by name of length 1 and 4; integers.
            b'('
            | b')'
            | b'}'
            | b']'
            | b't'
            | 0x85..=0x87
            | b'e'
            | b'a'
            | b's'
            | b'u'
            | b'N'
            | 0x88
            | 0x89 => {}
            // Calls of a name above, the state of an ordered dictionary, the key of a tensor's storage.
            b'R' | b'b' | b'Q' => {}
            0x80 => match rest.byte()? {
                2 => {}
                other => return Err(format!("its pickle is of protocol {other}, expected 2")),
            },
            b'q' | b'h' | b'K' => rest.skip(1)?,
            b'M' => rest.skip(2)?,
            b'r' | b'j' | b'J' => rest.skip(4)?,
            b'G' => rest.skip(8)?, // a float
            0x8a => {
                // An integer of any length.
                let length = rest.byte()?;
                rest.skip(length.into())?;
            }
            b'X' => {
                // Text.
                let length = rest.take(4)?;
                let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
                rest.skip(length as usize)?;
            }
            b'c' => {
                let (module, name) = (rest.line()?, rest.line()?);
                let known = NAMES.iter().any(|(of, names)| *of == module && names.contains(&name.as_str()));
                if !known {
                    let what = "which is not part of a tensor; nothing of it was run";
                    return Err(format!("its pickle names {module}.{name} at byte {at}, {what}"));
                }
            }
            other => {
                let what = "which no pickle of tensors has";
                return Err(format!("its pickle holds the instruction {other:#04x} at byte {at}, {what}"));
            }
        }
    }
}

/// The part of a pickle that is still to be walked through.
struct Rest<'a> {
    pickle: &'a [u8],
    at: usize,
}

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let taken = self.pickle.get(self.at..).and_then(|rest| rest.get(..count));
        let taken = taken.ok_or_else(|| format!("its pickle ends at byte {} in mid-instruction", self.at))?;
        self.at += count;
        Ok(taken)
    }

    fn skip(&mut self, count: usize) -> Result<(), String> {
        self.take(count).map(|_| ())
    }

    fn byte(&mut self) -> Result<u8, String> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// The text up to the end of the line, which is left behind. A long one is cut, for messages.
    fn line(&mut self) -> Result<String, String> {
        let rest = &self.pickle[self.at..];
        let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let line = self.take(length)?;
        self.skip(1)?;
        Ok(String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_pass_and_everything_else_is_named() {
        assert_eq!(check(b"\x80\x02}q\x00X\x01\x00\x00\x00aK\x01s."), Ok(15));
        assert_eq!(check(b"ccollections\nOrderedDict\n)R. and what follows"), Ok(28));
        for (pickle, part) in [
            (b"cposix\nsystem\nX\x04\x00\x00\x00true\x85R.".as_slice(), "names posix.system at byte 0"),
            (b"\x80\x02ctorch\nload\n.", "names torch.load at byte 2"),
            (b"ccollections.os\nOrderedDict\n.", "names collections.os.OrderedDict"),
            (b"ccollections\nOrderedDict\r\n.", "names collections.OrderedDict\r at"),
            (b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00.", "protocol 4, expected 2"),
            (b"(iposix\nsystem\n.", "instruction 0x69 at byte 1"),
            (b"X\x05\x00\x00\x00posixX\x06\x00\x00\x00system\x93.", "instruction 0x93 at byte 21"),
            (b"X\xff\xff\xff\xffshort", "ends at byte 5"),
            (b"cposix", "ends at byte 6"),
            (b"}", "ends at byte 1"),
            (b"", "ends at byte 0"),
        ] {
            let error = check(pickle).unwrap_err();
            assert!(error.contains(part), "{error:?} does not say {part:?}");
        }
    }
}
