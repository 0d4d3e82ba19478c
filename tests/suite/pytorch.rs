//! Checkpoints of PyTorch: the reference code's is read and computes its numbers, and what is written is read
//! back bit for bit.

use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::optim::AdamConfig;
use burn::tensor::{Device, Tensor};
use jem_core::data::{ImageLoader, ImageSet, JointBatch, LoaderConfig};
use jem_core::energy::{Classifier, EnergyModel, JointEnergy};
use jem_core::math::sample_norms;
use jem_core::noise::{Noise, Stream};
use jem_core::objectives::JemConfig;
use jem_core::persist::{NamedTensors, Persist};
use jem_core::samplers::{BufferPlace, ImproperSgldConfig, ReplayBuffer, ReplayConfig};
use jem_core::train::{Trainer, TrainerConfig};
use jem_nn::pytorch;
use jem_nn::{Activation, Norm, WeightLayout, Weights, WideResNet, WideResNetConfig};

use crate::golden::{self, Golden, VALUES, relative_maximum};
use crate::support::{values, weights};

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn golden_checkpoint() -> PathBuf {
    golden::file("checkpoint.pt")
}

#[test]
fn the_reference_checkpoint_is_read_off_its_keys() {
    let checkpoint = pytorch::read(golden_checkpoint(), &Device::default()).unwrap();
    assert_eq!(checkpoint.config, WideResNetConfig::new(10, 1, 10));
    let heads = ["energy_output.bias", "energy_output.weight", "f.linear.bias", "f.linear.weight"];
    assert_eq!(checkpoint.skipped, heads);
    let buffer = checkpoint.replay_buffer.unwrap().all(&Device::default());
    assert_eq!(buffer.dims(), [100, 3, 32, 32]);
    let sum: f64 = values(buffer).into_iter().map(f64::from).sum();
    let expected = Golden::open().values("replay_buffer_sum")[0];
    assert!((sum - expected).abs() < 1e-6 * expected.abs(), "{sum} != {expected}");
}

#[test]
fn its_logits_and_scores_are_those_of_the_reference_code() {
    let golden = Golden::open();
    for (backend, device) in crate::backends::devices() {
        let joint = JointEnergy::new(pytorch::read(golden_checkpoint(), &device).unwrap().network);
        let x: Tensor<4> = golden.tensor("x", &device);
        let (energy, gradient) = joint.energy_and_grad(x.clone());
        let best: Tensor<1> = joint.probabilities(x.clone()).max_dim(1).squeeze_dim(1);
        let logits = joint.classifier().logits(x);
        for (key, found) in [
            ("logits", golden::values(logits)),
            ("score_px", golden::values(energy.neg())),
            ("score_py", golden::values(best)),
            ("score_pxgrad", golden::values(sample_norms(gradient).neg())),
        ] {
            let residual = relative_maximum(&found, &golden.values(key));
            println!("{backend}: {key}: {residual:.1e}");
            assert!(residual < VALUES, "{backend}: {key} is off by {residual:.1e}");
            // Negative control: the same numbers in another order.
            let mut turned = found.clone();
            turned.rotate_left(1);
            assert!(relative_maximum(&turned, &golden.values(key)) > 100.0 * VALUES);
        }
    }
}

/// A network whose running statistics, if it has any, are no longer those of a new one.
fn network(config: &WideResNetConfig, seed: u64) -> WideResNet {
    let mut noise = Noise::host(seed);
    let net = config.init(&mut noise, &Device::default().autodiff()).unwrap();
    let x = noise.normal([2, config.in_channels, 8, 8], Stream::DATA, &Device::default());
    net.logits(x.autodiff());
    net.valid()
}

fn configs() -> [WideResNetConfig; 4] {
    let batch = |depth, width, classes| WideResNetConfig::new(depth, width, classes).with_norm(Norm::Batch);
    [
        WideResNetConfig::new(10, 1, 10),
        WideResNetConfig::new(16, 2, 100).with_in_channels(1),
        batch(10, 1, 1),
        batch(16, 3, 7).with_in_channels(4),
    ]
}

