//! The pictures and the report of a run, drawn anew at the end of each epoch.

use std::path::{Path, PathBuf};
use std::time::Instant;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use jem_core::data::PixelRange;
use jem_core::energy::JointEnergy;
use jem_core::error::{Error, Result};
use jem_core::objectives::{Loss, terms};
use jem_core::samplers::ReplayBuffer;
use jem_core::train::{Control, GRADIENT_NORM, Observer, Record, StepRecord, Values, View, read_records};
use jem_plot::{BarChart, Chart, Picture, Report, grid};

use crate::config::Recipe;
use crate::model::Network;

/// Points that a curve is thinned to.
const POINTS: usize = 300;

/// Draws into a run directory. It looks at the run and never changes it.
pub struct Reporter {
    folder: PathBuf,
    recipe: Recipe,
    data: String,
    class_names: Vec<String>,
    range: PixelRange,
    device: Device,
    started: Option<(Instant, u64)>,
}

impl Reporter {
    /// A report on a run in `folder`.
    pub fn new(
        folder: &Path,
        recipe: &Recipe,
        data: String,
        class_names: Vec<String>,
        range: PixelRange,
        device: &Device,
    ) -> Result<Self> {
        for name in ["samples", "curves"] {
            let path = folder.join(name);
            std::fs::create_dir_all(&path).map_err(|source| Error::io(&path, source))?;
        }
        let (folder, recipe, device) = (folder.to_path_buf(), recipe.clone(), device.clone());
        Ok(Self { folder, recipe, data, class_names, range, device, started: None })
    }

    fn grid(&self, images: &Tensor<4>, columns: usize) -> Result<Picture> {
        grid(images, (self.range.low(), self.range.high()), columns, 2, 1)
    }

    fn draw(&self, view: &View<'_, Network, ReplayBuffer<4>>) -> Result<()> {
        let records = read_records(self.folder.join("metrics.jsonl"))?;
        let steps: Vec<&StepRecord> = records
            .iter()
            .filter_map(|record| if let Record::Step(step) = record { Some(step) } else { None })
            .collect();
        let epochs: Vec<(u64, &Values)> = records
            .iter()
            .filter_map(|record| match record {
                Record::Epoch(epoch) => Some((epoch.iteration, &epoch.values)),
                _ => None,
            })
            .collect();
        let events: Vec<(u64, String, String)> = records
            .iter()
            .filter_map(|record| match record {
                Record::Event(event) => {
                    Some((event.iteration, format!("{:?}", event.event), event.cause.clone()))
                }
                _ => None,
            })
            .collect();
        let charts = self.charts(&steps, &epochs, &events)?;
        let (by_class, chart, confident) = self.by_class(view)?;
        let slots = spread(view.objective.capacity(), 100);
        let samples = self.grid(&view.objective.read(&slots, &self.device), 20)?;
        samples.write_png(self.folder.join(format!("samples/epoch-{:04}.png", view.epoch)))?;
        confident.write_png(self.folder.join("samples/by_class.png"))?;

        let mut report = Report::new("A joint energy model of CIFAR-10")
            .summary(&self.summary(view, &steps, &epochs, &events));
        report = report.section("Accuracy", "Share of images classified right: held-out images at the end of each epoch, labelled batches as they came.");
        report = report.svg(&charts[0].1, "Accuracy over the run. Guessing gives 10 %.");
        report = report.section("Energies", "E(x) = -log Σ exp f(x)[y], the mean over data and over samples from the chains. A healthy run keeps the two together, wherever they go; a gap that runs away is a run that blows up.");
        for (_, svg, caption) in &charts[1..] {
            report = report.svg(svg, *caption);
        }
        report = report
            .section("Samples", "100 slots of the replay buffer, always the same ones. They are samples in the making: each chain has made its K steps every time that its slot was drawn.")
            .image(samples.to_data_uri()?, "Samples in the replay buffer.")
            .section("The buffer by class", "Every sample of the buffer under the label that the model gives it, and the ten of each class that it is surest of.")
            .svg(chart, "Samples of each class.")
            .image(confident.to_data_uri()?, format!("The ten surest samples of each class, a row each: {}.", by_class.join(", ")))
            .section("Guard", "What the divergence guard did.")
            .events(events)
            .section("Epochs", "")
            .table(&self.epoch_headers(&epochs), self.epoch_rows(&epochs));
        report.write(self.folder.join("report.html"))
    }

