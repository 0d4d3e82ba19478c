//! Attacks against closed forms: on a linear classifier the smallest perturbation is margin / ‖w‖, in the dual norm.

use std::cell::RefCell;
use std::ops::ControlFlow;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use jem_core::data::{ImageSet, PixelRange};
use jem_core::energy::analytic::GaussianMixture;
use jem_core::energy::{Classifier, JointEnergy};
use jem_core::noise::{Noise, Stream};
use jem_core::samplers::ImproperSgldConfig;
use jem_eval::attack::{
    AttackLoss, Defence, DistalConfig, ExpectedGradient, Goal, Norm, PgdConfig, RefinedConfig, Response,
    RobustAccuracy, RobustAccuracyConfig, error_rates, perturbation_sizes,
};
use jem_eval::unwatched;
use jem_nn::{Mlp, MlpConfig};

use crate::support::{values, weights};

const SIZE: usize = 8;

/// f(x) = s [ (x - ½) W + c ] on [0, 1]^8, with a tracked W.
#[derive(Module, Debug)]
struct Linear {
    slopes: Param<Tensor<2>>,
    #[module(skip)]
    lead: f32,
    #[module(skip)]
    scale: f32,
}

impl Linear {
    fn new(classes: usize, scale: f32) -> Self {
        let slopes = Noise::host(21).normal([SIZE, classes], Stream::DATA, &Device::default().autodiff());
        Self { slopes: Param::from_tensor(slopes), lead: 0.3, scale }
    }

    fn classes(&self) -> usize {
        self.slopes.val().dims()[1]
    }

    /// f(x) of one point, and the slope of each logit, on the host.
    fn by_hand(&self, x: &[f32]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let (slopes, classes) = (values(self.slopes.val()), self.classes());
        let scale = f64::from(self.scale);
        let column =
            |c: usize| (0..SIZE).map(|i| scale * f64::from(slopes[i * classes + c])).collect::<Vec<_>>();
        let slopes: Vec<Vec<f64>> = (0..classes).map(column).collect();
        let logit = |c: usize| {
            let dot: f64 = slopes[c].iter().zip(x).map(|(w, x)| w * (f64::from(*x) - 0.5)).sum();
            dot + if c == 0 { scale * f64::from(self.lead) } else { 0.0 }
        };
        ((0..classes).map(logit).collect(), slopes)
    }

    /// The class of a point and its distance from the nearest border.
    fn distance(&self, x: &[f32], norm: Norm) -> (usize, f64) {
        let (label, _, distance) = self.nearest(x, norm);
        (label, distance)
    }

    /// The class of a point, the class across the nearest border, and the distance from there.
    fn nearest(&self, x: &[f32], norm: Norm) -> (usize, usize, f64) {
        let (logits, slopes) = self.by_hand(x);
        let label = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b])).unwrap();
        let to = |rival: usize| {
            let difference = slopes[label].iter().zip(&slopes[rival]).map(|(a, b)| a - b);
            let dual = match norm {
                Norm::Linf => difference.map(f64::abs).sum::<f64>(),
                Norm::L2 => difference.map(|d| d * d).sum::<f64>().sqrt(),
            };
            (logits[label] - logits[rival]) / dual
        };
        let rivals = (0..logits.len()).filter(|rival| *rival != label).map(|rival| (rival, to(rival)));
        let (rival, distance) = rivals.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        (label, rival, distance)
    }
}

impl Classifier<2> for Linear {
    fn logits(&self, x: Tensor<2>) -> Tensor<2> {
        let mut lead = vec![0.0; self.classes()];
        lead[0] = self.lead;
        let lead = Tensor::from_data(TensorData::new(lead, [1, self.classes()]), &x.device());
        (x.sub_scalar(0.5).matmul(self.slopes.val()) + lead).mul_scalar(self.scale)
    }
}

/// The same model on [-1, 1].
struct OnSymmetric<M>(M);
impl<M: Classifier<2>> Classifier<2> for OnSymmetric<M> {
    fn logits(&self, x: Tensor<2>) -> Tensor<2> {
        self.0.logits(x.add_scalar(1.0).div_scalar(2.0))
    }
}

