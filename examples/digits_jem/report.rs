//! What comes out of a run: pictures, curves, numbers, and one page that holds them all.

use burn::module::Module;
use burn::tensor::Device;
use jem_core::Result;
use jem_core::data::Split;
use jem_core::energy::JointEnergy;
use jem_core::noise::Noise;
use jem_core::objectives::terms;
use jem_core::train::{GRADIENT_NORM, Record, read_records, validate};
use jem_plot::{BarChart, Chart, Histogram, Report};

use crate::options::Options;
use crate::pictures;
use crate::train::{BUFFER, State, sampler};

/// Images of each class in a picture.
const PER_CLASS: usize = 10;

/// Writes everything into the run directory and prints the main numbers.
pub fn write(
    state: &State,
    digits: &Split,
    options: &Options,
    seconds: f64,
    noise: &mut Noise,
    device: &Device,
) -> Result<()> {
    let out = |name: &str| options.out.join(name);
    let model = state.average.clone().unwrap_or_else(|| state.model.valid());
    let measured = validate(&model, &digits.test, 100, device)?;
    let joint = JointEnergy::new(&model);
    let classes = digits.test.num_classes();

    let steps = options.sample_steps();
    let mut stages: Vec<usize> = [0, 5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560].into();
    stages.retain(|stage| *stage < steps);
    stages.push(steps);
    let chains =
        pictures::given_labels(&joint, &sampler(options)?, (classes, PER_CLASS), &stages, noise, device);
    let journeys = pictures::rows(&pictures::journeys(&chains, classes), stages.len())?;
    let last =
        chains.last().cloned().unwrap_or_else(|| pictures::uniform(classes * PER_CLASS, noise, device));
    let right = joint.probabilities(last.clone()).argmax(1).into_data();
    let right = right.iter::<i64>().enumerate().filter(|(i, y)| i / PER_CLASS == *y as usize).count();
    let samples = pictures::rows(&last, PER_CLASS)?;
    let real = digits.test.take_per_class(PER_CLASS)?;
    let mut order: Vec<usize> = (0..real.len()).collect();
    order.sort_by_key(|&index| real.labels()[index]);
    let real = pictures::rows(&real.tensor(&order, device)?, PER_CLASS)?;
    let (buffer, counts) = pictures::by_class(&joint, &state.objective, (classes, PER_CLASS), device);
    let buffer = match buffer {
        Some(images) => images,
        None => state.objective.read(&(0..classes * PER_CLASS).collect::<Vec<_>>(), device),
    };
    let buffer = pictures::rows(&buffer, PER_CLASS)?;
    for (name, picture) in [
        ("samples.png", &samples),
        ("journeys.png", &journeys),
        ("buffer.png", &buffer),
        ("digits.png", &real),
    ] {
        picture.write_png(out(name))?;
    }

    let test = pictures::log_density(&joint, digits.test.all(device)?);
    let shuffled = pictures::log_density(&joint, pictures::shuffled(&digits.test, noise, device)?);
    let uniform = pictures::log_density(&joint, pictures::uniform(digits.test.len(), noise, device));
    let drawn = pictures::log_density(&joint, last);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let energies = [&test, &drawn, &shuffled, &uniform].map(|values| -mean(values));
    let histogram = Histogram::new("log p(x) + log Z", "-E(x), nats")
        .with_values("test digits", test)
        .with_values("the same, pixels shuffled", shuffled)
        .with_values("uniform noise", uniform)
        .with_bins(60);
    let per_class = BarChart::new("The buffer by class", "class, as the model sees it", "samples")
        .with_bars(counts.iter().enumerate().map(|(class, count)| (class.to_string(), *count as f64)));
    let [energy, accuracy, gradient] = curves(&out("metrics.jsonl"))?;
    energy.write_svg(out("energy.svg"))?;
    histogram.write_svg(out("log_density.svg"))?;

    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let right = percent(right as f64 / (classes * PER_CLASS) as f64);
    let names = ["E(test digits)", "E(drawn digits)", "E(shuffled pixels)", "E(uniform noise)"];
    let mut summary = vec![("Test accuracy".to_owned(), percent(measured.accuracy))];
    summary.extend(
        names.iter().zip(energies).map(|(name, energy)| (format!("mean {name}"), format!("{energy:.2}"))),
    );
    summary.extend(
        [
            ("Drawn digits that the model reads as asked", right),
            ("Training", format!("{} iterations in {seconds:.0} s", state.iteration)),
            ("Roll-backs", state.guard.roll_backs.to_string()),
            ("Network", format!("MLP 64-{0}-{0}-10, {1} parameters", options.width, model.num_params())),
            ("Chains", format!("K = {}, step {}, noise {}", options.steps, options.step_size, options.noise)),
            ("Buffer", format!("{BUFFER} samples, ρ = {}", options.restart)),
            ("Negatives", if options.class_conditional { "given labels" } else { "of p(x)" }.to_owned()),
            ("Seed", options.seed.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    let stages = stages.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    Report::new("A joint energy model of handwritten digits")
        .summary(&summary)
        .section("Drawn digits", format!("Chains of {steps} steps from uniform noise under E(x, y) = -f(x)[y], a row for each y. They are the first ten of each class: none is picked."))
        .image(samples.to_data_uri()?, "Samples of p(x|y).")
        .image(journeys.to_data_uri()?, format!("The first chain of each class after {stages} steps."))
        .image(buffer.to_data_uri()?, "The replay buffer: samples of the training chains, in rows by the class that the model gives them.")
        .svg(per_class.to_svg()?, "Samples of each class in the buffer.")
        .image(real.to_data_uri()?, "Test digits, for comparison.")
        .section("What is likely", "log p(x) up to a constant. Shuffled digits have the grey levels of digits and nothing else of them.")
        .svg(histogram.to_svg()?, "Digits that the model has not seen, against two kinds of what is no digit.")
        .section("The run", "In a healthy run the energies of data and of samples stay together.")
        .svg(energy.to_svg()?, "Mean energy of a batch of data and of a batch of samples.")
        .svg(accuracy.to_svg()?, "Share of the labelled batch that is classified right.")
        .svg(gradient.to_svg()?, "L2 norm of the gradient over all parameters.")
        .write(out("report.html"))?;
    for (name, value) in &summary {
        println!("{name:<44} {value}");
    }
    println!("{}", out("report.html").display());
    Ok(())
}

/// Energies, accuracy and gradient norm over the iterations.
fn curves(metrics: &std::path::Path) -> Result<[Chart; 3]> {
    let records = read_records(metrics)?;
    let of = |name: &str| -> Vec<(f64, f64)> {
        let value = |record: &Record| match record {
            Record::Step(step) => Some((step.iteration as f64, *step.values.get(name)?)),
            _ => None,
        };
        records.iter().filter_map(value).collect()
    };
    Ok([
        Chart::new("Energy", "iteration", "mean E(x), nats")
            .with_series("data", of(terms::ENERGY_DATA))
            .with_series("samples", of(terms::ENERGY_SAMPLES)),
        Chart::new("Accuracy", "iteration", "share").with_series("labelled batches", of(terms::ACCURACY)),
        Chart::new("Gradient norm", "iteration", "L2 norm")
            .with_log_y()
            .with_series("all parameters", of(GRADIENT_NORM)),
    ])
}
