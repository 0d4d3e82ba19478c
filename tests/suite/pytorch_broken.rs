//! Checkpoints that are broken, hostile or unusual: each is refused in words or read, and nothing in one is run.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::path::PathBuf;
use std::sync::OnceLock;

use burn::tensor::Device;
use jem_core::noise::{Noise, Stream};
use jem_core::{Error, Result};
use jem_nn::pytorch;
use jem_nn::pytorch::ReferenceCheckpoint;
use jem_nn::{Norm, WideResNetConfig};
use rand::RngExt;
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

/// A tensor as PyTorch stores it.
#[derive(Clone)]
struct Stored {
    storage: &'static str,
    shape: Vec<usize>,
    strides: Vec<usize>,
    bytes: Vec<u8>,
    /// How many bytes one value has.
    width: usize,
}

impl Stored {
    fn new(storage: &'static str, shape: &[usize], width: usize, bytes: Vec<u8>) -> Self {
        let strides = (0..shape.len()).map(|axis| shape[axis + 1..].iter().product()).collect();
        Self { storage, shape: shape.to_vec(), strides, bytes, width }
    }

    fn floats(shape: &[usize], values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self::new("FloatStorage", shape, 4, bytes)
    }

    fn zeros(shape: &[usize]) -> Self {
        Self::floats(shape, &vec![0.0; shape.iter().product()])
    }
}

type State = BTreeMap<String, Stored>;

fn text(text: &str) -> Vec<u8> {
    [b"X".as_slice(), &(text.len() as u32).to_le_bytes(), text.as_bytes()].concat()
}

fn integers(values: &[usize]) -> Vec<u8> {
    let each = |value: &usize| [b"\x8a\x08".as_slice(), &(*value as u64).to_le_bytes()].concat();
    [b"(".to_vec(), values.iter().flat_map(each).collect(), b"t".to_vec()].concat()
}

fn tensor(number: usize, stored: &Stored) -> Vec<u8> {
    let count = (stored.bytes.len() / stored.width) as u32;
    [
        b"ctorch._utils\n_rebuild_tensor_v2\n((".to_vec(),
        text("storage"),
        format!("ctorch\n{}\n", stored.storage).into_bytes(),
        text(&number.to_string()),
        text("cpu"),
        [b"J".as_slice(), &count.to_le_bytes(), b"tQK\0"].concat(),
        integers(&stored.shape),
        integers(&stored.strides),
        b"\x89ccollections\nOrderedDict\n)RtR".to_vec(),
    ]
    .concat()
}

/// The items of a dictionary, ready to be closed by `u`.
fn items(state: &State) -> Vec<u8> {
    let item =
        |(number, (key, stored)): (usize, (&String, &Stored))| [text(key), tensor(number, stored)].concat();
    state.iter().enumerate().flat_map(item).collect()
}

fn pickle(value: &[u8]) -> Vec<u8> {
    [b"\x80\x02", value, b"."].concat()
}

/// `{key: tensor, ..}`.
fn bare(state: &State) -> Vec<u8> {
    pickle(&[b"}(".to_vec(), items(state), b"u".to_vec()].concat())
}

/// `{"model_state_dict": {key: tensor, ..}}`, and what else belongs to the outer dictionary.
fn nested(state: &State, beside: &[u8]) -> Vec<u8> {
    let inner = [b"ccollections\nOrderedDict\n)R(".to_vec(), items(state), b"u".to_vec()].concat();
    pickle(&[b"}(".to_vec(), text("model_state_dict"), inner, beside.to_vec(), b"u".to_vec()].concat())
}

