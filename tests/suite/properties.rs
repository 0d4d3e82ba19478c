//! Properties that hold for any input: schedules, the slots of a buffer, log-sum-exp.

use burn::tensor::{Device, Tensor, TensorData};
use jem_core::math::log_sum_exp;
use jem_core::samplers::{BufferPlace, ReplayBuffer};
use jem_core::schedule::Schedule;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::support::values;

fn schedules() -> impl Strategy<Value = Schedule> {
    let number = || 0.0..1e6f64;
    prop_oneof![
        number().prop_map(Schedule::Constant),
        (number(), number(), 0..1_000u64).prop_map(|(from, to, steps)| Schedule::Linear { from, to, steps }),
        (number(), number(), 0..1_000u64).prop_map(|(from, to, steps)| Schedule::Cosine { from, to, steps }),
        (number(), 1e-3..1e3f64, 0.0..2.0f64).prop_map(|(a, b, c)| Schedule::polynomial(a, b, c)),
        (number(), 0.0..1.0f64, 0..500u64).prop_map(|(v, factor, at)| Schedule::step(
            v,
            factor,
            [at, at + 7]
        )),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    /// What passes the check is finite and not negative everywhere, and a warm-up only lowers it.
    #[test]
    fn checked_schedules_are_never_negative(schedule in schedules(), warmup in 0..50u64, t in 0..10_000u64) {
        prop_assert!(schedule.check("s").is_ok());
        let value = schedule.value(t);
        let warm = schedule.with_warmup(warmup).value(t);
        prop_assert!(value.is_finite() && value >= 0.0);
        prop_assert!(warm >= 0.0 && warm <= value);
    }

    /// Writing to slots, with repetitions, is what it would be in a plain vector, on the host and on the device.
    #[test]
    fn buffers_are_vectors(slots in prop::collection::vec(0..9usize, 1..20)) {
        let device = Device::default();
        let rows = |start: f32, n: usize| -> Vec<f32> { (0..2 * n).map(|i| start + i as f32).collect() };
        let tensor = |v: Vec<f32>| Tensor::<2>::from_data(TensorData::new(v.clone(), [v.len() / 2, 2]), &device);
        let mut expected = rows(0.0, 9);
        let new = rows(1000.0, slots.len());
        for (slot, row) in slots.iter().zip(new.chunks(2)) {
            expected[2 * slot..2 * slot + 2].copy_from_slice(row);
        }
        for place in [BufferPlace::Host, BufferPlace::Device] {
            let mut buffer = ReplayBuffer::new(tensor(rows(0.0, 9)), place);
            buffer.write(&slots, &tensor(new.clone()));
            prop_assert_eq!(values(buffer.all(&device)), expected.clone());
        }
    }

    /// max x ≤ LSE x ≤ max x + log n, whatever the size of the numbers.
    #[test]
    fn log_sum_exp_is_between_its_bounds(x in prop::collection::vec(-1e4..1e4f32, 1..12)) {
        let n = x.len();
        let max = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let lse = values(log_sum_exp(Tensor::from_data(TensorData::new(x, [1, n]), &Device::default())))[0];
        let tolerance = 1e-6 * max.abs().max(1.0);
        prop_assert!(lse >= max - tolerance && lse <= max + (n as f32).ln() + tolerance);
    }
}
