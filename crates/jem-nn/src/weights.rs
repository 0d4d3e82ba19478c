//! The weights of any module by name: out of a file, renamed, checked, and into a network.

use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::store::burn_pack::Tensor as Packed;
use burn::store::{BurnToPyTorchAdapter, ModuleAdapter, ModuleSnapshot, PyTorchToBurnAdapter, bridge};
use burn::tensor::{DType, TensorData};

use jem_core::error::{Error, Result};
use jem_core::persist::NamedTensors;
use jem_core::persist::files::{from_safetensors, replace, to_safetensors};

/// Whose names and layouts a set of weights has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightLayout {
    /// Burn's: the weight of a linear layer is `[inputs, outputs]`, a norm has `gamma` and `beta`.
    Burn,
    /// PyTorch's: the weight of a linear layer is `[outputs, inputs]`, a norm has `weight` and `bias`.
    PyTorch,
}

impl WeightLayout {
    /// The tensors of a module in this layout, not read from the device yet.
    fn collect(self, module: &impl Module) -> Vec<Packed> {
        let adapter = (self == Self::PyTorch).then(|| Box::new(BurnToPyTorchAdapter) as _);
        module.collect(None, adapter, self == Self::PyTorch)
    }

    fn to_burn(self) -> Option<Box<dyn ModuleAdapter>> {
        (self == Self::PyTorch).then(|| Box::new(PyTorchToBurnAdapter) as _)
    }
}

/// Named weights, and where they came from.
///
/// The names are a module's field names joined by dots. Weights of another program get there by
/// [`renamed`](Self::renamed); [`load_into`](Self::load_into) then wants every tensor of the module, of its
/// shape, finite, and no other.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::Classifier;
/// use jem_nn::{CnnConfig, WeightLayout, Weights};
/// use jem_core::noise::Noise;
///
/// let device = Device::default();
/// let net = |seed| CnnConfig::new(vec![4], 10).init(&mut Noise::host(seed), &device);
/// let (trained, fresh) = (net(1)?, net(2)?);
///
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("cnn.safetensors");
/// Weights::of(&trained, WeightLayout::Burn)?.write_safetensors(&path)?;
/// let loaded = Weights::read_safetensors(&path)?.load_into(fresh, WeightLayout::Burn)?;
///
/// let x = Tensor::<4>::ones([1, 3, 8, 8], &device);
/// assert_eq!(loaded.logits(x.clone()).into_data(), trained.logits(x).into_data());
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Weights {
    source: PathBuf,
    tensors: NamedTensors,
}

impl Weights {
    /// Weights by name. `source` is what errors name.
    pub fn new(source: impl Into<PathBuf>, tensors: NamedTensors) -> Self {
        Self { source: source.into(), tensors }
    }

    /// The weights of `module`, running statistics included, as f32.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if a tensor cannot be read from its device or is not of a float type.
    pub fn of(module: &impl Module, layout: WeightLayout) -> Result<Self> {
        let source = PathBuf::from("(in memory)");
        let refuse = |name: &str, reason: String| Error::checkpoint(&source, format!("{name}: {reason}"));
        // Burn keeps the newest running statistics of a norm aside; a copy in evaluation mode has them.
        let mut tensors = NamedTensors::new();
        for tensor in layout.collect(&module.valid()) {
            let name = tensor.name.clone();
            let data = bridge::into_data(tensor).map_err(|error| refuse(&name, error.to_string()))?;
            let data = to_f32(data).map_err(|reason| refuse(&name, reason))?;
            tensors.insert(name, data);
        }
        Ok(Self { source, tensors })
    }

    /// The tensors of a safetensors file.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read, [`Error::Checkpoint`] if it is not such a file.
    pub fn read_safetensors(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let content = std::fs::read(path).map_err(|source| Error::io(path, source))?;
        let tensors = from_safetensors(&content)
            .map_err(|reason| Error::checkpoint(path, format!("is not a safetensors file: {reason}")))?;
        Ok(Self::new(path, tensors))
    }

    /// Writes a safetensors file, in one step: what was there before stays until the new file is whole.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written, [`Error::Checkpoint`] if a tensor is not f32.
    pub fn write_safetensors(&self, path: impl AsRef<Path>) -> Result<()> {
        use std::io::Write;
        let path = path.as_ref();
        let content = to_safetensors(&self.tensors).map_err(|reason| Error::checkpoint(path, reason))?;
        replace(path, |file| file.write_all(&content).map_err(|source| Error::io(path, source)))
    }

    /// The tensors, in the order of their names.
    pub fn tensors(&self) -> &NamedTensors {
        &self.tensors
    }

    /// Where the weights came from.
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// The tensors whose name `keep` accepts.
    pub fn retain(mut self, mut keep: impl FnMut(&str) -> bool) -> Self {
        self.tensors.retain(|name, _| keep(name));
        self
    }