fn archive(entries: &[(String, &[u8], CompressionMethod)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content, method) in entries {
        zip.start_file(name, SimpleFileOptions::default().compression_method(*method)).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A file with this pickle and the values of these tensors.
fn file(pickle: &[u8], state: &State) -> Vec<u8> {
    let stored = |name: &str| format!("ckpt/{name}");
    let mut entries = vec![(stored("data.pkl"), pickle, CompressionMethod::Stored)];
    for (number, tensor) in state.values().enumerate() {
        entries.push((stored(&format!("data/{number}")), &tensor.bytes, CompressionMethod::Stored));
    }
    entries.push((stored("version"), b"3\n", CompressionMethod::Stored));
    archive(&entries)
}

fn config() -> WideResNetConfig {
    WideResNetConfig::new(10, 1, 3)
}

/// The state dict of a small network, with the reference code's keys.
fn state() -> State {
    static STATE: OnceLock<State> = OnceLock::new();
    let make = || {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ckpt.pt");
        let network = config().init(&mut Noise::host(0), &Device::default()).unwrap();
        pytorch::write(&path, &network, None).unwrap();
        let weights = pytorch::read_weights(&path).unwrap();
        let stored = weights.tensors().iter().map(|(name, data)| {
            let values: Vec<f32> = data.iter().collect();
            let name = name.strip_prefix("model_state_dict.").unwrap();
            (name.to_owned(), Stored::floats(data.shape().as_slice(), &values))
        });
        stored.collect()
    };
    STATE.get_or_init(make).clone()
}

fn read(content: &[u8]) -> Result<ReferenceCheckpoint> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.pt");
    std::fs::write(&path, content).unwrap();
    pytorch::read(&path, &Device::default())
}

#[track_caller]
fn refused(content: &[u8], parts: &[&str]) {
    let error = read(content).expect_err("this should have been refused");
    assert!(matches!(error, Error::Checkpoint { .. }), "{error:?}");
    let message = error.to_string();
    assert!(message.contains("hostile.pt: "), "{message}");
    for part in parts {
        assert!(message.contains(part), "{message} does not say {part:?}");
    }
}

/// A file with a state dict that was changed a little.
fn changed(change: impl FnOnce(&mut State)) -> Vec<u8> {
    let mut state = state();
    change(&mut state);
    file(&nested(&state, b""), &state)
}

#[test]
fn crafted_files_are_read_with_and_without_the_outer_dictionary() {
    let state = state();
    let nested_file = read(&file(&nested(&state, &[text("replay_buffer"), b"]".to_vec()].concat()), &state));
    let bare_file = read(&file(&bare(&state), &state));
    for checkpoint in [nested_file.unwrap(), bare_file.unwrap()] {
        assert_eq!((checkpoint.config, checkpoint.skipped.len()), (config(), 4));
        assert!(checkpoint.replay_buffer.is_none());
    }
    // What lies beside the two entries is left alone, and named if it has tensors.
    let optimizer = [text("optimizer"), b"}(".to_vec(), text("step"), tensor(0, &state["class_output.bias"])];
    let beside = [optimizer.concat(), b"u".to_vec(), text("epoch"), b"K\x07".to_vec()].concat();
    let checkpoint = read(&file(&nested(&state, &beside), &state)).unwrap();
    assert!(checkpoint.skipped.contains(&"optimizer.step".to_owned()), "{:?}", checkpoint.skipped);
}

#[test]
fn paths_that_are_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let error = pytorch::read(folder.path().join("absent.pt"), &Device::default()).unwrap_err();
    assert!(error.to_string().contains("absent.pt: No such file"), "{error}");
    let error = pytorch::read(folder.path(), &Device::default()).unwrap_err();
    assert!(matches!(error, Error::Io { .. }) && error.to_string().contains("directory"), "{error}");
}

