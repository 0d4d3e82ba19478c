//! Classifiers from elsewhere: published weights in this crate's residual network for CIFAR.

use burn::tensor::Device;
use jem_core::data::PixelRange;
use jem_core::noise::Noise;
use jem_core::train::validate;
use jem_data::RecordFormat;
use jem_nn::{CifarResNet, CifarResNetConfig, Normalized, WeightLayout, Weights};

/// The names of this crate for those of most PyTorch code.
fn own_name(key: &str) -> String {
    let key = key.replace("layer", "group").replace("linear.", "class_output.");
    match key.strip_prefix("bn1.") {
        Some(rest) => format!("norm.{rest}"),
        None => key.replace(".bn", ".norm"),
    }
}

fn their_name(own: &str) -> String {
    let own = own.replace("group", "layer").replace("class_output.", "linear.");
    match own.strip_prefix("norm.") {
        Some(rest) => format!("bn1.{rest}"),
        None => own.replace(".norm", ".bn"),
    }
}

fn resnet(depth: usize, seed: u64, device: &Device) -> CifarResNet {
    CifarResNetConfig::new(10).with_depth(depth).init(&mut Noise::host(seed), device).unwrap()
}

#[test]
fn weights_in_pytorchs_names_and_layout_go_round() {
    let device = Device::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.safetensors");
    let net = resnet(14, 1, &device);
    let theirs = Weights::of(&net, WeightLayout::PyTorch).unwrap().renamed(their_name).unwrap();
    assert_eq!(theirs.tensors()["linear.weight"].shape().as_slice(), [10, 64]);
    assert!(theirs.tensors().contains_key("layer2.1.bn2.running_var"));
    theirs.write_safetensors(&path).unwrap();
    let read = || Weights::read_safetensors(&path).unwrap().renamed(own_name).unwrap();
    let loaded = read().load_into(resnet(14, 2, &device), WeightLayout::PyTorch).unwrap();
    assert_eq!(crate::support::weights(&loaded), crate::support::weights(&net));
    let error = read().load_into(resnet(8, 2, &device), WeightLayout::PyTorch).unwrap_err().to_string();
    for part in ["theirs.safetensors", "group1.1.conv1.weight is not expected", "group3.1.norm2.bias is not"]
    {
        assert!(error.contains(part), "{error} does not say {part:?}");
    }
}

/// 91.7 % is what the weights' authors measured on the 10,000 test images; `JEM_CIFAR10_TEST` is CIFAR-10's
/// binary test batch or a part of it.
#[test]
#[ignore = "wants JEM_RESNET20, weights of a ResNet-20 as safetensors, and JEM_CIFAR10_TEST, binary records"]
fn published_weights_reach_their_accuracy() {
    let variable = |name: &str| std::env::var_os(name).unwrap_or_else(|| panic!("set {name}"));
    let device = Device::default();
    let weights = Weights::read_safetensors(variable("JEM_RESNET20")).unwrap().renamed(own_name).unwrap();
    let net = weights.load_into(resnet(20, 0, &device), WeightLayout::PyTorch).unwrap();
    let set = RecordFormat::cifar10().read(variable("JEM_CIFAR10_TEST")).unwrap();
    let (mean, std) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    for range in [PixelRange::Symmetric, PixelRange::Unit] {
        let net = Normalized::new(net.clone(), range, &mean, &std).unwrap();
        let found = validate(&net, &set.clone().with_range(range), 100, &device).unwrap();
        println!("{range:?}: accuracy {:.4}, cross-entropy {:.4}", found.accuracy, found.cross_entropy);
        assert!(found.accuracy >= 0.91, "{found:?}");
    }
    // Negative control: pixels as they come.
    let raw = validate(&net, &set, 100, &device).unwrap();
    println!("not normalised: accuracy {:.4}", raw.accuracy);
    assert!(raw.accuracy < 0.91, "{raw:?}");
}