    /// The same tensors under other names.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if two tensors get one name.
    pub fn renamed(self, mut rename: impl FnMut(&str) -> String) -> Result<Self> {
        let mut tensors = NamedTensors::new();
        for (name, data) in self.tensors {
            let new = rename(&name);
            if tensors.insert(new.clone(), data).is_some() {
                return Err(Error::checkpoint(&self.source, format!("{name} and another become {new}")));
            }
        }
        Ok(Self { source: self.source, tensors })
    }

    /// `module` with these weights in place of its own. Floats of another width become f32. The counters of
    /// batches that PyTorch keeps beside running statistics (`num_batches_tracked`) have no place in Burn and
    /// are left out.
    ///
    /// Running statistics are shared between clones of a module in Burn, so a clone that was kept gets those of
    /// the file too.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] that lists every tensor which is missing, which the module does not have, whose
    /// shape or type is another, or which is not finite. The module is lost then, and nothing was put into it.
    pub fn load_into<M: Module>(mut self, mut module: M, layout: WeightLayout) -> Result<M> {
        if layout == WeightLayout::PyTorch {
            self.tensors.retain(|name, _| !is_batch_counter(name));
        }
        let refuse = |reason: String| Error::checkpoint(&self.source, reason);
        let _ = module.valid(); // takes in the running statistics that Burn keeps aside, or they would come back later
        let expected: Vec<_> = layout
            .collect(&module)
            .into_iter()
            .map(|tensor| (tensor.name.clone(), tensor.shape.as_slice().to_vec()))
            .collect();
        let faults = faults(&self.tensors, &expected);
        if !faults.is_empty() {
            return Err(refuse(format!("does not fit the module: {}", faults.join("; "))));
        }
        let mut packed = Vec::new();
        for (name, data) in self.tensors {
            let data = to_f32(data).map_err(|reason| refuse(format!("{name}: {reason}")))?;
            packed.push(bridge::from_data(data, name, None));
        }
        let result = module.apply(packed, None, layout.to_burn(), layout == WeightLayout::PyTorch);
        if !(result.errors.is_empty() && result.missing.is_empty() && result.unused.is_empty()) {
            return Err(refuse(format!("does not fit the module: {result}")));
        }
        Ok(module)
    }
}

/// Whether PyTorch counts batches under this name.
pub(crate) fn is_batch_counter(name: &str) -> bool {
    name.rsplit('.').next() == Some("num_batches_tracked")
}

/// A tensor of any float type as f32.
pub(crate) fn to_f32(data: TensorData) -> Result<TensorData, String> {
    if !data.dtype().is_float() {
        return Err(format!("is of type {:?}, expected a float type", data.dtype()));
    }
    data.try_cast(DType::F32).map_err(|error| error.to_string())
}

/// Everything that keeps `found` from being the tensors in `expected`, in words: what is missing, what is not
/// expected, and what has another shape, no float type or a value that is not finite as f32.
pub(crate) fn faults(found: &NamedTensors, expected: &[(String, Vec<usize>)]) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, shape) in expected {
        match found.get(name) {
            None => faults.push(format!("{name} is missing")),
            Some(data) => faults.extend(fault(name, data, shape)),
        }
    }
    let names: std::collections::BTreeSet<_> = expected.iter().map(|(name, _)| name).collect();
    let surplus = found.keys().filter(|name| !names.contains(name));
    faults.extend(surplus.map(|name| format!("{name} is not expected")));
    faults
}