#[test]
fn files_that_are_no_checkpoints() {
    refused(b"", &["is empty"]);
    refused(b"weights", &["neither a zip archive"]);
    refused(b"\x80\x02}q\x00.", &["neither a zip archive"]);
    refused(b"\x08\0\0\0\0\0\0\0{}      ", &["neither a zip archive"]); // safetensors
    refused(b"PK\x05\x06", &["not a whole zip archive"]);
    let stored = |name: &str, content| (name.to_owned(), content, CompressionMethod::Stored);
    refused(&archive(&[stored("ckpt/version", b"3".as_slice())]), &["holds 0 entries data.pkl"]);
    let two = [stored("a/data.pkl", b"}.".as_slice()), stored("b/data.pkl", b"}.".as_slice())];
    refused(&archive(&two), &["holds 2 entries data.pkl"]);
    refused(&archive(&[stored("ckpt/data.pkl", b"".as_slice())]), &["its pickle ends at byte 0"]);
    refused(
        &archive(&[stored("ckpt/data.pkl", b"K\x01.".as_slice())]),
        &["Expected a dictionary at the root"],
    );
    let big = [stored("ckpt/data.pkl", b"}.".as_slice()), stored("ckpt/byteorder", b"big")];
    refused(&archive(&big), &["ig-endian"]);
    let other: State = [("fc.weight".to_owned(), Stored::zeros(&[2, 2]))].into();
    refused(&file(&bare(&other), &other), &["no network of the JEM reference code", "fc.weight"]);
    refused(&file(&bare(&State::new()), &State::new()), &["no network of the JEM reference code"]);
}

#[test]
fn cut_short_anywhere() {
    let whole = changed(|_| {});
    assert!(read(&whole).is_ok());
    let length = whole.len();
    for at in [length - 1, length - 22, length - 100, length * 9 / 10, length / 2, length / 10, 1000, 64, 4] {
        refused(&whole[..at], &["not a whole zip archive"]);
    }
    refused(&whole[..3], &["neither a zip archive"]);
    // The pickle alone, cut within each of its last instructions.
    let state = state();
    let pickle = nested(&state, b"");
    for cut in 1..200 {
        let error = read(&file(&pickle[..pickle.len() - cut], &state)).unwrap_err().to_string();
        assert!(error.contains("its pickle ends at byte"), "{error}");
    }
}

/// A file as PyTorch before 1.6 wrote it.
fn legacy(pickle: &[u8], state: &State) -> Vec<u8> {
    let magic = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.".to_vec();
    let system = [b"\x80\x02}(".to_vec(), text("little_endian"), b"\x88u.".to_vec()].concat();
    let keys: Vec<u8> = (0..state.len()).flat_map(|number| text(&number.to_string())).collect();
    let keys = [b"\x80\x02](".to_vec(), keys, b"e.".to_vec()].concat();
    let value = |stored: &Stored| {
        let count = (stored.bytes.len() / stored.width) as u64;
        [count.to_le_bytes().as_slice(), &stored.bytes].concat()
    };
    let values: Vec<u8> = state.values().flat_map(value).collect();
    [magic, system, pickle.to_vec(), keys, values].concat()
}

#[test]
fn files_of_pytorch_before_1_6() {
    let state = state();
    for pickle in [bare(&state), nested(&state, &[text("replay_buffer"), b"]".to_vec()].concat())] {
        let whole = legacy(&pickle, &state);
        let (old, new) = (read(&whole).unwrap(), read(&file(&pickle, &state)).unwrap());
        assert_eq!(old.config, new.config);
        assert_eq!(crate::support::weights(&old.network), crate::support::weights(&new.network));
        refused(&whole[..whole.len() - 1], &["beyond the end of the file"]);
        refused(&whole[..whole.len() / 2], &["beyond the end of the file"]);
        for at in [20, 40, 500, pickle.len() - 100] {
            refused(&whole[..at], &["its pickle ends at byte"]);
        }
        let mut as_tar = whole.clone();
        as_tar[257..262].copy_from_slice(b"ustar");
        refused(&as_tar, &["not a file of torch.save"]);
    }
    let call = b"cposix\nsystem\n(X\x04\x00\x00\x00truetR".to_vec();
    refused(
        &legacy(&nested(&state, &[text("x"), call].concat()), &state),
        &["its pickle names posix.system"],
    );
}

