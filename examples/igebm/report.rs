//! What comes out of a run: pictures, curves, numbers, and one page that holds them all.

use burn::module::Module;
use burn::tensor::Device;
use jem_core::Result;
use jem_core::data::ImageSet;
use jem_core::noise::Noise;
use jem_core::objectives::{Loss, terms};
use jem_core::train::{GRADIENT_NORM, Record, read_records};
use jem_plot::{Chart, Picture, Report, grid};

use crate::options::Options;
use crate::train::{State, sampler};
use crate::uses;

/// Samples of each class in a picture.
const PER_CLASS: usize = 8;

/// Writes everything into the run directory and prints the main numbers.
pub fn write(
    state: &State,
    train: &ImageSet,
    test: &ImageSet,
    options: &Options,
    seconds: f64,
    noise: &mut Noise,
    device: &Device,
) -> Result<()> {
    let out = |name: &str| options.out.join(name);
    let model = uses::fixed(&state.model);
    let chain = sampler(options)?;
    let classes = test.num_classes();
    let names: Vec<String> = match test.class_names() {
        Some(names) => names.to_vec(),
        None => (0..classes).map(|class| class.to_string()).collect(),
    };
    let few = test.take_per_class(options.test_images.div_ceil(classes))?;
    let picture = |images, columns| -> Result<Picture> { grid(&images, (0.0, 1.0), columns, 2, 1) };

    let drawn = uses::from_noise(&model, &chain, test, (PER_CLASS, options.sample_steps), noise, device);
    let drawn = picture(drawn, PER_CLASS)?;
    let across = uses::across(&model, &chain, test, options.sample_steps, noise, device)?;
    let across = picture(across, classes + 1)?;
    let queue = uses::from_queue(&state.objective, classes, PER_CLASS, device);
    let queue = queue.map(|images| picture(images, PER_CLASS)).transpose()?;
    let detection = uses::detect(&model, train, &few, noise, device)?;
    let plain = uses::accuracy(&model, &chain, &few, 0, noise, device)?;
    let refined = uses::accuracy(&model, &chain, &few, options.refine, noise, device)?;

    drawn.write_png(out("samples.png"))?;
    across.write_png(out("across_classes.png"))?;
    if let Some(queue) = &queue {
        queue.write_png(out("queue.png"))?;
    }
    let [energy, loss, gradient] = curves(&out("metrics.jsonl"))?;
    energy.write_svg(out("energy.svg"))?;

    let chance = 1.0 / classes as f64;
    let error = (chance * (1.0 - chance) / few.len().max(1) as f64).sqrt();
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let mut summary = vec![
        ("Iterations".to_owned(), format!("{}, this time in {seconds:.0} s", state.iteration)),
        ("mean E(x), nats: training images".to_owned(), format!("{:.3}", detection.train)),
        ("test images".to_owned(), format!("{:.3}", detection.test)),
    ];
    for (name, auroc, mean) in &detection.rows {
        summary.push((name.clone(), format!("{mean:.3}; AUROC against test images {auroc:.3}")));
    }
    let pairs = [
        ("Test images classified right by argmin_y E(x, y)", percent(plain)),
        ("after refinement within 8/255", percent(refined)),
        ("Chance, and its standard error", format!("{} ± {}", percent(chance), percent(error))),
        ("Test images used", few.len().to_string()),
        ("Roll-backs", state.guard.roll_backs.to_string()),
        ("Data", format!("{}, {} images to train on", train.name(), train.len())),
        ("Network", format!("stages of {:?} channels, {} parameters", options.channels, model.num_params())),
        (
            "Chains",
            format!(
                "K = {}, step {} along the gradient clipped at {}, noise {}",
                options.steps, options.step_size, options.gradient_clip, options.noise
            ),
        ),
        (
            "Queue",
            format!("{} of {} samples, ρ = {}", state.objective.len(), options.buffer, options.restart),
        ),
        ("Squared energies, KL term", format!("{}, {}", options.energy_magnitude, options.kl)),
        ("Seed", options.seed.to_string()),
    ];
    summary.extend(pairs.map(|(name, value)| (name.to_owned(), value)));

    let labels = names.join(", ");
    let mut report = Report::new("A conditional energy of CIFAR-10")
        .summary(&summary)
        .section("Samples", format!("A row for each class: {labels}. None is picked. The network of the paper has a thousand times the work in it; at this size the model learns colours and light above dark, and no objects."))
        .image(drawn.to_data_uri()?, format!("Chains of {} steps from uniform noise under E(x, y).", options.sample_steps));
    if let Some(queue) = queue {
        report = report.image(queue.to_data_uri()?, "The newest samples of the replay queue, where chains go on from draw to draw: some have just started from noise. A class with too few has no row.");
    }
    report
        .section("Across classes", format!("Chains of {} steps that start from a test image: the image, then a column for each label in the same order. Where a model has learnt what tells classes apart, the columns differ.", options.sample_steps))
        .image(across.to_data_uri()?, "From each class to each class.")
        .section("What is likely", "E(x) = -log Σ exp(-E(x, y)). An AUROC of 1 means that all test images lie lower than all others, 0.5 that the energy does not know, below it that the others are thought the more likely.")
        .table(
            &["against test images", "AUROC", "mean E(x), nats"],
            detection.rows.iter().map(|(name, auroc, mean)| [name.clone(), format!("{auroc:.3}"), format!("{mean:.3}")]),
        )
        .section("The run", "In a healthy run the energies of data and of samples stay together, near 0.")
        .svg(energy.to_svg()?, "Mean energy of a batch of data and of a batch of samples.")
        .svg(loss.to_svg()?, "The loss and its two parts.")
        .svg(gradient.to_svg()?, "L2 norm of the gradient over all parameters.")
        .write(out("report.html"))?;
    for (name, value) in &summary {
        println!("{name:<50} {value}");
    }
    println!(
        "An AUROC near 0.5, or an accuracy within three standard errors of chance: the model has not learnt that."
    );
    println!("{}", out("report.html").display());
    Ok(())
}

/// Energies, losses and gradient norm over the iterations.
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
        Chart::new("Energy", "iteration", "mean E(x, y), nats")
            .with_series("data", of(terms::ENERGY_DATA))
            .with_series("samples", of(terms::ENERGY_SAMPLES)),
        Chart::new("Loss", "iteration", "nats")
            .with_series("energy gap", of(terms::ENERGY_GAP))
            .with_series("squared energies", of(terms::ENERGY_MAGNITUDE))
            .with_series("total", of(Loss::TOTAL)),
        Chart::new("Gradient norm", "iteration", "L2 norm")
            .with_log_y()
            .with_series("all parameters", of(GRADIENT_NORM)),
    ])
}