/// Points about the middle of the box, so that its walls are out of reach.
fn points(count: usize) -> Tensor<2> {
    Noise::host(22).uniform([count, SIZE], 0.4..0.6, Stream::DATA, &Device::default())
}

fn rows(x: &Tensor<2>) -> Vec<Vec<f32>> {
    values(x.clone()).chunks(SIZE).map(<[f32]>::to_vec).collect()
}

/// With two classes an untargeted attack has one way to go. With four it has three, may take one that is too long, and
/// the gradient of cross-entropy mixes them: there the attack is told the nearest class.
#[test]
fn pgd_finds_the_smallest_perturbation_of_a_linear_classifier_and_none_below() {
    for (norm, classes) in [(Norm::Linf, 2), (Norm::L2, 2), (Norm::Linf, 4), (Norm::L2, 4)] {
        let model = Linear::new(classes, 1.0);
        let valid = model.valid();
        let x = points(3);
        for (index, row) in rows(&x).iter().enumerate() {
            let (label, rival, distance) = model.nearest(row, norm);
            assert!(distance > 0.001 && distance < 0.3, "{distance}");
            let x = x.clone().narrow(0, index, 1);
            let succeeds = |epsilon: f64, loss: AttackLoss, goal: Goal<'_>, range: PixelRange| {
                let config = if norm == Norm::L2 { PgdConfig::l2(epsilon) } else { PgdConfig::linf(epsilon) };
                let attack = config.with_loss(loss).with_num_steps(20).with_restarts(3).init(range).unwrap();
                let mut noise = Noise::host(1);
                let found = match range {
                    PixelRange::Unit => attack.run(&valid, x.clone(), goal, &mut noise).unwrap(),
                    PixelRange::Symmetric => {
                        let x = x.clone().mul_scalar(2.0).sub_scalar(1.0);
                        attack.run(&OnSymmetric(&valid), x, goal, &mut noise).unwrap()
                    }
                };
                found.succeeded[0]
            };
            let (away, towards) = (&[label], &[rival]);
            let cases = [
                (AttackLoss::Margin, Goal::Targeted(towards)),
                (AttackLoss::CrossEntropy, Goal::Untargeted(away)),
                (AttackLoss::Margin, Goal::Untargeted(away)),
            ];
            for range in [PixelRange::Unit, PixelRange::Symmetric] {
                for (loss, goal) in cases {
                    let what =
                        format!("{norm:?}, {classes} classes, {loss:?}, {goal:?}, {range:?}, point {index}");
                    if classes == 2 || matches!(goal, Goal::Targeted(_)) {
                        assert!(succeeds(1.02 * distance, loss, goal, range), "{what}");
                    }
                    assert!(!succeeds(0.98 * distance, loss, goal, range), "{what}");
                }
            }
        }
    }
}

/// The gradient of the wrong sign: an attack that makes the model surer.
struct Flipped<M>(M);
impl<M: Classifier<2>> Defence<2> for Flipped<M> {
    fn classify(&self, x: Tensor<2>, _: &mut Noise) -> Tensor<2> {
        self.0.logits(x)
    }
    fn respond(&self, x: Tensor<2>, loss: &dyn Fn(Tensor<2>) -> Tensor<1>, noise: &mut Noise) -> Response<2> {
        let response = self.0.respond(x, loss, noise);
        Response { gradient: response.gradient.neg(), ..response }
    }
}

#[test]
fn flipped_gradients_and_masked_gradients_find_nothing_that_true_ones_find() {
    let model = Linear::new(2, 1.0).valid();
    let steep = Linear::new(2, 1000.0).valid(); // its softmax is 0 and 1 everywhere
    let x = points(6);
    let (labels, distances): (Vec<usize>, Vec<f64>) =
        rows(&x).iter().map(|row| model.distance(row, Norm::L2)).unzip();
    let epsilon = 1.3 * distances.iter().copied().fold(0.0, f64::max);
    let rate = |defence: &dyn Defence<2>, loss: AttackLoss| {
        let attack = PgdConfig::l2(epsilon).with_loss(loss).with_restarts(2).init(PixelRange::Unit).unwrap();
        attack.run(defence, x.clone(), Goal::Untargeted(&labels), &mut Noise::host(2)).unwrap().success_rate()
    };
    assert_eq!(rate(&model, AttackLoss::CrossEntropy), 1.0);
    assert!(rate(&Flipped(&model), AttackLoss::CrossEntropy) < 0.5);
    assert!(rate(&steep, AttackLoss::CrossEntropy) < 0.7);
    assert_eq!(rate(&steep, AttackLoss::Margin), 1.0);
}

