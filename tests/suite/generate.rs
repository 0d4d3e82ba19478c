//! Samples of a model: the right ones, with a true record of where they come from, and no buffer advanced.

use burn::tensor::{Device, Tensor, TensorData};
use jem_core::energy::analytic::{Gaussian, GaussianMixture};
use jem_core::energy::{EnergyModel, JointEnergy};
use jem_core::noise::Noise;
use jem_core::samplers::{
    BufferPlace, GaussianStart, ImproperSgldConfig, Replay, ReplayBuffer, ReplayConfig, Request,
    SampleSource, SgldConfig, UniformStart,
};
use jem_eval::generate::{
    BufferChoice, FromBufferConfig, SampleOrigin, Source, Treatment, Wanted, confident, continued,
    fresh_chains, newest_of_buffer,
};

use crate::support::values;

/// Slot i holds (i, 0).
fn numbered(capacity: usize, place: BufferPlace) -> ReplayBuffer<2> {
    let rows: Vec<f32> = (0..capacity).flat_map(|slot| [slot as f32, 0.0]).collect();
    ReplayBuffer::new(Tensor::from_data(TensorData::new(rows, [capacity, 2]), &Device::default()), place)
}

fn slots(source: &Source) -> &[usize] {
    match source {
        Source::Buffer { slots, .. } => slots,
        other => panic!("{other:?}"),
    }
}

#[test]
fn buffer_samples_are_those_asked_for_and_the_buffer_stays() {
    let device = Device::default();
    let model = Gaussian::new(6.2, 1.0).unwrap(); // lowest at slots 6, 7, 5, 8
    for place in [BufferPlace::Host, BufferPlace::Device] {
        let buffer = numbered(20, place);
        let before = values(buffer.all(&device));
        let take = |choice: BufferChoice, count, batch| {
            let from = FromBufferConfig::new(choice).with_batch(batch).init().unwrap();
            from.take(&buffer, Wanted::Any { model: &model, count }, &mut Noise::host(1), &device).unwrap()
        };
        for batch in [1, 7, 256] {
            let lowest = take(BufferChoice::LowestEnergy, 4, batch);
            assert_eq!(slots(&lowest.origin.source), [6, 7, 5, 8]);
            let x = values(lowest.samples.clone());
            assert_eq!(x, [6.0, 0.0, 7.0, 0.0, 5.0, 0.0, 8.0, 0.0]);
            let expected: Vec<f64> = model.energy(lowest.samples).into_data().iter::<f64>().collect();
            assert_eq!(lowest.energies, expected);
        }
        let random = take(BufferChoice::Random, 20, 8);
        let mut all = slots(&random.origin.source).to_vec();
        assert!(!all.is_sorted());
        let x: Vec<usize> = values(random.samples).chunks(2).map(|x| x[0] as usize).collect();
        assert_eq!(x, all);
        all.sort_unstable();
        assert_eq!(all, (0..20).collect::<Vec<_>>()); // none twice
        let named = take(BufferChoice::Slots(vec![3, 19, 3]), 3, 8);
        assert_eq!(values(named.samples), [3.0, 0.0, 19.0, 0.0, 3.0, 0.0]);
        assert_eq!(before, values(buffer.all(&device)));
    }
}

#[test]
fn samples_for_a_class_come_from_its_block() {
    let device = Device::default();
    let joint = JointEnergy::new(GaussianMixture::new(vec![vec![0.0, 0.0], vec![9.0, 0.0]], 1.0).unwrap());
    let buffer = numbered(20, BufferPlace::Host);
    let labels = [1, 0, 1];
    let wanted = Wanted::OfClasses { model: &joint, labels: &labels };
    let from = FromBufferConfig::new(BufferChoice::LowestEnergy).with_class_blocks(2).init().unwrap();
    let found = from.take(&buffer, wanted, &mut Noise::host(1), &device).unwrap();
    // E(x, 1) is lowest at 9, which is in the block of class 0; in its own block 10 and 11 are.
    assert_eq!(slots(&found.origin.source), [10, 0, 11]);
    assert_eq!((found.energies, found.labels), (vec![0.5, 0.0, 2.0], Some(labels.to_vec())));
    let one_block = FromBufferConfig::new(BufferChoice::Random).init().unwrap();
    let error = one_block.take(&buffer, wanted, &mut Noise::host(1), &device).unwrap_err().to_string();
    assert!(error.starts_with("labels wanted = 1"), "{error}");
}