fn fault(name: &str, data: &TensorData, shape: &[usize]) -> Option<String> {
    let found = data.shape().as_slice();
    if found != shape {
        return Some(format!("{name} has shape {found:?}, expected {shape:?}"));
    }
    if !data.dtype().is_float() {
        return Some(format!("{name} is of type {:?}, expected a float type", data.dtype()));
    }
    let (at, value) = data.iter::<f32>().enumerate().find(|(_, value)| !value.is_finite())?;
    Some(format!("{name} is not finite: {value} at element {at}"))
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::{CnnConfig, Norm, WideResNetConfig};
    use burn::tensor::{Device, Tensor};
    use jem_core::noise::Noise;

    fn net(norm: Norm, seed: u64, device: &Device) -> crate::WideResNet {
        let config = WideResNetConfig::new(10, 1, 3).with_norm(norm);
        config.init(&mut Noise::host(seed), device).unwrap()
    }

    fn bits(weights: &Weights) -> Vec<(String, Vec<u32>)> {
        let bits = |data: &TensorData| data.iter::<f32>().map(f32::to_bits).collect();
        weights.tensors.iter().map(|(name, data)| (name.clone(), bits(data))).collect()
    }

    #[test]
    fn both_layouts_go_round_exactly() {
        let device = Device::flex();
        for norm in [Norm::None, Norm::Batch] {
            for layout in [WeightLayout::Burn, WeightLayout::PyTorch] {
                let weights = Weights::of(&net(norm, 1, &device), layout).unwrap();
                let loaded = weights.clone().load_into(net(norm, 2, &device), layout).unwrap();
                assert_eq!(bits(&Weights::of(&loaded, layout).unwrap()), bits(&weights));
                assert_ne!(bits(&Weights::of(&net(norm, 2, &device), layout).unwrap()), bits(&weights));
                let head = weights.tensors["class_output.weight"].shape().as_slice().to_vec();
                assert_eq!(head, if layout == WeightLayout::Burn { [64, 3] } else { [3, 64] });
            }
        }
    }

    #[test]
    fn the_newest_running_statistics_are_saved_and_stale_ones_do_not_come_back() {
        let device = Device::flex().autodiff();
        let trained = net(Norm::Batch, 1, &device);
        let x = Tensor::<4>::random([4, 3, 8, 8], burn::tensor::Distribution::Default, &device);
        jem_core::energy::Classifier::logits(&trained, x.clone()); // moves the statistics
        let weights = Weights::of(&trained, WeightLayout::Burn).unwrap();
        let variance: Vec<f32> = weights.tensors["norm.running_var"].iter().collect();
        assert!(variance.iter().all(|value| *value != 1.0), "{variance:?}");

        let other = net(Norm::Batch, 2, &device);
        jem_core::energy::Classifier::logits(&other, x);
        let loaded = weights.clone().load_into(other, WeightLayout::Burn).unwrap();
        assert_eq!(bits(&Weights::of(&loaded, WeightLayout::Burn).unwrap()), bits(&weights));
    }

    #[test]
    fn every_fault_is_listed_at_once() {
        let device = Device::flex();
        let cnn = |classes| CnnConfig::new(vec![2], classes).init(&mut Noise::host(0), &device).unwrap();
        let weights = Weights::of(&cnn(3), WeightLayout::PyTorch).unwrap();
        let mut broken = weights.clone().renamed(|name| name.replace("convs.0.bias", "extra")).unwrap();
        broken.source = "net.pt".into();
        let head = broken.tensors.get_mut("class_output.bias").unwrap();
        *head = TensorData::new(vec![0.0, f32::NAN, 1.0], [3]);
        let error = broken.load_into(cnn(4), WeightLayout::PyTorch).unwrap_err().to_string();
        for part in [
            "net.pt",
            "convs.0.bias is missing",
            "extra is not expected",
            "class_output.weight has shape [3, 2], expected [4, 2]",
            "class_output.bias has shape [3], expected [4]",
        ] {
            assert!(error.contains(part), "{error} does not say {part:?}");
        }

        let mut odd = weights.clone();
        odd.tensors.insert("class_output.bias".into(), TensorData::new(vec![0.0, f32::NAN, 1.0], [3]));
        odd.tensors.insert("convs.0.bias".into(), TensorData::new(vec![1i64, 2], [2]));
        let error = odd.load_into(cnn(3), WeightLayout::PyTorch).unwrap_err().to_string();
        assert!(error.contains("class_output.bias is not finite: NaN at element 1"), "{error}");
        assert!(error.contains("convs.0.bias is of type I64, expected a float type"), "{error}");
        let error = weights.renamed(|_| "one".to_owned()).unwrap_err().to_string();
        assert!(error.contains("and another become one"), "{error}");
    }

    #[test]
    fn wider_floats_are_rounded_and_batch_counters_left_out() {
        let device = Device::flex();
        let cnn = || CnnConfig::new(vec![2], 3).init(&mut Noise::host(0), &device).unwrap();
        let mut weights = Weights::of(&cnn(), WeightLayout::PyTorch).unwrap();
        weights.tensors.insert("class_output.bias".into(), TensorData::new(vec![0.5f64, 1.0, 1e-3], [3]));
        weights.tensors.insert("norm.num_batches_tracked".into(), TensorData::new(vec![7i64], [1]));
        let loaded = weights.clone().load_into(cnn(), WeightLayout::PyTorch).unwrap();
        let bias = loaded.class_output.bias.unwrap().val().into_data();
        assert_eq!((bias.dtype(), bias.iter::<f32>().collect()), (DType::F32, vec![0.5, 1.0, 1e-3]));
        // As f32 this one is infinite.
        weights.tensors.insert("class_output.bias".into(), TensorData::new(vec![0.5f64, 1e300, 0.0], [3]));
        let error = weights.load_into(cnn(), WeightLayout::PyTorch).unwrap_err().to_string();
        assert!(error.contains("class_output.bias is not finite: inf at element 1"), "{error}");
    }
}