#[test]
fn targeted_attacks_end_in_their_target_or_say_that_they_did_not() {
    let model = Linear::new(4, 1.0).valid();
    let x = points(8);
    let targets: Vec<usize> =
        rows(&x).iter().map(|row| (model.distance(row, Norm::Linf).0 + 1) % 4).collect();
    for (epsilon, rate) in [(0.25, 1.0), (1e-4, 0.0)] {
        let attack = PgdConfig::linf(epsilon).with_restarts(2).init(PixelRange::Unit).unwrap();
        let found = attack.run(&model, x.clone(), Goal::Targeted(&targets), &mut Noise::host(3)).unwrap();
        assert_eq!(found.success_rate(), rate, "{epsilon}");
        for ((row, target), succeeded) in rows(&found.examples).iter().zip(&targets).zip(&found.succeeded) {
            assert_eq!(model.distance(row, Norm::Linf).0 == *target, *succeeded);
        }
    }
}

fn small_net(tracked: bool) -> Mlp {
    let device = Device::default();
    let device = if tracked { device.autodiff() } else { device };
    MlpConfig::new(12, vec![16], 3).init(&mut Noise::host(23), &device).unwrap()
}

/// Images with pixels on the walls of the box.
fn images(range: PixelRange) -> ImageSet {
    let pixels: Vec<u8> = (0..10 * 12).map(|i| [0, 255, 128, 30, 255, 77, 200][i % 7]).collect();
    let labels = (0..10).map(|i| i % 3).collect();
    ImageSet::new("walls", pixels, [1, 3, 4], labels, 3).unwrap().with_range(range)
}

#[test]
fn perturbations_stay_in_ball_and_box_and_the_seed_decides() {
    let net = small_net(false);
    for range in [PixelRange::Unit, PixelRange::Symmetric] {
        let x = images(range).all(&Device::default()).unwrap();
        for (norm, config) in [(Norm::Linf, PgdConfig::linf(0.1)), (Norm::L2, PgdConfig::l2(0.5))] {
            let attack = config.clone().with_restarts(2).with_num_steps(10).init(range).unwrap();
            let run = |seed| {
                let labels: Vec<usize> = net_labels(&net, &x);
                attack.run(&net, x.clone(), Goal::Untargeted(&labels), &mut Noise::host(seed)).unwrap()
            };
            let found = run(1);
            let sizes = perturbation_sizes(x.clone(), found.examples.clone(), norm, range).unwrap();
            assert!(sizes.iter().all(|size| *size <= config.epsilon + 1e-6), "{norm:?} {sizes:?}");
            assert!(sizes.iter().any(|size| *size > 0.5 * config.epsilon));
            for pixel in values(found.examples.clone()) {
                assert!(pixel >= range.low() - 1e-6 && pixel <= range.high() + 1e-6);
            }
            let again = run(1);
            assert_eq!(values(found.examples.clone()), values(again.examples));
            assert_eq!((found.losses, found.restarts), (again.losses, again.restarts));
            assert_ne!(values(found.examples), values(run(2).examples));
        }
    }
}

fn net_labels(net: &Mlp, x: &Tensor<4>) -> Vec<usize> {
    let labels = Classifier::<4>::logits(net, x.clone()).without_autodiff().argmax(1).into_data();
    labels.iter::<i64>().map(|label| label as usize).collect()
}

