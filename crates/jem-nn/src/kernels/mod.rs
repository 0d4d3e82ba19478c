//! Convolutions and leaky ReLUs for the devices on which Burn's cost more than they must: the CPU backend written in
//! Rust, and libtorch.
//!
//! A network of this crate asks for [`leaky_conv2d`] or [`leaky_relu`]; each answers `None` where it has nothing
//! better than Burn's operations, so that every other device keeps those. This is the only room that names a
//! backend. [`convolution`] works on the slices of the one, `libtorch` calls what the other has and Burn does not
//! use; [`extension`] is what Burn needs to call them.

mod convolution;
mod correlate;
mod extension;
mod flex;
mod geometry;
#[cfg(feature = "tch")]
mod libtorch;
mod outer;
mod planes;

use burn::backend::{Dispatch, DispatchDevice};
use burn::nn::PaddingConfig2d;
use burn::nn::conv::Conv2d;
use burn::tensor::{DType, Tensor};

use extension::Kernels;
use geometry::Geometry;

/// A leaky ReLU, and a convolution behind it; with a slope of 1 the convolution alone.
///
/// # Shapes
/// `[batch, channels_in, height, width]` to `[batch, channels_out, height_out, width_out]`.
pub fn leaky_conv2d(conv: &Conv2d, negative_slope: f64, x: &Tensor<4>) -> Option<Tensor<4>> {
    if !is_ours(x) {
        return None;
    }
    let weight = conv.weight.val();
    let geometry = geometry(conv, weight.dims(), x.dims())?;
    if weight.dtype() != DType::F32 {
        return None;
    }
    let bias = match &conv.bias {
        Some(bias) => bias.val(),
        None => Tensor::zeros([geometry.channels[1]], &weight.device()),
    };
    let output = <Dispatch as Kernels>::leaky_conv2d(
        x.clone().into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
        geometry,
        negative_slope as f32,
    );
    Some(Tensor::from_dispatch(output))
}

/// The leaky ReLU of every element.
///
/// # Shapes
/// Any, kept.
pub fn leaky_relu<const D: usize>(x: &Tensor<D>, negative_slope: f64) -> Option<Tensor<D>> {
    is_ours(x).then(|| {
        Tensor::from_dispatch(<Dispatch as Kernels>::leaky(x.clone().into_dispatch(), negative_slope as f32))
    })
}

/// The gradient before a leaky ReLU of input `x` from that behind it. It is no operation of autodiff.
///
/// # Shapes
/// Any, kept; both of one shape.
pub fn leaky_relu_gradient<const D: usize>(
    gradient: &Tensor<D>,
    x: &Tensor<D>,
    negative_slope: f64,
) -> Option<Tensor<D>> {
    let plain = |t: &Tensor<D>| is_ours(t) && !t.is_autodiff();
    (plain(gradient) && plain(x) && gradient.dims() == x.dims()).then(|| {
        Tensor::from_dispatch(<Dispatch as Kernels>::leaky_gradient(
            gradient.clone().into_dispatch(),
            x.clone().into_dispatch(),
            negative_slope as f32,
        ))
    })
}

/// Whether the numbers are of a device and the type that all of this is for.
fn is_ours<const D: usize>(x: &Tensor<D>) -> bool {
    let device = match x.device().without_autodiff().as_dispatch() {
        DispatchDevice::Flex(_) => true,
        #[cfg(feature = "tch")]
        DispatchDevice::LibTorch(_) => true,
        #[allow(unreachable_patterns)] // where no other backend is compiled in
        _ => false,
    };
    device && x.dtype() == DType::F32
}

/// The sizes, if this is a convolution of the kind that is done here and the input fits it.
fn geometry(conv: &Conv2d, weight: [usize; 4], x: [usize; 4]) -> Option<Geometry> {
    let [_, channels, height, width] = x;
    let [outputs, inputs, kernel_height, kernel_width] = weight;
    let kernel = [kernel_height, kernel_width];
    let geometry = Geometry {
        channels: [inputs, outputs],
        input: [height, width],
        kernel,
        stride: conv.stride,
        padding: padding(conv, kernel)?,
    };
    let plain = conv.groups == 1 && conv.dilation == [1, 1];
    (plain && channels == inputs && geometry.is_valid()).then_some(geometry)
}

