//! The pickle of a dictionary of tensors, as `torch.save` writes it.

/// The instructions of a pickle of protocol 2, one after the other.
#[derive(Debug, Default)]
pub(super) struct Pickle(Vec<u8>);

impl Pickle {
    /// The finished pickle, whose value is what is on the stack.
    pub fn stop(&self) -> Vec<u8> {
        [&[0x80, 2], self.0.as_slice(), b"."].concat()
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// `{}`, and a mark for its items.
    pub fn start_dict(&mut self) -> &mut Self {
        self.bytes(b"}(")
    }

    /// `OrderedDict()`, and a mark for its items.
    pub fn start_ordered_dict(&mut self) -> &mut Self {
        self.empty_ordered_dict().bytes(b"(")
    }

    /// Puts the items since the mark, key and value in turn, into the dictionary.
    pub fn end_dict(&mut self) -> &mut Self {
        self.bytes(b"u")
    }

    /// `[]`.
    pub fn empty_list(&mut self) -> &mut Self {
        self.bytes(b"]")
    }

    /// A text of less than 4 GiB.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(b"X").bytes(&(text.len() as u32).to_le_bytes()).bytes(text.as_bytes())
    }

    fn integer(&mut self, value: usize) -> &mut Self {
        match i32::try_from(value) {
            Ok(value) => self.bytes(b"J").bytes(&value.to_le_bytes()),
            Err(_) => self.bytes(&[0x8a, 8]).bytes(&(value as i64).to_le_bytes()),
        }
    }

    fn integers(&mut self, values: &[usize]) -> &mut Self {
        self.bytes(b"(");
        for value in values {
            self.integer(*value);
        }
        self.bytes(b"t")
    }

    fn name(&mut self, module: &str, name: &str) -> &mut Self {
        self.bytes(format!("c{module}\n{name}\n").as_bytes())
    }

    fn empty_ordered_dict(&mut self) -> &mut Self {
        self.name("collections", "OrderedDict").bytes(b")R")
    }

    /// An f32 tensor in row-major order, whose values are the storage `key` of the archive.
    pub fn tensor(&mut self, key: usize, shape: &[usize]) -> &mut Self {
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis];
        }
        self.name("torch._utils", "_rebuild_tensor_v2").bytes(b"((").text("storage");
        self.name("torch", "FloatStorage").text(&key.to_string()).text("cpu");
        self.integer(shape.iter().product()).bytes(b"tQ");
        self.integer(0).integers(shape).integers(&strides);
        self.bytes(&[0x89]).empty_ordered_dict().bytes(b"tR") // requires no gradient, has no hooks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pytorch::guard;

    #[test]
    fn what_is_written_passes_the_guard() {
        let mut pickle = Pickle::default();
        pickle.start_dict().text("a").tensor(0, &[2, 3]).text("b").empty_list();
        pickle.text("c").start_ordered_dict().text("d").tensor(1, &[]).end_dict().end_dict();
        let pickle = pickle.stop();
        assert_eq!(guard::check(&pickle), Ok(pickle.len()));
    }

    #[test]
    fn integers_of_any_size() {
        let of = |value: usize| {
            let mut pickle = Pickle::default();
            pickle.integer(value);
            pickle.0
        };
        assert_eq!(of(258), [b'J', 2, 1, 0, 0]);
        assert_eq!(of(1 << 40), [0x8a, 8, 0, 0, 0, 0, 0, 1, 0, 0]);
    }
}