#[test]
fn the_newest_draw_is_that_of_training_made_on_a_copy() {
    let device = Device::default();
    let model = Gaussian::standard();
    let sampler = ImproperSgldConfig::new().with_step_size(0.1).init().unwrap();
    let replay: Replay<_> = ReplayConfig::new([2])
        .with_capacity(20)
        .with_num_steps(3)
        .with_restart_probability(0.3)
        .init(sampler)
        .unwrap();
    let buffer = numbered(20, BufferPlace::Host);
    let before = values(buffer.all(&device));
    let wanted = Wanted::Any { model: &model, count: 8 };
    let found = newest_of_buffer(wanted, &replay, &buffer, &mut Noise::host(2), &device).unwrap();
    assert_eq!(before, values(buffer.all(&device)));
    let request = Request { count: 8, labels: None, device: &device };
    let (expected, advanced) = replay.draw(&model, request, buffer, &mut Noise::host(2)).unwrap();
    assert_ne!(before, values(advanced.all(&device))); // as it would have been in training
    assert_eq!(values(found.samples), values(expected.samples));
    let source = Source::NewestOfBuffer { num_steps: 3, restarted: expected.restarted, non_finite: 0 };
    assert_eq!(found.origin.source, source);
}

/// A classifier with two modes, and what its chains, filters and records make of it.
#[test]
fn fresh_chains_go_on_are_filtered_and_keep_their_record() {
    let device = Device::default();
    let joint = JointEnergy::new(GaussianMixture::new(vec![vec![-2.0, 0.0], vec![2.0, 0.0]], 1.0).unwrap());
    let (sgld, start) = (SgldConfig::new(0.2).init().unwrap(), UniformStart::default());
    let labels: Vec<usize> = (0..40).map(|i| i % 2).collect();
    let wanted = Wanted::OfClasses { model: &joint, labels: &labels };
    let mut noise = Noise::host(3);
    let found = fresh_chains(wanted, &sgld, &start, &[2], 40, &mut noise, &device).unwrap();
    assert_eq!((found.len(), found.samples.dims()), (40, [40, 2]));
    let right_side = |x: &[f32], labels: &[usize]| {
        x.chunks(2).zip(labels).filter(|(x, label)| (x[0] > 0.0) == (**label == 1)).count()
    };
    assert!(right_side(&values(found.samples.clone()), &labels) > 34);

    let found = continued(found, wanted, &sgld, 10, &mut noise).unwrap();
    let p = joint.probabilities(found.samples.clone());
    let p: Vec<f64> = p.into_data().iter::<f64>().collect();
    let sure: Vec<usize> = (0..40).filter(|i| p[2 * i + labels[*i]] >= 0.99).collect();
    assert!(sure.len() > 5 && sure.len() < 40);
    for batch in [3, 64] {
        let kept = confident(found.clone(), joint.classifier(), 0.99, batch).unwrap();
        assert_eq!(kept.len(), sure.len());
        assert_eq!(kept.labels.unwrap(), sure.iter().map(|i| labels[*i]).collect::<Vec<_>>());
        assert_eq!(kept.energies, sure.iter().map(|i| found.energies[*i]).collect::<Vec<_>>());
        let expected = vec![
            Treatment::Chain { num_steps: 10, non_finite: 0 },
            Treatment::Confident { threshold: 0.99, of: 40, kept: sure.clone() },
        ];
        assert_eq!(kept.origin.treatments, expected);
        let text = serde_json::to_string(&kept.origin).unwrap();
        assert_eq!(serde_json::from_str::<SampleOrigin>(&text).unwrap(), kept.origin);
        let line = format!(
            "fresh chains of 40 steps (seed 3); 10 more steps; {} of 40 with p(y|x) of 0.99 or more",
            sure.len()
        );
        assert_eq!(kept.origin.to_string(), line);
    }
}

/// E = -‖x‖⁴: chains that start far out run away.
struct Cliff;
impl EnergyModel<2> for Cliff {
    fn energy(&self, x: Tensor<2>) -> Tensor<1> {
        x.square().sum_dim(1).square().squeeze_dim::<1>(1).neg()
    }
}