    fn summary(
        &self,
        view: &View<'_, Network, ReplayBuffer<4>>,
        steps: &[&StepRecord],
        epochs: &[(u64, &Values)],
        events: &[(u64, String, String)],
    ) -> Vec<(String, String)> {
        let recipe = &self.recipe;
        let last = steps.last();
        let value = |name: &str| {
            last.and_then(|step| step.values.get(name)).map_or("-".to_owned(), |v| format!("{v:.3}"))
        };
        let accuracy = |values: Option<&(u64, &Values)>| {
            values
                .and_then(|(_, values)| values.get("test_accuracy"))
                .map_or("-".to_owned(), |v| format!("{:.1} %", 100.0 * v))
        };
        let mut pairs = vec![
            ("Test accuracy", accuracy(epochs.last())),
            ("after the first epoch", accuracy(epochs.first())),
            ("E(data), last batch", value(terms::ENERGY_DATA)),
            ("E(samples), last batch", value(terms::ENERGY_SAMPLES)),
            ("Iterations", format!("{} of {}", view.iteration, view.iterations)),
            ("Events of the guard", events.len().to_string()),
            ("Data", self.data.clone()),
            ("Network", format!("{:?}, {} parameters", recipe.network, view.model.num_params())),
            ("Chains", recipe.chains()),
            ("Buffer", format!("{} samples, ρ = {}", recipe.buffer, recipe.restart)),
            ("Preset, seed", format!("{:?}, {}", recipe.preset, recipe.seed)),
            ("jem-core", env!("CARGO_PKG_VERSION").to_owned()),
        ];
        if let Some((since, first)) = self.started {
            let seconds = since.elapsed().as_secs_f64();
            let images = (view.iteration - first) as f64 * recipe.batch as f64;
            pairs.push((
                "Speed",
                format!("{:.0} images a second, {seconds:.0} s so far", images / seconds.max(1e-9)),
            ));
        }
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The charts with their captions, each also written as a file.
    fn charts(
        &self,
        steps: &[&StepRecord],
        epochs: &[(u64, &Values)],
        events: &[(u64, String, String)],
    ) -> Result<Vec<(&'static str, String, &'static str)>> {
        let of_steps =
            |name: &str| thin(steps.iter().filter_map(|s| Some((s.iteration as f64, *s.values.get(name)?))));
        let of_epochs = |name: &str| -> Vec<(f64, f64)> {
            epochs.iter().filter_map(|(at, values)| Some((*at as f64, *values.get(name)?))).collect()
        };
        let mut accuracy = Chart::new("Accuracy", "iteration", "share")
            .with_series("test", of_epochs("test_accuracy"))
            .with_series("labelled batches", of_steps(terms::ACCURACY));
        let validation = of_epochs("validation_accuracy");
        if !validation.is_empty() {
            accuracy = accuracy.with_series("validation", validation);
        }
        let energy = Chart::new("Energy", "iteration", "mean E(x), nats")
            .with_series("data", of_steps(terms::ENERGY_DATA))
            .with_series("samples", of_steps(terms::ENERGY_SAMPLES));
        let gap = Chart::new("Energy gap", "iteration", "mean E(data) - mean E(samples)")
            .with_series("gap", of_steps(terms::ENERGY_GAP));
        let loss = Chart::new("Loss", "iteration", "nats")
            .with_series("cross-entropy", of_steps(terms::CROSS_ENTROPY))
            .with_series("total", of_steps(Loss::TOTAL));
        let gradient = Chart::new("Gradient norm", "iteration", "L2 norm")
            .with_log_y()
            .with_series("all parameters", of_steps(GRADIENT_NORM));
        let rate = Chart::new("Learning rate", "iteration", "learning rate")
            .with_series("Adam", thin(steps.iter().map(|s| (s.iteration as f64, s.learning_rate))));
        let charts = [
            ("accuracy", accuracy, ""),
            ("energy", energy, "Mean energies of a batch of data and of a batch of samples."),
            (
                "gap",
                gap,
                "The p(x) term of the loss: it hovers about 0 while the sampler keeps up with the model.",
            ),
            ("loss", loss, "Cross-entropy of the labelled batches, and the whole loss."),
            ("gradient", gradient, "The L2 norm of the gradient over all parameters."),
            ("learning_rate", rate, "The learning rate as used, with what the guard made of it."),
        ];
        charts
            .into_iter()
            .map(|(name, chart, caption)| {
                let chart =
                    events.iter().fold(chart, |chart, (at, event, _)| chart.with_event(*at as f64, event));
                chart.write_svg(self.folder.join(format!("curves/{name}.svg")))?;
                Ok((name, chart.to_svg()?, caption))
            })
            .collect()
    }

    /// Class names, the chart of the buffer by class, and its surest samples.
    fn by_class(&self, view: &View<'_, Network, ReplayBuffer<4>>) -> Result<(Vec<String>, String, Picture)> {
        let joint = JointEnergy::new(view.model.valid());
        let classes = self.class_names.len();
        let mut surest: Vec<Vec<(f32, usize)>> = vec![Vec::new(); classes];
        let all: Vec<usize> = (0..view.objective.capacity()).collect();
        for slots in all.chunks(250) {
            let p: Vec<f32> = joint
                .probabilities(view.objective.read(slots, &self.device))
                .into_data()
                .iter::<f32>()
                .collect();
            for (slot, p) in slots.iter().zip(p.chunks(classes)) {
                let best = (0..classes).max_by(|a, b| p[*a].total_cmp(&p[*b])).unwrap_or(0);
                surest[best].push((p[best], *slot));
            }
        }
        let counts = surest.iter().map(|of_class| of_class.len() as f64).collect::<Vec<_>>();
        let chart = BarChart::new("Buffer by class", "class, as the model sees it", "samples")
            .with_bars(self.class_names.iter().cloned().zip(counts))
            .to_svg()?;
        let mut slots = Vec::new();
        let mut shown = Vec::new();
        for (name, of_class) in self.class_names.iter().zip(&mut surest) {
            of_class.sort_by(|a, b| b.0.total_cmp(&a.0));
            if of_class.len() >= 10 {
                slots.extend(of_class[..10].iter().map(|(_, slot)| *slot));
                shown.push(name.clone());
            }
        }
        if slots.is_empty() {
            slots = spread(view.objective.capacity(), 10);
        }
        Ok((shown, chart, self.grid(&view.objective.read(&slots, &self.device), 10)?))
    }

    fn epoch_headers(&self, epochs: &[(u64, &Values)]) -> Vec<String> {
        let names = epochs.iter().last().into_iter().flat_map(|(_, values)| values.keys());
        std::iter::once("iteration".to_owned()).chain(names.map(|name| name.replace('_', " "))).collect()
    }

    fn epoch_rows(&self, epochs: &[(u64, &Values)]) -> Vec<Vec<String>> {
        let row = |(at, values): &(u64, &Values)| {
            std::iter::once(at.to_string())
                .chain(values.values().map(|value| format!("{value:.4}")))
                .collect()
        };
        epochs.iter().map(row).collect()
    }
}

impl Observer<Network, ReplayBuffer<4>> for Reporter {
    fn on_record(&mut self, record: &Record, view: &View<'_, Network, ReplayBuffer<4>>) -> Result<Control> {
        self.started.get_or_insert_with(|| (Instant::now(), view.iteration));
        let is_last = matches!(record, Record::Step(_)) && view.iteration == view.iterations;
        if is_last || matches!(record, Record::Epoch(_) | Record::Event(_)) {
            self.draw(view)?;
        }
        Ok(Control::Continue)
    }
}

/// So many of `0..count`, evenly spread.
fn spread(count: usize, wanted: usize) -> Vec<usize> {
    let wanted = wanted.min(count);
    (0..wanted).map(|i| i * count / wanted).collect()
}

/// Means of equal stretches of a curve, so that it has a few hundred points at most.
fn thin(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let points: Vec<(f64, f64)> = points.collect();
    let stretch = points.len().div_ceil(POINTS).max(1);
    points
        .chunks(stretch)
        .map(|part| {
            let n = part.len() as f64;
            let sum = part.iter().fold((0.0, 0.0), |sum, p| (sum.0 + p.0, sum.1 + p.1));
            (sum.0 / n, sum.1 / n)
        })
        .collect()
}