/// The padding, if it is the same at both ends of each axis.
fn padding(conv: &Conv2d, kernel: [usize; 2]) -> Option<[usize; 2]> {
    match conv.padding {
        PaddingConfig2d::Valid => Some([0, 0]),
        PaddingConfig2d::Explicit(top, left, bottom, right) => {
            (top == bottom && left == right).then_some([top, left])
        }
        PaddingConfig2d::Same => {
            let even = kernel.iter().any(|size| size.is_multiple_of(2));
            (conv.stride == [1, 1] && !even).then(|| kernel.map(|size| size / 2))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::module::Param;
    use burn::nn::conv::Conv2dConfig;
    use burn::tensor::module::conv2d;
    use burn::tensor::ops::ConvOptions;
    use burn::tensor::{Device, activation};
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use jem_core::noise::{Noise, Stream};

    /// The devices that this room has something for.
    fn devices() -> Vec<Device> {
        vec![
            Device::flex(),
            #[cfg(feature = "tch")]
            #[allow(deprecated)]
            Device::libtorch(),
        ]
    }

    /// Normal draws, of a size that rounding is small beside.
    fn images(shape: [usize; 4], seed: u64, device: &Device) -> Tensor<4> {
        Noise::host(seed).normal(shape, Stream::DATA, device)
    }

    fn convolution(channels: [usize; 2], kernel: [usize; 2]) -> Conv2dConfig {
        Conv2dConfig::new(channels, kernel)
    }

    /// A network's output and the gradients of Σ c y in x, weight and bias, for a random c that `change` has its way
    /// with.
    fn everything_with(
        conv: &Conv2d,
        x: Tensor<4>,
        change: impl Fn(Tensor<4>) -> Tensor<4>,
        run: impl Fn(&Tensor<4>) -> Tensor<4>,
    ) -> [Vec<f32>; 4] {
        let x = x.autodiff().require_grad();
        let y = run(&x);
        let c = change(images(y.dims(), 9, &y.device().without_autodiff())).autodiff();
        let mut grads = (y.clone() * c).sum().backward();
        let bias = conv.bias.as_ref().expect("a bias").val();
        let found = [
            y.into_data(),
            x.grad_remove(&mut grads).expect("a gradient in x").into_data(),
            conv.weight.val().grad_remove(&mut grads).expect("one in the weight").into_data(),
            bias.grad_remove(&mut grads).expect("one in the bias").into_data(),
        ];
        found.map(|data| data.try_to_vec().expect("32 bits"))
    }

    fn everything(conv: &Conv2d, x: Tensor<4>, run: impl Fn(&Tensor<4>) -> Tensor<4>) -> [Vec<f32>; 4] {
        everything_with(conv, x, |c| c, run)
    }

    /// For every number of [`everything`] the sum of the absolute values of its terms, which is what rounding errors
    /// are small beside, however much the terms cancel.
    fn magnitudes(conv: &Conv2d, x: Tensor<4>) -> [Vec<f32>; 4] {
        let mut absolute = conv.clone();
        absolute.weight = Param::from_tensor(conv.weight.val().inner().abs().autodiff().require_grad());
        let bias = conv.bias.as_ref().expect("a bias").val().inner().abs();
        absolute.bias = Some(Param::from_tensor(bias.autodiff().require_grad()));
        everything_with(&absolute, x.abs(), Tensor::abs, |x| absolute.forward(x.clone()))
    }

    fn distance(ours: &[f32], burns: &[f32]) -> f64 {
        assert_eq!(ours.len(), burns.len());
        let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
        let gap = norm(&mut ours.iter().zip(burns).map(|(a, b)| f64::from(a - b)));
        gap / norm(&mut burns.iter().map(|b| f64::from(*b))).max(1e-6)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

        /// No number is off by more than 2e-6 of the sum of its absolute terms, 33 units of rounding; one term of the
        /// few thousand too many or too few would be off by 1e-4 and more.
        #[test]
        fn values_and_gradients_are_those_of_burn(
            channels in [1usize..45, 1usize..45], // several chunks of taps, several shares
            kernel in [1usize..5, 1usize..5],
            more in [0usize..19, 0usize..19],
            stride in [1usize..4, 1usize..4],
            padding in [0usize..3, 0usize..3],
            batch in 1usize..4,
            slope in prop::sample::select(vec![1.0, 0.2, 0.0]),
        ) {
            let [down, right] = padding;
            for device in devices() {
                let conv = convolution(channels, kernel)
                    .with_stride(stride)
                    .with_padding(PaddingConfig2d::Explicit(down, right, down, right))
                    .init(&device.clone().autodiff());
                let x = images([batch, channels[0], kernel[0] + more[0], kernel[1] + more[1]], 2, &device);
                let ours = everything(&conv, x.clone(), |x| leaky_conv2d(&conv, slope, x).expect("ours"));
                let activated = |x: &Tensor<4>| conv.forward(activation::leaky_relu(x.clone(), slope));
                let burns = everything(&conv, x.clone(), activated);
                let sizes = magnitudes(&conv, x);
                for (what, at) in [("y", 0), ("x", 1), ("weight", 2), ("bias", 3)] {
                    prop_assert_eq!(ours[at].len(), burns[at].len());
                    for ((ours, burns), size) in ours[at].iter().zip(&burns[at]).zip(&sizes[at]) {
                        prop_assert!((ours - burns).abs() <= 2e-6 * size + 1e-12, "{device:?} {what}: {ours} {burns} {size}");
                    }
                }
            }
        }
    }

    /// As spectral normalisation does it.
    #[test]
    fn a_weight_worked_out_from_another_passes_its_gradient_on() {
        for device in devices() {
            let geometry =
                Geometry { channels: [3, 5], input: [7, 6], kernel: [3, 3], stride: [2, 1], padding: [1, 1] };
            let x = images([4, 3, 7, 6], 11, &device).autodiff();
            let gradient = |run: &dyn Fn(Tensor<4>) -> Tensor<4>| {
                let weight = images([5, 3, 3, 3], 12, &device).autodiff().require_grad();
                let y = run(weight.clone() * 2.0);
                let gradient = weight.grad(&y.powi_scalar(2).sum().backward()).expect("a gradient");
                gradient.into_data().try_to_vec::<f32>().expect("32 bits")
            };
            let ours = gradient(&|weight| {
                let bias = Tensor::<1>::zeros([5], &x.device()).into_dispatch();
                let (x, weight) = (x.clone().into_dispatch(), weight.into_dispatch());
                Tensor::from_dispatch(<Dispatch as Kernels>::leaky_conv2d(x, weight, bias, geometry, 0.2))
            });
            let burns = gradient(&|weight| {
                let options = ConvOptions::new([2, 1], [1, 1], [1, 1], 1);
                conv2d(activation::leaky_relu(x.clone(), 0.2), weight, None, options)
            });
            assert!(distance(&ours, &burns) < 2e-6, "{device:?}");
        }
    }

    #[test]
    fn a_leaky_relu_by_itself_is_that_of_burn() {
        for device in devices() {
            let gradient = |run: &dyn Fn(Tensor<4>) -> Tensor<4>| {
                let x = images([3, 4, 5, 6], 13, &device).autodiff().require_grad();
                let y = run(x.clone());
                let gradient = x.grad(&y.clone().powi_scalar(2).sum().backward()).expect("a gradient");
                [y.inner(), gradient].map(|t| t.into_data().try_to_vec::<f32>().expect("32 bits"))
            };
            let ours = gradient(&|x| leaky_relu(&x, 0.2).expect("ours"));
            let burns = gradient(&|x| activation::leaky_relu(x, 0.2));
            assert!(ours.iter().zip(&burns).all(|(ours, burns)| distance(ours, burns) < 1e-6), "{device:?}");

            let x = images([3, 4, 5, 6], 13, &device);
            let by_hand =
                leaky_relu_gradient(&(leaky_relu(&x, 0.2).expect("ours") * 2.0), &x, 0.2).expect("ours");
            assert!(distance(&by_hand.into_data().try_to_vec::<f32>().expect("32 bits"), &burns[1]) < 1e-6);
        }
    }

    #[test]
    fn results_do_not_hang_on_the_number_of_threads() {
        let conv = convolution([5, 7], [3, 3]).with_stride([2, 1]).init(&Device::flex().autodiff());
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            pool.install(|| {
                everything(&conv, images([9, 5, 12, 11], 3, &Device::flex()), |x| {
                    leaky_conv2d(&conv, 0.2, x).expect("ours")
                })
            })
        };
        let alone = run(1);
        assert!(alone == run(2) && alone == run(5));
    }

    #[test]
    fn the_chain_asks_for_no_gradient_in_weights_and_gets_the_same_in_x() {
        for device in devices() {
            let conv = convolution([3, 4], [3, 3]).init(&device);
            let x = images([2, 3, 6, 6], 4, &device).autodiff().require_grad();
            let slope = |y: Tensor<4>| x.grad(&y.powi_scalar(2).sum().backward()).expect("a gradient");
            let ours = slope(leaky_conv2d(&conv, 0.2, &x).expect("ours"));
            let burns = slope(conv.forward(activation::leaky_relu(x.clone(), 0.2)));
            let [ours, burns] = [ours, burns].map(|g| g.into_data().try_to_vec::<f32>().expect("32 bits"));
            assert!(distance(&ours, &burns) < 5e-6, "{device:?}");
            assert!(leaky_conv2d(&conv, 0.2, &x.clone().inner()).is_some_and(|y| !y.device().is_autodiff()));
        }
    }

    #[test]
    fn what_is_not_done_here_is_left_to_burn() {
        let device = Device::flex();
        let x = images([2, 4, 9, 9], 5, &device);
        let base = || convolution([4, 4], [3, 3]);
        for conv in [
            base().with_groups(2).init(&device),
            base().with_dilation([2, 1]).init(&device),
            base().with_padding(PaddingConfig2d::Explicit(1, 0, 0, 0)).init(&device),
            convolution([3, 4], [3, 3]).init(&device),
            convolution([4, 4], [10, 3]).init(&device),
        ] {
            assert!(leaky_conv2d(&conv, 0.2, &x).is_none(), "{conv}");
        }
        assert!(leaky_conv2d(&base().init(&device), 0.2, &x).is_some());
        assert!(leaky_conv2d(&base().init(&device), 0.2, &x.clone().cast(DType::F64)).is_none());
        assert!(leaky_relu(&x.cast(DType::F64), 0.2).is_none());
    }
}
