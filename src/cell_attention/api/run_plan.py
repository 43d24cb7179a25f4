"""What `train` and `pretrain` do with their plan: say how long it takes, train, save."""

from pathlib import Path

from cell_attention.inference.fit import TrainingPlan, fit_into, train_members
from cell_attention.inference.model_folder import CONFIG, Model
from cell_attention.progress import Progress, duration


def run_plan(
    plan: TrainingPlan,
    folder: str | Path | None,
    *,
    fresh: bool,
    checkpoint_seconds: float,
    progress: Progress,
) -> Model:
    """Train what is planned, into a MODEL_DIR if there is one."""
    settings, place = plan.settings, None if folder is None else Path(folder)
    plan.warm_up()
    finished = place is not None and (place / CONFIG).exists()
    if progress.shows_time and not finished:
        count, epochs = len(plan.fold.train), settings.training.epochs
        time = plan.epoch_seconds() * epochs * len(plan.members)
        less = ", less if validation stops improving earlier" if settings.training.patience else ""
        progress.remark(f"about {duration(time)} for {epochs} epochs of {count:,} graphs{less}")
    with progress.jobs(len(plan.members), settings.training.epochs) as heard:
        if place is None:
            return plan.model(train_members(plan, heard), settings.digest())
        return fit_into(
            place, plan, fresh=fresh, checkpoint_seconds=checkpoint_seconds, progress=heard
        )
