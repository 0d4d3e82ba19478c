//! In-painting: any sampler, on the coordinates that are not clamped.

use burn::tensor::Tensor;

use super::Sampler;
use crate::energy::{Clamp, Clamped, EnergyModel};
use crate::noise::Noise;

/// A sampler whose chains move in some coordinates only; the clamped ones hold their values bit by bit.
///
/// The sampler inside sees the energy x ↦ E(x with the clamped values filled in), whose gradient is 0 in the
/// clamped coordinates, and positions are filled in as they are handed out. Noise does move the clamped
/// coordinates of the sampler's own state; nothing depends on them. If the sampler is exact, so is this: its law
/// is p(free coordinates | clamped coordinates).
///
/// # Shapes
/// Any rank; `[chains, ..]`, with the clamp as [`Clamp`] has it.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use jem_core::energy::Clamp;
/// use jem_core::energy::analytic::Gaussian;
/// use jem_core::noise::Noise;
/// use jem_core::samplers::{Inpainting, UlaConfig, run};
///
/// let device = Device::default();
/// let known = Tensor::<2>::from_floats([[0.25, 0.0]], &device); // the first coordinate is known
/// let mask = Tensor::<2>::from_floats([[1.0, 0.0]], &device).bool();
/// let sampler = Inpainting::new(UlaConfig::new(0.1).init()?, Clamp::new(mask, known)?);
/// let start = Tensor::<2>::zeros([3, 2], &device);
/// let end = run(&sampler, &Gaussian::standard(), start, 5, &mut Noise::host(0));
/// let first = end.clone().narrow(1, 0, 1).into_data().try_to_vec::<f32>().unwrap();
/// assert_eq!(first, [0.25; 3]);
/// # Ok::<(), jem_core::Error>(())
/// ```
///
/// Source: Du & Mordatch 2019, arXiv 1903.08689, section 4.2.
#[derive(Debug, Clone)]
pub struct Inpainting<S, const D: usize> {
    sampler: S,
    clamp: Clamp<D>,
}

impl<S, const D: usize> Inpainting<S, D> {
    /// `sampler` on the coordinates that `clamp` leaves free.
    pub fn new(sampler: S, clamp: Clamp<D>) -> Self {
        Self { sampler, clamp }
    }
}

impl<const D: usize, S: Sampler<D>> Sampler<D> for Inpainting<S, D> {
    type State = S::State;
    type Info = S::Info;

    fn init(&self, model: &dyn EnergyModel<D>, x: Tensor<D>) -> S::State {
        let x = self.clamp.fill(x.without_autodiff());
        self.sampler.init(&Clamped::new(model, self.clamp.clone()), x)
    }

    fn step(&self, model: &dyn EnergyModel<D>, state: S::State, noise: &mut Noise) -> (S::State, S::Info) {
        self.sampler.step(&Clamped::new(model, self.clamp.clone()), state, noise)
    }

    fn position(&self, state: &S::State) -> Tensor<D> {
        self.clamp.fill(self.sampler.position(state))
    }

    fn moved_to(&self, model: &dyn EnergyModel<D>, state: S::State, x: Tensor<D>) -> S::State {
        let x = self.clamp.fill(x.without_autodiff());
        self.sampler.moved_to(&Clamped::new(model, self.clamp.clone()), state, x)
    }

    fn is_exact(&self) -> bool {
        self.sampler.is_exact()
    }
}