#[test]
fn parameters_have_no_gradient_and_are_as_they_were() {
    let net = small_net(true);
    let x = images(PixelRange::Unit).all(&Device::default()).unwrap();
    let before = weights(&net);
    let labels = net_labels(&net, &x);
    let attack = PgdConfig::linf(0.1).with_restarts(2).with_num_steps(5).init(PixelRange::Unit).unwrap();
    let tracked = attack.run(&net, x.clone(), Goal::Untargeted(&labels), &mut Noise::host(1)).unwrap();
    let plain = attack.run(&net.valid(), x.clone(), Goal::Untargeted(&labels), &mut Noise::host(1)).unwrap();
    assert!(!tracked.examples.is_autodiff());
    assert_eq!(values(tracked.examples), values(plain.examples));
    assert_eq!(before, weights(&net));
    let gradients = Classifier::<4>::logits(&net, x.autodiff()).sum().backward();
    let gradients = burn::optim::GradientsParams::from_grads(gradients, &net);
    assert_eq!(gradients.len(), 4, "still trainable, and nothing but this pass gave gradients");
}

/// A defence whose evaluations lower the loss with every restart, and remember what was seen.
struct Fading {
    inner: Linear,
    per_restart: usize,
    seen: RefCell<Vec<(f32, Vec<f32>)>>,
}

impl Defence<2> for Fading {
    fn classify(&self, x: Tensor<2>, _: &mut Noise) -> Tensor<2> {
        let logits = self.inner.logits(x.clone());
        let restart = self.seen.borrow().len().saturating_sub(1) / self.per_restart;
        // The lead of class 0 grows from restart to restart.
        let lead = Tensor::from_floats([[1.0 + restart as f32, 0.0]], &x.device());
        let logits = logits + lead;
        let numbers = values(logits.clone().without_autodiff());
        self.seen.borrow_mut().push((numbers[1] - numbers[0], values(x.without_autodiff())));
        logits
    }
}

#[test]
fn the_best_restart_is_kept_though_the_last_is_worse() {
    let x = points(1);
    let fading = Fading { inner: Linear::new(2, 1.0).valid(), per_restart: 6, seen: RefCell::default() };
    let attack = PgdConfig::linf(0.02).with_loss(AttackLoss::Margin).with_num_steps(5).with_restarts(4);
    let attack = attack.init(PixelRange::Unit).unwrap();
    let found = attack.run(&fading, x, Goal::Untargeted(&[0]), &mut Noise::host(4)).unwrap();
    let seen = fading.seen.borrow();
    assert_eq!(seen.len(), 1 + 4 * 6); // as it came, then five steps and an end from each start
    let best = seen.iter().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    assert_eq!((found.succeeded[0], found.restarts[0]), (false, Some(0)));
    assert_eq!((found.losses[0], values(found.examples)), (best.0, best.1.clone()));
    let last = &seen[seen.len() - 6..];
    assert!(last.iter().all(|(loss, _)| *loss < best.0 - 1.0), "the last restart is worse");
}

#[test]
fn samples_that_are_wrong_as_they_came_cost_nothing_more() {
    struct Counted(Linear, RefCell<Vec<usize>>);
    impl Defence<2> for Counted {
        fn classify(&self, x: Tensor<2>, _: &mut Noise) -> Tensor<2> {
            self.1.borrow_mut().push(x.dims()[0]);
            self.0.logits(x)
        }
    }
    let model = Counted(Linear::new(2, 1.0).valid(), RefCell::default());
    let x = points(4);
    let mut labels: Vec<usize> = rows(&x).iter().map(|row| model.0.distance(row, Norm::Linf).0).collect();
    labels[2] = 1 - labels[2];
    let attack = PgdConfig::linf(1e-4).with_restarts(1).with_num_steps(2).init(PixelRange::Unit).unwrap();
    let found = attack.run(&model, x.clone(), Goal::Untargeted(&labels), &mut Noise::host(5)).unwrap();
    assert_eq!(found.succeeded, [false, false, true, false]);
    assert_eq!(found.restarts[2], None);
    assert_eq!(rows(&found.examples)[2], rows(&x)[2]);
    assert_eq!(*model.1.borrow(), [4, 3, 3, 3]);
    let all_wrong: Vec<usize> =
        labels.iter().enumerate().map(|(i, y)| if i == 2 { *y } else { 1 - y }).collect();
    attack.run(&model, x, Goal::Untargeted(&all_wrong), &mut Noise::host(5)).unwrap();
    assert_eq!(*model.1.borrow(), [4, 3, 3, 3, 4]);
}