#[test]
fn names_of_other_code_are_refused_and_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let witness = folder.path().join("run");
    let command = text(&format!("touch {}", witness.display()));
    let state = state();
    let call = |module: &str, name: &str| {
        [format!("c{module}\n{name}\n").into_bytes(), command.clone(), b"\x85R".to_vec()].concat()
    };
    // As the whole file, and beside a network that is whole.
    refused(&file(&pickle(&call("posix", "system")), &state), &["names posix.system at byte 2", "nothing"]);
    for (module, name) in [("posix", "system"), ("builtins", "eval"), ("torch", "load"), ("os", "system")] {
        let beside = [text("notes"), call(module, name)].concat();
        refused(&file(&nested(&state, &beside), &state), &[&format!("names {module}.{name} at byte")]);
    }
    // Put on the stack and taken off again, named in the ways of other protocols, or made without a call.
    for hidden in [
        b"cposix\nsystem\n0".to_vec(),
        [text("posix"), text("system"), b"\x93".to_vec()].concat(),
        b"(iposix\nsystem\n".to_vec(),
        b"\x82\x01".to_vec(),
        b"ccollections\nOrderedDict\n)\x81".to_vec(),
    ] {
        refused(&file(&nested(&state, &[text("notes"), hidden].concat()), &state), &["its pickle"]);
    }
    assert!(!witness.exists());
}

#[test]
fn every_fault_of_the_state_dict_is_listed_at_once() {
    refused(
        &changed(|state| _ = state.remove("f.layer2.0.conv1.bias")),
        &["WideResNet-10-1 without norms for 3 channels and 3 classes: f.layer2.0.conv1.bias is missing"],
    );
    refused(
        &changed(|state| _ = state.insert("f.extra.weight".to_owned(), Stored::zeros(&[1]))),
        &["f.extra.weight is not expected"],
    );
    refused(
        &changed(|state| _ = state.insert("f.conv1.bias".to_owned(), Stored::zeros(&[17]))),
        &["f.conv1.bias has shape [17], expected [16]"],
    );
    refused(
        &changed(|state| {
            state.remove("class_output.weight");
            state.remove("f.layer1.0.conv1.weight");
            state.insert("f.layer1.0.conv2.weight".to_owned(), Stored::zeros(&[48, 48, 3, 3]));
            state.insert("f.layer3.0.conv2.bias".to_owned(), Stored::zeros(&[1, 64]));
            state.insert("module.f.conv1.bias".to_owned(), Stored::zeros(&[16]));
            state.insert("f.conv1.bias".to_owned(), Stored::floats(&[16], &[f32::INFINITY; 16]));
        }),
        &[
            "WideResNet-10-1 without norms for 3 channels and 3 classes",
            "class_output.weight is missing",
            "f.layer1.0.conv1.weight is missing",
            "f.layer1.0.conv2.weight has shape [48, 48, 3, 3], expected [16, 16, 3, 3]",
            "f.layer3.0.conv2.bias has shape [1, 64], expected [64]",
            "module.f.conv1.bias is not expected",
            "f.conv1.bias is not finite: inf at element 0",
        ],
    );
    // A norm that is not batch norm has no running statistics.
    refused(
        &changed(|state| {
            for part in ["weight", "bias"] {
                state.insert(format!("f.bn1.{part}"), Stored::zeros(&[64]));
            }
        }),
        &["with batch norm", "f.bn1.running_mean is missing", "f.layer1.0.bn1.weight is missing"],
    );
    refused(
        &changed(|state| {
            state.insert("class_output.weight".to_owned(), Stored::zeros(&[0, 64]));
            state.insert("class_output.bias".to_owned(), Stored::zeros(&[0]));
        }),
        &["num_classes = 0 is not allowed"],
    );
}