#[test]
fn what_is_written_is_read_bit_for_bit() {
    let device = Device::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ckpt.pt");
    for (seed, config) in configs().iter().enumerate() {
        let written = network(config, seed as u64);
        let samples = Noise::host(9).normal([5, config.in_channels, 4, 6], Stream::DATA, &device);
        let buffer = (seed % 2 == 0).then(|| ReplayBuffer::new(samples, BufferPlace::Host));
        pytorch::write(&path, &written, buffer.as_ref()).unwrap();
        let read = pytorch::read(&path, &device).unwrap();
        assert_eq!(&read.config, config);
        assert_eq!(bits(&weights(&read.network)), bits(&weights(&written)));
        let saved = |buffer: &ReplayBuffer<4>| buffer.save().remove("replay_buffer").unwrap();
        assert_eq!(read.replay_buffer.as_ref().map(saved), buffer.as_ref().map(saved));

        // The same content is the same file, and nothing is left beside it.
        let first = std::fs::read(&path).unwrap();
        pytorch::write(&path, &read.network, read.replay_buffer.as_ref()).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), first);
        // Negative control: another network.
        assert_ne!(bits(&weights(&network(config, 77))), bits(&weights(&written)));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn the_networks_go_through_safetensors_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.safetensors");
    for config in configs() {
        let written = network(&config, 1);
        Weights::of(&written, WeightLayout::Burn).unwrap().write_safetensors(&path).unwrap();
        let read = Weights::read_safetensors(&path).unwrap();
        let read = read.load_into(network(&config, 2), WeightLayout::Burn).unwrap();
        assert_eq!(bits(&weights(&read)), bits(&weights(&written)));
    }
}