#[test]
fn bad_attacks_are_refused_in_words() {
    let unit = PixelRange::Unit;
    let nan = f64::NAN;
    for (config, message) in [
        (PgdConfig::linf(0.0), "PgdConfig.epsilon = 0"),
        (PgdConfig::l2(-0.5), "PgdConfig.epsilon = -0.5"),
        (PgdConfig::linf(nan), "PgdConfig.epsilon = NaN"),
        (PgdConfig::linf(0.1).with_step_size(0.0), "PgdConfig.step_size = 0"),
        (PgdConfig::linf(0.1).with_step_size(nan), "PgdConfig.step_size = NaN"),
        (PgdConfig::linf(0.1).with_num_steps(0), "PgdConfig.num_steps = 0"),
        (PgdConfig::linf(0.1).with_restarts(0), "PgdConfig.restarts = 0"),
    ] {
        assert!(config.init(unit).unwrap_err().to_string().starts_with(message));
    }
    let model = Linear::new(2, 1.0).valid();
    let attack = PgdConfig::linf(0.1).init(unit).unwrap();
    let message = |x: Tensor<2>, labels: &[usize]| {
        attack.run(&model, x, Goal::Untargeted(labels), &mut Noise::host(0)).unwrap_err().to_string()
    };
    assert!(message(points(2), &[0]).starts_with("labels has shape [1], expected [2]"));
    assert!(message(points(2), &[0, 2]).starts_with("labels = 2 is not allowed"));
    let outside = message(points(2).sub_scalar(0.7), &[0, 0]);
    assert!(outside.contains("within [0, 1], the range of the attack"), "{outside}");
    assert!(message(points(1).mul_scalar(f32::NAN), &[0]).contains("not finite"));
    let one_class = MlpConfig::new(SIZE, vec![], 1).init(&mut Noise::host(0), &Device::default()).unwrap();
    let error = attack.run(&one_class, points(1), Goal::Untargeted(&[0]), &mut Noise::host(0)).unwrap_err();
    assert!(error.to_string().contains("two classes at least"), "{error}");

    for (config, message) in [
        (RobustAccuracyConfig::new(PgdConfig::linf(0.1), []), "RobustAccuracyConfig.epsilons = []"),
        (RobustAccuracyConfig::new(PgdConfig::linf(0.1), [0.2, 0.1]), "RobustAccuracyConfig.epsilons ="),
        (RobustAccuracyConfig::new(PgdConfig::linf(0.1), [0.0]), "RobustAccuracyConfig.epsilons ="),
        (RobustAccuracyConfig::new(PgdConfig::linf(0.1), [nan]), "RobustAccuracyConfig.epsilons ="),
        (RobustAccuracyConfig::new(PgdConfig::linf(nan), [0.1]), "PgdConfig.epsilon = NaN"),
        (
            RobustAccuracyConfig::new(PgdConfig::linf(0.1), [0.1]).with_batch(0),
            "RobustAccuracyConfig.batch = 0",
        ),
    ] {
        let error = config.init().unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
    for (config, field) in [
        (DistalConfig::new().with_confidence(1.0), "confidence"),
        (DistalConfig::new().with_step(Norm::L2, 0.0), "step_size"),
        (DistalConfig::new().with_num_steps(0), "num_steps"),
    ] {
        let error = config.init(unit).unwrap_err().to_string();
        assert!(error.starts_with(&format!("DistalConfig.{field} =")), "{error}");
    }
}

/// On a linear classifier the curve is known: the share of points whose distance from the border is larger.
#[test]
fn robust_accuracy_is_the_share_beyond_the_radius_and_never_rises() {
    let model = Linear::new(2, 1.0).valid();
    let x = points(20);
    let (mut labels, mut distances): (Vec<usize>, Vec<f64>) =
        rows(&x).iter().map(|row| model.distance(row, Norm::L2)).unzip();
    labels[3] = 1 - labels[3];
    distances[3] = 0.0; // wrong as it comes
    let mut sorted = distances.clone();
    sorted.sort_by(f64::total_cmp);
    // Radii in the middle of the widest gaps between distances.
    let mut gaps: Vec<(f64, f64)> =
        sorted[1..].windows(2).map(|d| (d[1] / d[0], (d[0] * d[1]).sqrt())).collect();
    gaps.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut epsilons: Vec<f64> = gaps[..3].iter().map(|gap| gap.1).collect();
    epsilons.sort_by(f64::total_cmp);
    assert!(gaps[2].0 > 1.05, "{gaps:?}");

    let attack = PgdConfig::l2(0.5).with_restarts(3).with_num_steps(20);
    let curve = RobustAccuracyConfig::new(attack, epsilons.clone()).init().unwrap();
    let mut noise = Noise::host(6);
    let found = curve.run_batch(&model, x, &labels, PixelRange::Unit, &mut noise).unwrap();
    let beyond = |epsilon: f64| distances.iter().filter(|d| **d > epsilon).count() as f64 / 20.0;
    assert_eq!(found.clean_accuracy, 19.0 / 20.0);
    for point in &found.points {
        assert_eq!(point.accuracy, beyond(point.epsilon), "{point:?}");
    }
    assert!(found.points.windows(2).all(|pair| pair[1].accuracy <= pair[0].accuracy));
    assert!(found.points[0].accuracy > found.points[2].accuracy);
    assert_eq!((found.broken_at[3], found.is_complete()), (Some(0.0), true));
}

#[test]
fn a_curve_over_a_set_never_rises_and_can_be_ended_early() {
    let (net, device) = (small_net(false), Device::default());
    let set = images(PixelRange::Symmetric);
    let attack = PgdConfig::linf(0.1).with_restarts(1).with_num_steps(4);
    let epsilons = [0.001, 0.01, 0.05, 0.2, 0.5];
    let curve = RobustAccuracyConfig::new(attack, epsilons).with_batch(4).init().unwrap();
    let whole = curve.run(&net, &set, &device, &mut Noise::host(7), &mut unwatched).unwrap();
    assert!(whole.is_complete() && whole.broken_at.len() == 10);
    let mut accuracy = vec![whole.clean_accuracy];
    accuracy.extend(whole.points.iter().map(|point| point.accuracy));
    assert!(accuracy.is_sorted_by(|a, b| a >= b), "{accuracy:?}");
    let labels = net_labels(&net, &set.all(&device).unwrap());
    let right = labels.iter().zip(set.labels()).filter(|(a, b)| a == b).count();
    assert_eq!(whole.clean_accuracy, right as f64 / 10.0);
    let text = serde_json::to_string(&whole).unwrap();
    assert_eq!(serde_json::from_str::<RobustAccuracy>(&text).unwrap(), whole);

    let mut seen = Vec::new();
    let part = curve.run(&net, &set, &device, &mut Noise::host(7), &mut |progress| {
        seen.push((progress.done, progress.total));
        if progress.done == 8 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let part = part.unwrap();
    assert_eq!(seen, (1..=8).map(|done| (done, 15)).collect::<Vec<_>>());
    assert!(!part.is_complete());
    assert_eq!((part.planned, part.broken_at), (10, whole.broken_at[..4].to_vec()));
    let nothing = curve.run(&net, &set, &device, &mut Noise::host(7), &mut |_| ControlFlow::Break(()));
    assert!(nothing.is_err());
}

/// Refinement moves points back to their mode, which costs an attack a larger radius; an attack through it, and by
/// expectation over its draws, still finds its way at that radius.
#[test]
fn refined_models_are_attacked_through_the_refinement() {
    let mixture = GaussianMixture::new(vec![vec![0.25, 0.5], vec![0.75, 0.5]], 0.15).unwrap();
    let sampler = ImproperSgldConfig::new().with_step_size(0.005).with_noise_scale(0.005).init().unwrap();
    let refined = |steps| {
        RefinedConfig::new(steps)
            .with_noise_scale(0.01)
            .init(JointEnergy::new(mixture.clone()), sampler.clone())
    };
    let x = Tensor::<2>::from_floats([[0.25, 0.5], [0.75, 0.4], [0.3, 0.6]], &Device::default());
    let labels = [0, 1, 0];
    let run = |defence: &dyn Defence<2>, epsilon: f64| {
        let attack =
            PgdConfig::l2(epsilon).with_restarts(1).with_num_steps(15).init(PixelRange::Unit).unwrap();
        attack.run(defence, x.clone(), Goal::Untargeted(&labels), &mut Noise::host(8)).unwrap()
    };
    for steps in [0, 1, 10] {
        let refined = refined(steps).unwrap();
        let expected = ExpectedGradient::new(refined.clone(), 3).unwrap();
        for defence in [&refined as &dyn Defence<2>, &expected] {
            assert_eq!(run(defence, 0.05).success_rate(), 0.0, "{steps}");
            let found = run(defence, 0.35);
            assert_eq!(found.success_rate(), 1.0, "{steps}");
            // The first draw that met the goal may have been a lucky one; fresh draws meet it too, more or less often.
            let rates = error_rates(defence, found.examples, &labels, 40, &mut Noise::host(9)).unwrap();
            assert!(rates.iter().sum::<f64>() / 3.0 > 0.5, "{steps}: {rates:?}");
        }
    }
    // Refinement moves a point that is still on the right side away from the border.
    let near = Tensor::<2>::from_floats([[0.46, 0.5]], &Device::default());
    let margin = |steps| {
        let logits = values(refined(steps).unwrap().classify(near.clone(), &mut Noise::host(1)));
        logits[0] - logits[1]
    };
    assert!(margin(10) > margin(0) && margin(0) > 0.0);
}

#[test]
fn distal_adversaries_reach_their_confidence_or_say_how_far_they_came() {
    let device = Device::default();
    let model = Linear::new(4, 3.0).valid();
    for range in [PixelRange::Unit, PixelRange::Symmetric] {
        for (norm, step) in [(Norm::L2, 0.1), (Norm::Linf, 0.02)] {
            let search = DistalConfig::new().with_step(norm, step).init(range).unwrap();
            let wanted = [0, 1, 2, 3, 0];
            let run = |defence: &dyn Defence<2>| {
                search.run(defence, [5, SIZE], &wanted, &mut Noise::host(10), &device).unwrap()
            };
            let found = match range {
                PixelRange::Unit => run(&model),
                PixelRange::Symmetric => run(&OnSymmetric(&model)),
            };
            assert_eq!((found.reached, &found.labels[..]), (vec![true; 5], &wanted[..]));
            let unit = found.images.sub_scalar(range.low()).div_scalar(range.high() - range.low());
            assert!(values(unit.clone()).iter().all(|x| (0.0..=1.0).contains(x)));
            let p = JointEnergy::new(&model).probabilities(unit);
            for ((row, label), confidence) in values(p).chunks(4).zip(wanted).zip(&found.confidences) {
                assert!((f64::from(row[label]) - confidence).abs() < 1e-4 && *confidence >= 0.9);
            }
            assert!(found.steps.iter().any(|steps| *steps > 0));
        }
    }
    // Slopes so small that no image is of any class for sure.
    let flat = Linear::new(4, 0.1).valid();
    let search = DistalConfig::new().with_num_steps(30).init(PixelRange::Unit).unwrap();
    let found = search.run(&flat, [2, SIZE], &[0, 1], &mut Noise::host(10), &device).unwrap();
    assert_eq!((found.reached, found.steps), (vec![false; 2], vec![30; 2]));
    assert!(found.confidences.iter().all(|p| *p > 0.2 && *p < 0.9));
    let error = search.run(&flat, [2, SIZE], &[0, 4], &mut Noise::host(10), &device).unwrap_err();
    assert!(error.to_string().starts_with("labels = 4"), "{error}");
    assert!(search.run(&flat, [0, SIZE], &[], &mut Noise::host(10), &device).is_err());
}
