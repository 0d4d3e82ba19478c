//! Accuracy under attack, of the classifier as it stands and behind refinement.

use std::ops::ControlFlow;

use burn::tensor::Device;
use indicatif::ProgressBar;
use jem_core::data::ImageSet;
use jem_core::energy::JointEnergy;
use jem_core::error::Result;
use jem_core::noise::Noise;
use jem_eval::attack::{Defence, Norm, PgdConfig, RefinedConfig, RobustAccuracy, RobustAccuracyConfig};

use crate::detection::BATCH;
use crate::ledger::Ledger;
use crate::options::Settings;
use crate::subject::{Model, Subject};

/// A curve, and what was attacked.
pub struct Curve {
    pub defence: String,
    pub result: RobustAccuracy,
}

/// Every norm against every defence; each is a part of its own.
pub fn curves(
    ledger: &mut Ledger,
    subject: &Subject,
    joint: &JointEnergy<&Model>,
    test: &ImageSet,
    settings: &Settings,
    device: &Device,
) -> Result<Vec<Curve>> {
    let mut curves = Vec::new();
    if settings.attacked == 0 {
        return Ok(curves);
    }
    let attacked = test.take_per_class(settings.attacked.div_ceil(test.num_classes()))?;
    let norms = [
        (Norm::Linf, settings.linf.iter().map(|radius| radius / 255.0).collect::<Vec<f64>>()),
        (Norm::L2, settings.l2.clone()),
    ];
    for (norm, radii) in norms {
        let Some(&last) = radii.last() else { continue };
        let config = match norm {
            Norm::Linf => PgdConfig::linf(last),
            Norm::L2 => PgdConfig::l2(last),
        };
        // A quarter of the radius a step crosses the ball several times whatever the number of steps.
        let config = config
            .with_num_steps(settings.attack_steps)
            .with_step_size(2.5 * last / settings.attack_steps as f64)
            .with_restarts(settings.restarts);
        let evaluation = RobustAccuracyConfig::new(config, radii).with_batch(BATCH).init()?;
        let mut measure = |defence: String, attacked_model: &dyn Defence<4>| -> Result<()> {
            let name = format!("attack: {norm:?}, {defence}");
            let result = ledger.part(&name, || {
                let bar = ProgressBar::new(0);
                let mut watch = |progress: jem_eval::Progress| {
                    bar.set_length(progress.total as u64);
                    bar.set_position(progress.done as u64);
                    ControlFlow::Continue(())
                };
                let mut noise = Noise::host(settings.seed);
                let result = evaluation.run(attacked_model, &attacked, device, &mut noise, &mut watch);
                bar.finish_and_clear();
                result
            })?;
            curves.push(Curve { defence, result });
            Ok(())
        };
        measure("classifier".to_owned(), joint.classifier())?;
        for &steps in &settings.refine {
            let refined =
                RefinedConfig::new(steps).init(JointEnergy::new(&subject.model), subject.sampler.clone())?;
            measure(format!("JEM-{steps}"), &refined)?;
        }
    }
    Ok(curves)
}
