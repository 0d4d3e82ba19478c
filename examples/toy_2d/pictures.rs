//! What was learnt, as maps of the plane and as numbers.

use burn::tensor::{Device, Tensor, TensorData};
use jem_core::Result;
use jem_core::energy::{Classifier, EnergyModel, JointEnergy};
use jem_core::math::log_sum_exp;
use jem_core::noise::{Noise, Stream};
use jem_core::objectives::terms;
use jem_core::samplers::{Sampler, run};
use jem_core::train::{Record, read_records, validate};
use jem_plot::{Chart, Field, Heatmap, Report};

use crate::Options;
use crate::learn::{Learnt, SIDE, sampler};

/// What is drawn for pictures, apart from training.
const PICTURES: Stream = Stream::new("toy_2d/pictures");
/// Cells of a map on each side.
const CELLS: usize = 240;

type Point = (f64, f64);

/// Writes everything into the run directory and prints the main numbers.
pub fn write(learnt: &Learnt, options: &Options, seconds: f64, device: &Device) -> Result<()> {
    let out = |name: &str| options.out.join(name);
    let mut noise = learnt.noise.clone();
    let joint = JointEnergy::new(&learnt.model);
    let test = learnt.test.all(device)?;
    let measured = validate(&learnt.model, &learnt.test, 1_000, device)?;

    // log Z by a sum over the cells, which makes a density of the energy.
    let log_z = log_normaliser(&joint, device);
    let log_likelihood = -measured.energy - log_z;
    let lowest = percentile(joint.energy(test.clone()), 0.005) + log_z;

    let energy = map(device, |x| joint.energy(x).add_scalar(log_z))?;
    let density = map(device, |x| joint.energy(x).add_scalar(log_z).neg().exp())?;
    let confidence = map(device, |x| joint.probabilities(x).max_dim(1).squeeze_dim(1))?;
    let steps = options.shortened(60, 20);
    let start = noise.uniform([400, 2], -SIDE..SIDE, PICTURES, device);
    let samples = run(&sampler(options)?, &joint, start, options.shortened(2_000, 20), &mut noise);
    let paths = paths(&joint, &sampler(options)?, 8, steps, &mut noise, device);
    let data = points(&test.narrow(0, 0, 400));
    let buffer = points(&learnt.buffer.read(&(0..400).collect::<Vec<_>>(), device));

    let title = format!("{}: -log p(x)", options.data.name());
    let energy =
        Heatmap::new(energy).with_titles(title, "x", "y").with_range(lowest, lowest + 8.0).with_contours(7);
    let with_data = energy.clone().with_points("held-out data", data);
    let with_chains = energy.with_points("samples", points(&samples)).with_paths("chains", paths);
    let density = Heatmap::new(density).with_titles("p(x)", "x", "y");
    let confidence = Heatmap::new(confidence)
        .with_titles("max p(y|x)", "x", "y")
        .with_range(0.0, 1.0)
        .with_points("replay buffer", buffer);
    let curve = energies(&out("metrics.jsonl"))?;
    for (name, map) in
        [("data", &with_data), ("samples", &with_chains), ("density", &density), ("classes", &confidence)]
    {
        map.clone().with_size(720).render()?.write_png(out(&format!("{name}.png")))?;
        map.write_svg(out(&format!("{name}.svg")))?;
    }
    curve.write_svg(out("energy.svg"))?;

    let summary = [
        ("Held-out log-likelihood", format!("{log_likelihood:.3} nats a point")),
        ("of a uniform square", format!("{:.3} nats a point", -2.0 * f64::from(2.0 * SIDE).ln())),
        ("Held-out accuracy", format!("{:.1} %", 100.0 * measured.accuracy)),
        ("Data", options.data.name().to_owned()),
        ("Noise on training points", options.data_noise.to_string()),
        ("Chains", format!("K = {}, α = {}, ρ = {}", options.steps, options.step_size, options.restart)),
        ("Training", format!("{} iterations in {seconds:.0} s", options.shortened(options.iterations, 20))),
        ("Seed", options.seed.to_string()),
    ];
    Report::new("A joint energy model in the plane")
        .summary(&summary)
        .section("Energy", "Dark is likely.")
        .svg(with_data.to_svg()?, "-log p(x), with points that the model has not seen.")
        .svg(with_chains.to_svg()?, format!("The same, with where 400 chains from all over the square end, and the first {steps} steps of eight more."))
        .section("Density and classes", "")
        .svg(density.to_svg()?, "p(x), normalised by a sum over the map.")
        .svg(confidence.to_svg()?, "How sure the classifier is, with samples of the training chains.")
        .section("The run", "In a healthy run the energies of data and of samples stay together.")
        .svg(curve.to_svg()?, "Mean energy of a batch of data and of a batch of samples.")
        .write(out("report.html"))?;
    for (name, value) in &summary {
        println!("{name:<26} {value}");
    }
    println!("{}", out("report.html").display());
    Ok(())
}