#[test]
fn replay_buffers_that_are_none() {
    let with = |buffer: Stored| {
        let mut state = state();
        state.insert("replay_buffer".to_owned(), buffer);
        file(&bare(&state), &state)
    };
    let good = read(&with(Stored::zeros(&[2, 3, 4, 5]))).unwrap();
    assert_eq!(good.replay_buffer.unwrap().capacity(), 2);
    for shape in [vec![2, 3, 4], vec![2, 1, 4, 4], vec![0, 3, 4, 4], vec![]] {
        let part = format!("replay_buffer has shape {shape:?}, expected [n, 3, height, width]");
        refused(&with(Stored::zeros(&shape)), &[&part]);
    }
    refused(
        &with(Stored::floats(&[1, 3, 1, 1], &[0.0, f32::NAN, 0.0])),
        &["replay_buffer is not finite: NaN"],
    );
}

#[test]
fn other_float_types_become_f32_and_integers_do_not() {
    let of = |storage: &'static str, width: usize, one: &[u8]| {
        changed(|state| {
            let bytes = one.repeat(16);
            state.insert("f.conv1.bias".to_owned(), Stored::new(storage, &[16], width, bytes));
        })
    };
    // 1.5 in each type.
    for content in [
        of("HalfStorage", 2, &[0x00, 0x3e]),
        of("BFloat16Storage", 2, &[0xc0, 0x3f]),
        of("DoubleStorage", 8, &1.5f64.to_le_bytes()),
    ] {
        let bias = read(&content).unwrap().network.conv1.bias.unwrap().val().into_data();
        assert_eq!(bias.try_to_vec::<f32>().unwrap(), [1.5; 16]);
    }
    refused(
        &of("LongStorage", 8, &1i64.to_le_bytes()),
        &["f.conv1.bias is of type I64, expected a float type"],
    );
    refused(&of("DoubleStorage", 8, &1e300f64.to_le_bytes()), &["f.conv1.bias is not finite: inf"]);
    refused(&of("ComplexFloatStorage", 8, &[0; 8]), &["names torch.ComplexFloatStorage"]);
}

#[test]
fn files_that_declare_more_than_they_hold() {
    // A view that repeats one value 4 G times; a storage that was packed; one that is not there; one too short.
    let mut wide = Stored::zeros(&[1]);
    (wide.shape, wide.strides) = (vec![1 << 16, 1 << 14], vec![0, 0]);
    refused(&changed(|state| _ = state.insert("f.x".to_owned(), wide)), &["declares", "bytes of tensors"]);
    let mut endless = Stored::zeros(&[1]);
    (endless.shape, endless.strides) = (vec![1 << 40, 1 << 40], vec![0, 0]);
    refused(&changed(|state| _ = state.insert("f.x".to_owned(), endless)), &["overflow"]);

    let state = state();
    let pickle = nested(&state, b"");
    let entry = |name: &str, content, method| (format!("ckpt/{name}"), content, method);
    let rest = |method: CompressionMethod| -> Vec<_> {
        let stored = state.values().enumerate();
        stored.map(|(number, t)| entry(&format!("data/{number}"), t.bytes.as_slice(), method)).collect()
    };
    let whole = |first, rest: Vec<_>| archive(&[vec![first], rest].concat());
    let stored = CompressionMethod::Stored;
    assert!(read(&whole(entry("data.pkl", &pickle, stored), rest(stored))).is_ok());
    let packed = CompressionMethod::Deflated;
    refused(&whole(entry("data.pkl", &pickle, packed), rest(stored)), &["data.pkl is compressed"]);
    let marks = vec![b'('; 17 << 20];
    refused(&whole(entry("data.pkl", &marks, stored), vec![]), &["data.pkl declares 17825792"]);
    let mut zeros = state.clone();
    zeros.values_mut().for_each(|tensor| tensor.bytes.fill(0));
    let all_packed: Vec<_> = zeros
        .values()
        .enumerate()
        .map(|(number, tensor)| entry(&format!("data/{number}"), tensor.bytes.as_slice(), packed))
        .collect();
    refused(&whole(entry("data.pkl", &pickle, stored), all_packed), &["declares", "bytes of tensors"]);
    refused(&whole(entry("data.pkl", &pickle, stored), rest(stored)[1..].to_vec()), &["data/0", "not found"]);
    let mut short = rest(stored);
    short[0].1 = &short[0].1[..4];
    refused(&whole(entry("data.pkl", &pickle, stored), short), &["class_output.bias", "requires 3 elements"]);

    // A memo that doubles: 2^60 tuples, if one believed it.
    let bomb = [b"}q\0".to_vec(), b"h\0h\0\x86q\0".repeat(60)].concat();
    let beside = [text("notes"), bomb].concat();
    refused(&file(&nested(&state, &beside), &state), &["memo bomb"]);
    let deep = [text("notes"), b"]".to_vec(), b"\x85".repeat(100_000)].concat();
    refused(&file(&nested(&state, &deep), &state), &["nesting"]);
}

