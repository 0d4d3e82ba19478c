//! The names and shapes of the reference code's network, and the configuration that can be read off them.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Norm, WideResNetConfig};
use jem_core::persist::NamedTensors;

/// Layers that the reference code makes and the joint model never uses, with their outputs. The first has ten
/// whatever the classes of the data.
pub(super) const UNUSED: [(&str, usize); 2] = [("f.linear", 10), ("energy_output", 1)];

/// One tensor of the network.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// Its name in this crate's network, in PyTorch's layout.
    pub own: String,
    /// Its key in the reference code's state dict.
    pub key: String,
    /// Its shape, as PyTorch has it.
    pub shape: Vec<usize>,
}

/// The reference code's key for a tensor of this crate's network.
pub(super) fn key_of(own: &str) -> String {
    if own.starts_with("class_output.") {
        return own.to_owned();
    }
    if let Some(rest) = own.strip_prefix("norm.") {
        return format!("f.bn1.{rest}");
    }
    let own = own.replace("group", "layer").replace(".norm", ".bn").replace(".shortcut.", ".shortcut.0.");
    format!("f.{own}")
}

/// Every tensor of the network, in the order of its layers. No network is made.
pub(super) fn entries(config: &WideResNetConfig) -> Vec<Entry> {
    let mut network = Network { entries: Vec::new(), norm: config.norm };
    network.convolution("conv1", [config.in_channels, 16], 3);
    let mut channels = 16;
    for group in 1..=3 {
        let planes = config.width * base(group);
        for block in 0..(config.depth - 4) / 6 {
            let name = |layer: &str| format!("group{group}.{block}.{layer}");
            network.norm(&name("norm1"), channels);
            network.convolution(&name("conv1"), [channels, planes], 3);
            network.norm(&name("norm2"), planes);
            network.convolution(&name("conv2"), [planes, planes], 3);
            if channels != planes || (group > 1 && block == 0) {
                network.convolution(&name("shortcut"), [channels, planes], 1);
            }
            channels = planes;
        }
    }
    network.norm("norm", channels);
    network.add("class_output.weight".to_owned(), vec![config.num_classes, channels]);
    network.add("class_output.bias".to_owned(), vec![config.num_classes]);
    network.entries
}

/// The channels of a group at width 1.
fn base(group: usize) -> usize {
    8 << group
}

struct Network {
    entries: Vec<Entry>,
    norm: Norm,
}

impl Network {
    fn add(&mut self, own: String, shape: Vec<usize>) {
        self.entries.push(Entry { key: key_of(&own), own, shape });
    }

    fn convolution(&mut self, name: &str, [inputs, outputs]: [usize; 2], kernel: usize) {
        self.add(format!("{name}.weight"), vec![outputs, inputs, kernel, kernel]);
        self.add(format!("{name}.bias"), vec![outputs]);
    }

    fn norm(&mut self, name: &str, channels: usize) {
        if self.norm == Norm::Batch {
            for part in ["weight", "bias", "running_mean", "running_var"] {
                self.add(format!("{name}.{part}"), vec![channels]);
            }
        }
    }
}

