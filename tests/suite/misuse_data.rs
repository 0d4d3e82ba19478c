//! Bad files, bad configurations and odd shapes: every refusal names its cause, and nothing panics.

use std::fmt::Debug;
use std::io::Write;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use flate2::{Compression, write::GzEncoder};
use jem_core::data::{
    Augmentation, BatchSource, GaussianNoise, ImageLoader, ImageSet, LastBatch, LoaderConfig, PixelRange,
    Toy, VectorLoader, VectorSet,
};
use jem_core::noise::{Noise, Stream};
use jem_core::{Error, Result};
use jem_data::{RecordFormat, cifar, idx};
use tempfile::TempDir;

/// Asserts that `result` is an error whose message holds each of `parts`.
#[track_caller]
fn refused<T: Debug>(result: Result<T>, parts: &[&str]) {
    let message = result.expect_err("this should have been refused").to_string();
    for part in parts {
        assert!(message.contains(part), "{message:?} does not say {part:?}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

/// A file with a name in a folder that lives as long as the value.
struct Temporary(TempDir);

impl Temporary {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

fn read10(bytes: impl AsRef<[u8]>) -> Result<ImageSet> {
    RecordFormat::cifar10().read(Temporary::new().file("batch.bin", bytes))
}

fn read100(bytes: impl AsRef<[u8]>) -> Result<ImageSet> {
    RecordFormat::cifar100_fine().read(Temporary::new().file("train.bin", bytes))
}

/// `count` zero bytes, but for those at the given places.
fn zeros(count: usize, but: &[(usize, u8)]) -> Vec<u8> {
    let mut bytes = vec![0; count];
    for (at, byte) in but {
        bytes[*at] = *byte;
    }
    bytes
}

#[test]
fn record_files_that_are_not_whole() {
    refused(read10([]), &["batch.bin: the file is empty", "at byte 0"]);
    refused(read10([1]), &["batch.bin: truncated: record 0 has 1 of 3073 bytes", "at byte 0"]);
    refused(read10(zeros(2 * 3073 + 5, &[])), &["truncated: record 2 has 5 of 3073 bytes", "at byte 6146"]);
    refused(read10(zeros(2 * 3074, &[])), &["truncated", "fits CIFAR-100 records of 3074 bytes"]);
    refused(read100(zeros(3073, &[])), &["train.bin: truncated", "fits CIFAR-10 records of 3073 bytes"]);
}

#[test]
fn record_files_with_labels_out_of_range() {
    let error = read10(zeros(2 * 3073, &[(3073, 10)]));
    refused(error, &["batch.bin: label 10 of record 1 is not below 10", "at byte 3073"]);
    let error = read100(zeros(3074, &[(0, 20)]));
    refused(error, &["train.bin: label 20 of record 0 is not below 20", "at byte 0"]);
    let error = read100(zeros(2 * 3074, &[(3075, 255)]));
    refused(error, &["label 255 of record 1 is not below 100", "at byte 3075"]);
    refused(read10(gzip(&zeros(3073, &[(0, 11)]))), &["label 11 of record 0", "at byte 0"]);
}

#[test]
fn gzip_files_that_are_damaged() {
    let noise: Vec<u8> = (0..30_730u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let packed = gzip(&noise);
    let error = read10(&packed[..packed.len() / 2]).unwrap_err();
    assert!(matches!(&error, Error::Data { offset, .. } if *offset > 0), "{error}"); // what could be unpacked
    refused::<()>(Err(error), &["batch.bin: the gzip data is cut short"]);
    refused(read10(&packed[..packed.len() - 4]), &["the gzip data is cut short"]);
    refused(read10(&packed[..2]), &["the gzip data is cut short", "at byte 0"]);
    let mut wrong_sum = packed.clone();
    let at = packed.len() - 6;
    wrong_sum[at] ^= 1;
    refused(read10(wrong_sum), &["batch.bin: the gzip data is damaged", "at byte 30730"]);
    refused(read10(gzip(&[])), &["the gzip file holds nothing"]);
    refused(read10(gzip(&[0; 100])), &["truncated: record 0 has 100 of 3073 bytes"]);
}

#[test]
fn folders_that_lack_something() {
    let empty = Temporary::new();
    refused(cifar::cifar10(empty.path().join("absent")), &["absent: "]);
    refused(cifar::cifar100(empty.path().join("absent")), &["absent: "]);
    refused(cifar::cifar10(empty.path()), &["no file data_batch_1.bin (or .gz) in this folder"]);
    refused(cifar::cifar100_coarse(empty.path()), &["no file train.bin"]);
    refused(idx::mnist(empty.path()), &["no file train-images-idx3-ubyte or train-images.idx3-ubyte"]);
    assert!(matches!(RecordFormat::cifar10().read(empty.path()), Err(Error::Io { .. }))); // a folder, not a file

    let partial = Temporary::new();
    for batch in 1..=4 {
        partial.file(&format!("data_batch_{batch}.bin"), zeros(3073, &[]));
    }
    refused(cifar::cifar10(partial.path()), &["no file data_batch_5.bin"]);
    partial.file("data_batch_5.bin", zeros(3073 - 1, &[]));
    refused(
        cifar::cifar10(partial.path()),
        &["data_batch_5.bin: truncated: record 0 has 3072 of 3073 bytes"],
    );
    partial.file("data_batch_5.bin", zeros(3073, &[]));
    refused(cifar::cifar10(partial.path()), &["no file test_batch.bin"]);
    partial.file("test_batch.bin", zeros(3073, &[]));
    assert_eq!(cifar::cifar10(partial.path()).unwrap().train.len(), 5);

    let hundred = Temporary::new();
    hundred.file("train.bin", zeros(3074, &[]));
    hundred.file("test.bin", zeros(3074, &[]));
    hundred.file("fine_label_names.txt", "apple\nbear\n");
    refused(cifar::cifar100(hundred.path()), &["ImageSet.class_names", "100 names, one per class"]);
}

#[test]
fn record_formats_that_make_no_sense() {
    refused(RecordFormat::new([3, 0, 32], 10), &["RecordFormat.image_shape = [3, 0, 32]"]);
    refused(RecordFormat::new([usize::MAX; 3], 10), &["RecordFormat.image_shape", "in 1..=65536"]);
    refused(RecordFormat::new([3, 32, 32], 0), &["RecordFormat.num_classes = 0"]);
    refused(RecordFormat::new([3, 32, 32], 257), &["RecordFormat.num_classes = 257", "in 1..=256"]);
}

/// An IDX file of unsigned bytes.
fn idx_file(extents: &[u32], body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, extents.len() as u8];
    bytes.extend(extents.iter().flat_map(|extent| extent.to_be_bytes()));
    bytes.extend_from_slice(body);
    bytes
}

fn read_idx(images: impl AsRef<[u8]>, labels: impl AsRef<[u8]>) -> Result<ImageSet> {
    let folder = Temporary::new();
    idx::read(folder.file("images", images), folder.file("labels", labels), 10)
}

#[test]
fn idx_files_that_are_not_what_they_claim() {
    let images = idx_file(&[2, 2, 3], &[0; 12]);
    let labels = idx_file(&[2], &[1, 9]);
    assert_eq!(read_idx(&images, gzip(&labels)).unwrap().image_shape(), [1, 2, 3]);

    refused(
        read_idx(&labels, &images),
        &["images: magic number 0x00000801, expected 0x00000803", "at byte 0"],
    );
    refused(read_idx(&images, &images), &["labels: magic number 0x00000803, expected 0x00000801"]);
    refused(read_idx(b"GIF89a, not IDX", &labels), &["images: magic number 0x47494638"]);
    refused(
        read_idx(&images[..3], &labels),
        &["images: truncated: the file ends within the IDX header", "byte 3"],
    );
    refused(read_idx(&images[..11], &labels), &["the file ends within the IDX header", "at byte 11"]);
    refused(read_idx([], &labels), &["images: the file is empty"]);
    let short = read_idx(&images[..images.len() - 1], &labels);
    refused(short, &["images: truncated", "[2, 2, 3] ask for 12 bytes, there are 11", "at byte 27"]);
    let long = read_idx(&images, [&labels[..], &[0]].concat());
    refused(long, &["labels: too long", "ask for 2 bytes, there are 3"]);
    refused(
        read_idx(&images, idx_file(&[3], &[0; 3])),
        &["labels: 3 labels for the 2 images of", "at byte 4"],
    );
    refused(read_idx(&images, idx_file(&[2], &[0, 10])), &["labels: label 10 is not below 10", "at byte 9"]);
    refused(read_idx(idx_file(&[2, 0, 3], &[]), &labels), &["images: extent 1 is 0", "at byte 8"]);
    refused(read_idx(idx_file(&[u32::MAX; 3], &[0; 9]), &labels), &["images: truncated: the extents"]);
    let packed = gzip(&images);
    refused(read_idx(&packed[..packed.len() - 9], &labels), &["images: the gzip data is cut short"]);
    refused(idx::read("no/such/images", "no/such/labels", 10), &["no/such/images: "]);
    refused(idx::read("x", "y", 0), &["idx::read.num_classes = 0"]);
}

/// n grey images of the given size whose labels are the index modulo the classes.
fn images(n: usize, shape: [usize; 3], classes: usize) -> ImageSet {
    let size: usize = shape.iter().product();
    let pixels: Vec<u8> = (0..n * size).map(|i| (i * 7 % 256) as u8).collect();
    ImageSet::new("the set", pixels, shape, (0..n).map(|i| i % classes).collect(), classes).unwrap()
}

#[test]
fn image_sets_that_do_not_add_up() {
    let new =
        |bytes: usize, shape, labels, classes| ImageSet::new("x", vec![0; bytes], shape, labels, classes);
    refused(new(7, [1, 2, 2], vec![0, 1], 2), &["ImageSet.pixels has shape [7]", "2 labels times [1, 2, 2]"]);
    refused(new(4, [1, 2, 2], vec![2], 2), &["ImageSet.labels[0] = 2", "below the number of classes, 2"]);
    refused(new(0, [1, 0, 2], vec![], 2), &["ImageSet.image_shape = [1, 0, 2]"]);
    refused(new(0, [usize::MAX, 2, 2], vec![], 2), &["ImageSet.image_shape"]);
    refused(new(0, [1, 2, 2], vec![], 0), &["ImageSet.num_classes = 0"]);
    refused(images(2, [1, 1, 1], 2).with_class_names(["one"]), &["ImageSet.class_names", "2 names"]);
}

#[test]
fn parts_that_a_set_does_not_have() {
    let (set, device) = (images(10, [1, 2, 2], 3), Device::default());
    let rng = &mut Noise::host(1).derived(Stream::DATA, 0);
    refused(set.tensor(&[0, 10], &device), &["index into the set = 10", "below 10"]);
    refused(set.bytes(&[usize::MAX]), &["index into the set"]);
    refused(set.subset(&[3, 11]), &["index into the set = 11"]);
    refused(set.tensor(&[], &device), &["a batch of the set has shape [0, 1, 2, 2]", "at least one image"]);
    refused(set.subset(&[]).unwrap().all(&device), &["a batch of the set has shape [0,"]);
    refused(set.take_per_class(4), &["count per class of the set = 4", "at most 3, as class 1 has no more"]);
    refused(set.split_per_class(4, rng), &["count per class of the set = 4"]);
    for fraction in [-0.1, 1.5, f64::NAN] {
        refused(set.split_fraction(fraction, rng), &["ImageSet.split_fraction.fraction", "in [0, 1]"]);
    }
    refused(set.classes(&[0, 3]), &["ImageSet.classes = [0, 3]", "below 3"]);
    refused(set.classes(&[1, 1]), &["ImageSet.classes = [1, 1]", "different classes"]);
    refused(set.classes(&[]), &["ImageSet.classes = []"]);
    refused(set.batches(0, &device).map(|_| ()), &["ImageSet.batches.size = 0"]);
}

#[test]
fn augmentations_that_do_not_fit() {
    let none = Augmentation::none();
    refused(none.with_padding(8).check([1, 8, 8]), &["Augmentation.padding = 8", "images, 8x8"]);
    refused(Augmentation::reference().check([3, 32, 4]), &["Augmentation.padding = 4", "images, 32x4"]);
    refused(none.with_padding(usize::MAX).check([1, 8, 8]), &["Augmentation.padding"]);
    for probability in [-0.5, 1.01, f64::NAN] {
        let flip = none.with_flip_probability(probability);
        refused(flip.check([1, 8, 8]), &["Augmentation.flip_probability", "in [0, 1]"]);
    }
    for sigma in [-0.03, f32::NAN, f32::INFINITY] {
        refused(none.with_noise(sigma).check([1, 8, 8]), &["GaussianNoise.sigma", "finite number >= 0"]);
        refused(GaussianNoise::new(sigma), &["GaussianNoise.sigma"]);
    }
    let rng = &mut Noise::host(1).derived(Stream::AUGMENTATION, 0);
    let part = Augmentation::reference().crop_and_flip(&[0u8; 65], [1, 8, 8], rng);
    refused(part, &["Augmentation: pixels has shape [65]", "a multiple of [1, 8, 8]"]);
    refused(none.crop_and_flip(&[0u8; 4], [1, 0, 8], rng), &["a multiple of [1, 0, 8]"]);
}

#[test]
fn loaders_that_cannot_make_a_batch() {
    let set = images(5, [1, 4, 4], 2);
    let new = |unlabelled: &ImageSet, labelled: &ImageSet, config: LoaderConfig| {
        ImageLoader::new(unlabelled.clone(), labelled.clone(), &config, &Device::default())
    };
    let two = LoaderConfig::new(2);
    refused(new(&set, &set, LoaderConfig::new(0)), &["LoaderConfig.unlabelled_batch = 0", "above 0"]);
    refused(new(&set, &set, two.clone().with_labelled_batch(0)), &["LoaderConfig.labelled_batch = 0"]);
    refused(
        new(&set, &set, LoaderConfig::new(6)),
        &["LoaderConfig.unlabelled_batch = 6", "at most 5", "the set"],
    );
    let few = set.subset(&[0]).unwrap().with_name("few labels");
    refused(new(&set, &few, two.clone()), &["labelled_batch = 2", "at most 1, the size of few labels"]);
    let empty = set.subset(&[]).unwrap();
    let keep = two.clone().with_last_batch(LastBatch::Keep);
    refused(new(&set, &empty, keep.clone()), &["size of the set = 0", "an empty set has no batches"]);
    refused(new(&empty, &set, keep), &["size of the set = 0"]);
    refused(new(&set, &images(5, [3, 4, 4], 2), two.clone()), &["shape [3, 4, 4]", "expected [1, 4, 4]"]);
    let unit = set.clone().with_range(PixelRange::Unit);
    refused(new(&set, &unit, two.clone()), &["range of the set = Unit", "Symmetric"]);
    let padded = two.clone().with_labelled_augmentation(Augmentation::reference());
    refused(new(&set, &set, padded), &["Augmentation.padding = 4", "4x4"]);

    let vectors = VectorSet::new("v", vec![0.0; 4], 2, vec![0, 1], 2).unwrap();
    let flips = two.with_augmentation(Augmentation::none().with_flip_probability(0.5));
    refused(
        VectorLoader::new(vectors.clone(), vectors, &flips, &Device::default()),
        &["Augmentation of vectors", "noise alone"],
    );
}

#[test]
fn saved_configurations_with_unknown_fields() {
    let parse = |text: &str| serde_json::from_str::<LoaderConfig>(text);
    assert_eq!(parse(r#"{"labelled_batch": 8}"#).unwrap(), LoaderConfig::new(64).with_labelled_batch(8));
    let message = parse(r#"{"labeled_batch": 8}"#).unwrap_err().to_string();
    assert!(message.contains("labeled_batch") && message.contains("labelled_batch"), "{message}");
    assert!(parse(r#"{"last_batch": "maybe"}"#).unwrap_err().to_string().contains("maybe"));
    assert!(parse(r#"{"unlabelled_batch": -1}"#).is_err());
}

#[test]
fn vectors_and_toys() {
    let new = |values: Vec<f32>, dimension, labels| VectorSet::new("v", values, dimension, labels, 2);
    refused(new(vec![0.0; 3], 2, vec![0, 1]), &["VectorSet.values has shape [3]", "2 labels times 2"]);
    refused(new(vec![0.0; 2], 2, vec![5]), &["VectorSet.labels[0] = 5"]);
    refused(new(vec![0.0, f32::INFINITY], 2, vec![0]), &["VectorSet.values[1] is not finite: inf"]);
    refused(Toy::Rings.sample(0, Noise::host(1).rng(Stream::DATA)), &["Toy.sample.count = 0"]);
    refused("donut".parse::<Toy>(), &["Toy = \"donut\"", "one of two_moons, rings"]);
}

#[test]
fn archives_that_cannot_be_fetched() {
    use jem_data::Archive;
    refused(Archive::cifar10().with_url("file:///x.tar.gz"), &["Archive.url = file:///x.tar.gz"]);
    refused(Archive::new("http://x/y", "123", "z"), &["Archive.md5 = 123", "32 hexadecimal digits"]);
}

/// Everything that is unusual and right: one image, one channel, two, 17x23, 100 classes, short batches.
#[test]
fn odd_shapes_work() {
    let augmentation = Augmentation::none().with_padding(4).with_flip_probability(0.5).with_noise(0.03);
    for (n, shape, classes, batch) in [
        (1, [1, 17, 23], 100, 1),
        (7, [1, 17, 23], 100, 1),
        (7, [3, 23, 17], 100, 3),
        (205, [3, 5, 5], 100, 64),
        (3, [2, 5, 40], 1, 2),
        (130, [4, 9, 5], 256, 129),
    ] {
        let set = images(n, shape, classes);
        for last in [LastBatch::Drop, LastBatch::Keep] {
            let config = LoaderConfig::new(batch).with_last_batch(last).with_augmentation(augmentation);
            let mut loader = ImageLoader::new(set.clone(), set.clone(), &config, &Device::default()).unwrap();
            let mut noise = Noise::host(1);
            let mut seen = 0;
            for iteration in 0..loader.batches_per_epoch() {
                let joint = loader.batch(iteration, &mut noise).unwrap();
                let [count, channels, height, width] = joint.unlabelled.dims();
                assert_eq!([channels, height, width], shape);
                assert_eq!(joint.label_tensor().dims(), [joint.labels.len()]);
                assert!(joint.labels.iter().all(|label| *label < classes));
                seen += count;
            }
            assert_eq!(seen, if last == LastBatch::Keep { n } else { n / batch * batch });
        }
    }
    // A 1x1 image cannot be padded, but it can be all else.
    let set = images(1, [1, 1, 1], 1);
    let config = LoaderConfig::new(1).with_augmentation(augmentation.with_padding(0));
    let mut loader = ImageLoader::new(set.clone(), set, &config, &Device::default()).unwrap();
    assert_eq!(loader.batch(u64::MAX, &mut Noise::host(1)).unwrap().labelled.dims(), [1, 1, 1, 1]);
}

#[test]
fn fewer_labels_than_a_batch_work_if_short_batches_are_kept() {
    let set = images(100, [1, 8, 8], 10);
    let labelled = set.take_per_class(1).unwrap();
    let config = LoaderConfig::new(64).with_last_batch(LastBatch::Keep);
    let mut loader = ImageLoader::new(set, labelled, &config, &Device::default()).unwrap();
    let mut noise = Noise::host(1);
    for (iteration, unlabelled) in [(0, 64), (1, 36), (2, 64)] {
        let batch = loader.batch(iteration, &mut noise).unwrap();
        assert_eq!((batch.unlabelled.dims()[0], batch.labels.len()), (unlabelled, 10));
    }
}
