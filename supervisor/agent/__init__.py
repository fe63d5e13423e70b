"""The mind proper: turns and steps, what the model is shown, and the models."""