/// The configuration whose network comes closest to a state dict of the reference code.
///
/// A state dict with faults has one too, so that the faults can be listed against it: the depth is that of the
/// middle group by length, the width that of most tensors. `None` if no key is one of a block.
pub(super) fn config_of(state: &NamedTensors) -> Option<WideResNetConfig> {
    let mut blocks: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
    let mut widths: BTreeMap<usize, usize> = BTreeMap::new();
    let mut vote = |extent: Option<&usize>, base: usize| {
        if let Some(extent) = extent.filter(|extent| **extent > 0 && extent.is_multiple_of(base)) {
            *widths.entry(extent / base).or_default() += 1;
        }
    };
    for (key, data) in state {
        let Some((group, rest)) = key.strip_prefix("f.layer").and_then(|rest| rest.split_once('.')) else {
            continue;
        };
        let (Ok(group @ 1..=3), Some((block, layer))) = (group.parse(), rest.split_once('.')) else {
            continue;
        };
        blocks.entry(group).or_default().insert(block);
        if layer == "conv1.weight" || layer == "conv2.weight" {
            vote(data.shape().as_slice().first(), base(group));
        }
    }
    let shape = |key: &str| state.get(key).map(|data| data.shape().as_slice().to_vec()).unwrap_or_default();
    let head = shape("class_output.weight");
    vote(head.get(1), base(3));
    // The smallest of those with most votes.
    let width = widths.iter().rev().max_by_key(|(_, votes)| **votes).map_or(1, |(width, _)| *width);
    let mut lengths = [1, 2, 3].map(|group| blocks.get(&group).map_or(0, BTreeSet::len));
    lengths.sort_unstable();
    let length = lengths.into_iter().skip(1).find(|length| *length > 0)?;
    let classes = head.first().or(shape("class_output.bias").first()).copied().unwrap_or(10);
    let in_channels = shape("f.conv1.weight").get(1).copied().unwrap_or(3);
    let is_batch = state.keys().any(|key| key.starts_with("f.") && key.contains(".bn"));
    let config = WideResNetConfig::new(6 * length + 4, width, classes).with_in_channels(in_channels);
    Some(config.with_norm(if is_batch { Norm::Batch } else { Norm::None }))
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::{WeightLayout, Weights};
    use burn::tensor::{Device, TensorData};
    use jem_core::noise::Noise;

    fn configs() -> Vec<WideResNetConfig> {
        let batch = WideResNetConfig::new(10, 2, 3).with_norm(Norm::Batch);
        vec![
            WideResNetConfig::new(10, 1, 10),
            WideResNetConfig::new(16, 1, 2).with_in_channels(1),
            batch.clone(),
            batch.with_in_channels(4),
        ]
    }

    fn state(config: &WideResNetConfig) -> NamedTensors {
        let zeros = |shape: &[usize]| TensorData::zeros::<f32, _>(shape.to_vec());
        entries(config).into_iter().map(|entry| (entry.key, zeros(&entry.shape))).collect()
    }

    #[test]
    fn the_entries_are_the_tensors_of_the_network() {
        for config in configs() {
            let network = config.init(&mut Noise::host(0), &Device::flex()).unwrap();
            let weights = Weights::of(&network, WeightLayout::PyTorch).unwrap();
            let expected: Vec<_> = weights
                .tensors()
                .iter()
                .map(|(name, data)| (name.clone(), data.shape().as_slice().to_vec()))
                .collect();
            let mut found: Vec<_> = entries(&config).into_iter().map(|e| (e.own, e.shape)).collect();
            found.sort();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn keys_are_those_of_the_reference_code() {
        for (own, key) in [
            ("conv1.weight", "f.conv1.weight"),
            ("group1.0.norm1.running_mean", "f.layer1.0.bn1.running_mean"),
            ("group2.3.conv2.bias", "f.layer2.3.conv2.bias"),
            ("group3.0.shortcut.weight", "f.layer3.0.shortcut.0.weight"),
            ("norm.weight", "f.bn1.weight"),
            ("class_output.bias", "class_output.bias"),
        ] {
            assert_eq!(key_of(own), key);
        }
    }

    #[test]
    fn the_configuration_is_read_off_even_where_tensors_are_wrong_or_missing() {
        for config in configs() {
            let mut state = state(&config);
            assert_eq!(config_of(&state), Some(config.clone()));
            // One wrong shape or a missing tensor does not turn the rest of the network into faults.
            for group in 1..=3 {
                state.remove(&format!("f.layer{group}.0.conv2.weight"));
            }
            state.remove("class_output.weight");
            state.insert("f.layer1.0.conv1.weight".to_owned(), TensorData::zeros::<f32, _>([48, 16, 3, 3]));
            state.insert("f.layer1.9999999999.extra".to_owned(), TensorData::zeros::<f32, _>([1]));
            assert_eq!(config_of(&state), Some(config.clone()));
        }
        assert_eq!(config_of(&NamedTensors::new()), None);
    }
}