#[test]
fn changed_bytes_are_noticed() {
    let whole = changed(|_| {});
    // In the values of a tensor, which begin after the archive's first entry.
    let state = state();
    let values = &state["f.layer3.0.conv2.weight"].bytes;
    let at = whole.windows(64).position(|window| window == &values[..64]).unwrap();
    let mut flipped = whole.clone();
    flipped[at + 10] ^= 1;
    refused(&flipped, &["f.layer3.0.conv2.weight", "checksum"]);
}

/// Whatever a few bytes are changed to, there is a network or an error, and no panic.
#[test]
fn no_change_of_bytes_is_a_panic() {
    let mut rng = Noise::host(5).derived(Stream::new("bytes"), 0);
    let state = state();
    let original = nested(&state, b"");
    let whole = file(&original, &state);
    let (mut read_well, mut refused) = (0, 0);
    for round in 0..400 {
        let content = if round % 2 == 0 {
            let mut pickle = original.clone();
            for _ in 0..rng.random_range(1..4) {
                let at = rng.random_range(0..pickle.len());
                pickle[at] = rng.random();
            }
            file(&pickle, &state)
        } else {
            // Within the structure of the archive, which is at its end.
            let mut content = whole.clone();
            let at = rng.random_range(content.len() - 2500..content.len());
            content[at] = rng.random();
            content
        };
        match read(&content) {
            Ok(_) => read_well += 1,
            Err(Error::Checkpoint { .. }) => refused += 1,
            Err(error) => panic!("{error:?}"),
        }
    }
    println!("{read_well} read, {refused} refused");
    assert!(refused > 100, "{refused} of 400 were refused");
}

#[test]
fn batch_counters_of_pytorch_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ckpt.pt");
    let config = config().with_norm(Norm::Batch);
    pytorch::write(&path, &config.init(&mut Noise::host(0), &Device::default()).unwrap(), None).unwrap();
    let weights = pytorch::read_weights(&path).unwrap();
    let mut state = State::new();
    for (name, data) in weights.tensors() {
        let values: Vec<f32> = data.iter().collect();
        let name = name.strip_prefix("model_state_dict.").unwrap();
        state.insert(name.to_owned(), Stored::floats(data.shape().as_slice(), &values));
    }
    let norms: Vec<String> =
        state.keys().filter_map(|key| key.strip_suffix("running_var")).map(str::to_owned).collect();
    for norm in &norms {
        let counter = Stored::new("LongStorage", &[], 8, 300i64.to_le_bytes().to_vec());
        state.insert(format!("{norm}num_batches_tracked"), counter);
    }
    let checkpoint = read(&file(&nested(&state, b""), &state)).unwrap();
    assert_eq!(checkpoint.config, config);
    assert_eq!((norms.len(), checkpoint.skipped.len()), (7, 7 + 4));
}

/// Keeps the helpers honest: a path is what the errors name.
#[test]
fn weights_know_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("ckpt.pt");
    std::fs::write(&path, changed(|_| {})).unwrap();
    assert_eq!(pytorch::read_weights(&path).unwrap().source(), path);
}