#[test]
fn what_is_not_finite_is_left_out_and_counted() {
    let device = Device::default();
    let sampler = ImproperSgldConfig::new().with_step_size(0.1).with_noise_scale(0.0).init().unwrap();
    let wanted = Wanted::Any { model: &Cliff, count: 50 };
    let run =
        |start: &GaussianStart| fresh_chains(wanted, &sampler, start, &[2], 8, &mut Noise::host(4), &device);
    let found = run(&GaussianStart::new(0.0, 0.7).unwrap()).unwrap();
    let Source::FreshChains { non_finite, .. } = found.origin.source else { panic!() };
    assert!(non_finite > 0 && non_finite < 50);
    assert_eq!((found.len(), found.samples.dims()[0]), (50 - non_finite, 50 - non_finite));
    assert!(values(found.samples).iter().all(|x| x.is_finite()));
    let error = run(&GaussianStart::new(100.0, 0.1).unwrap()).unwrap_err().to_string();
    assert!(error.contains("every one of 50 chains"), "{error}");
}

#[test]
fn bad_requests_are_refused_in_words() {
    let device = Device::default();
    let model = Gaussian::standard();
    let mut buffer = numbered(20, BufferPlace::Host);
    let message = |buffer: &ReplayBuffer<2>, choice, count| {
        let from = FromBufferConfig::new(choice).init().unwrap();
        let wanted = Wanted::Any { model: &model, count };
        from.take(buffer, wanted, &mut Noise::host(1), &device).unwrap_err().to_string()
    };
    assert!(message(&buffer, BufferChoice::Random, 0).starts_with("samples wanted = 0"));
    assert!(message(&buffer, BufferChoice::Random, 21).contains("at most 20"));
    assert!(message(&buffer, BufferChoice::Slots(vec![1]), 2).starts_with("number of slots named = 1"));
    assert!(message(&buffer, BufferChoice::Slots(vec![20]), 1).starts_with("BufferChoice::Slots = 20"));
    buffer.write(&[4], &Tensor::from_floats([[f32::NAN, 0.0]], &device));
    assert!(message(&buffer, BufferChoice::Slots(vec![4]), 1).contains("slot 4 of the buffer"));
    let lowest = FromBufferConfig::new(BufferChoice::LowestEnergy).init().unwrap();
    let wanted = Wanted::Any { model: &model, count: 19 };
    assert!(lowest.take(&buffer, wanted, &mut Noise::host(1), &device).is_ok()); // all but the broken one

    for (config, field) in [
        (FromBufferConfig::new(BufferChoice::Random).with_class_blocks(0), "class_blocks"),
        (FromBufferConfig::new(BufferChoice::Random).with_batch(0), "batch"),
    ] {
        assert!(config.init().unwrap_err().to_string().starts_with(&format!("FromBufferConfig.{field} = 0")));
    }
    let (sgld, start) = (SgldConfig::new(0.1).init().unwrap(), UniformStart::default());
    let wanted = Wanted::Any { model: &model, count: 2 };
    let chains = |shape: &[usize]| {
        fresh_chains::<2, _, _>(wanted, &sgld, &start, shape, 1, &mut Noise::host(1), &device)
    };
    assert!(chains(&[2, 2]).unwrap_err().to_string().contains("expected 1 dimensions"));
    assert!(chains(&[0]).unwrap_err().to_string().starts_with("sample_shape = [0]"));
    let mixture = GaussianMixture::new(vec![vec![-1.0, 0.0], vec![1.0, 0.0]], 1.0).unwrap();
    let all = chains(&[2]).unwrap();
    let refuse =
        |threshold, batch| confident(all.clone(), &mixture, threshold, batch).unwrap_err().to_string();
    assert!(refuse(1.5, 4).starts_with("confident.threshold = 1.5"));
    assert!(refuse(0.5, 0).starts_with("confident.batch = 0"));
    assert!(refuse(1.0, 4).contains("the highest p(y|x) of 2 samples"));
    let joint = JointEnergy::new(mixture);
    let three = Wanted::OfClasses { model: &joint, labels: &[0, 1, 1] };
    let error = continued(all, three, &sgld, 1, &mut Noise::host(1)).unwrap_err().to_string();
    assert!(error.starts_with("labels has shape [3], expected [2]"), "{error}");
}