/// A function on the square.
fn map(device: &Device, function: impl Fn(Tensor<2>) -> Tensor<1>) -> Result<Field> {
    let side = f64::from(SIDE);
    Field::of((-side, side), (-side, side), [CELLS, CELLS], device, function)
}

/// log ∫ exp(-E(x)) dx over the square.
fn log_normaliser<C: Classifier<2>>(joint: &JointEnergy<C>, device: &Device) -> f64 {
    let width = 2.0 * SIDE / CELLS as f32;
    let centre = |index: usize| -SIDE + width * (index as f32 + 0.5);
    let grid: Vec<f32> = (0..CELLS * CELLS).flat_map(|i| [centre(i % CELLS), centre(i / CELLS)]).collect();
    let grid = Tensor::<2>::from_data(TensorData::new(grid, [CELLS * CELLS, 2]), device);
    let log_sum = log_sum_exp(joint.energy(grid).neg().unsqueeze_dim(0)).into_scalar::<f32>();
    f64::from(log_sum) + 2.0 * f64::from(width).ln()
}

/// The value below which a `share` of all values lie.
fn percentile(values: Tensor<1>, share: f64) -> f64 {
    let mut values: Vec<f64> = values.into_data().iter::<f64>().collect();
    values.sort_by(f64::total_cmp);
    values.get((share * values.len() as f64) as usize).copied().unwrap_or(0.0)
}

/// Every position of a few chains from the edges inwards.
fn paths<C: Classifier<2>>(
    joint: &JointEnergy<C>,
    sampler: &impl Sampler<2>,
    count: usize,
    steps: usize,
    noise: &mut Noise,
    device: &Device,
) -> Vec<Vec<Point>> {
    let mut x = noise.uniform([count, 2], -SIDE..SIDE, PICTURES, device);
    let mut paths: Vec<Vec<Point>> = points(&x).into_iter().map(|point| vec![point]).collect();
    for _ in 0..steps {
        x = run(sampler, joint, x, 1, noise);
        for (path, point) in paths.iter_mut().zip(points(&x)) {
            path.push(point);
        }
    }
    paths
}

/// The rows of `[n, 2]`.
fn points(x: &Tensor<2>) -> Vec<Point> {
    let values: Vec<f64> = x.clone().into_data().iter::<f64>().collect();
    values.chunks_exact(2).map(|point| (point[0], point[1])).collect()
}

/// The energies over the iterations.
fn energies(metrics: &std::path::Path) -> Result<Chart> {
    let records = read_records(metrics)?;
    let of = |name: &str| -> Vec<(f64, f64)> {
        let value = |record: &Record| match record {
            Record::Step(step) => Some((step.iteration as f64, *step.values.get(name)?)),
            _ => None,
        };
        records.iter().filter_map(value).collect()
    };
    Ok(Chart::new("Energy", "iteration", "mean E(x), nats")
        .with_series("data", of(terms::ENERGY_DATA))
        .with_series("samples", of(terms::ENERGY_SAMPLES)))
}