#[test]
fn what_cannot_be_written_leaves_the_old_file() {
    let device = Device::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ckpt.pt");
    let config = WideResNetConfig::new(10, 1, 2);
    pytorch::write(&path, &network(&config, 1), None).unwrap();
    let old = std::fs::read(&path).unwrap();
    let refused = |path: &Path, net: &WideResNet, buffer: Option<&ReplayBuffer<4>>, part: &str| {
        let error = pytorch::write(path, net, buffer).unwrap_err().to_string();
        assert!(error.contains(part), "{error} does not say {part:?}");
    };

    let silu = config.clone().with_activation(Activation::Silu).init(&mut Noise::host(0), &device).unwrap();
    refused(&path, &silu, None, "WideResNet.activation = Silu is not allowed");
    let gray = ReplayBuffer::new(Tensor::zeros([2, 1, 4, 4], &device), BufferPlace::Host);
    refused(&path, &network(&config, 2), Some(&gray), "replay_buffer has shape [2, 1, 4, 4]");
    let mut wild = network(&config, 2);
    let bias = Tensor::from_floats([f32::NAN, 0.0], &device);
    wild.class_output.bias = Some(burn::module::Param::from_tensor(bias));
    refused(&path, &wild, None, "class_output.bias is not finite: NaN");
    refused(
        &folder.path().join("absent/ckpt.pt"),
        &network(&config, 2),
        None,
        "absent/ckpt.pt: No such file",
    );
    refused(folder.path(), &network(&config, 2), None, folder.path().to_str().unwrap());

    assert_eq!(std::fs::read(&path).unwrap(), old);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_run_goes_on_from_the_reference_codes_network_and_chains() {
    let device = Device::default();
    let checkpoint = pytorch::read(golden_checkpoint(), &device.clone().autodiff()).unwrap();
    let buffer = checkpoint.replay_buffer.unwrap().save();
    let start = |capacity: usize| {
        let set = ImageSet::new("black", vec![0; 4 * 3072], [3, 32, 32], vec![0; 4], 10).unwrap();
        let loader = ImageLoader::new(set.clone(), set, &LoaderConfig::new(2), &device).unwrap();
        let sampler = ImproperSgldConfig::new().init().unwrap();
        let replay = ReplayConfig::new([3, 32, 32]).with_capacity(capacity).with_num_steps(1);
        let objective = JemConfig::new().init(replay.init(sampler).unwrap()).unwrap();
        let mut trainer: Trainer<_, JointBatch<4>, _, _> =
            Trainer::new(objective, loader, TrainerConfig::new(1));
        let network = checkpoint.network.clone();
        let mut state = trainer.start(network, AdamConfig::new().init(), Noise::host(0), &device).unwrap();
        state.objective.load(buffer.clone()).map(|()| trainer.train(state).unwrap().0)
    };
    let state = start(100).unwrap();
    // All but the two chains of the iteration are as they were.
    let of = |saved: &NamedTensors| saved["replay_buffer"].try_to_vec::<f32>().unwrap();
    let (before, after) = (of(&buffer), of(&state.objective.save()));
    let moved = before.chunks(3072).zip(after.chunks(3072)).filter(|(a, b)| a != b).count();
    assert!((1..=2).contains(&moved), "{moved} chains moved");
    assert_ne!(weights(&state.model), weights(&checkpoint.network));
    let error = start(99).err().unwrap().to_string();
    assert!(error.contains("replay_buffer") && error.contains("[99, 3, 32, 32]"), "{error}");
}

/// Where `tests/reference/pytorch_roundtrip.py` looks for files and leaves its own.
const FOLDER: &str = "JEM_PYTORCH_FOLDER";

fn exchange() -> PathBuf {
    std::env::var_os(FOLDER).expect("set JEM_PYTORCH_FOLDER to a folder").into()
}

/// Images and logits, for the other side.
fn write_numbers(path: &Path, x: Tensor<4>, logits: Tensor<2>) {
    let tensors: NamedTensors =
        [("x".to_owned(), x.into_data()), ("logits".to_owned(), logits.into_data())].into();
    Weights::new("numbers", tensors).write_safetensors(path).unwrap();
}

#[test]
#[ignore = "the first part of tests/reference/pytorch_roundtrip.py"]
fn files_for_pytorch() {
    let device = Device::default();
    for (number, config) in configs().iter().enumerate() {
        let net = network(config, number as u64);
        let x = Noise::host(3).normal([3, config.in_channels, 32, 32], Stream::DATA, &device);
        let buffer = ReplayBuffer::new(x.clone(), BufferPlace::Host);
        let file = |end: &str| exchange().join(format!("ours-{number}.{end}"));
        pytorch::write(file("pt"), &net, (number > 0).then_some(&buffer)).unwrap();
        write_numbers(&file("safetensors"), x.clone(), net.logits(x));
    }
}

#[test]
#[ignore = "the last part of tests/reference/pytorch_roundtrip.py"]
fn files_of_pytorch() {
    let device = Device::default();
    let mut count = 0;
    for entry in std::fs::read_dir(exchange()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !(name.starts_with("theirs") && name.ends_with(".pt")) {
            continue;
        }
        let checkpoint = pytorch::read(&path, &device).unwrap();
        let numbers = Weights::read_safetensors(path.with_extension("safetensors")).unwrap();
        let number = |name: &str| numbers.tensors()[name].clone();
        let logits = checkpoint.network.logits(Tensor::from_data(number("x"), &device));
        let wide = |values: Vec<f32>| values.into_iter().map(f64::from).collect::<Vec<_>>();
        let expected = wide(number("logits").iter().collect());
        let residual = relative_maximum(&wide(values(logits)), &expected);
        println!("{name}: {:?}: {residual:.1e}; skipped {}", checkpoint.config, checkpoint.skipped.len());
        assert!(residual < VALUES, "{name} is off by {residual:.1e}");
        count += 1;
    }
    assert!(count > 0, "no file theirs-*.pt");
}
