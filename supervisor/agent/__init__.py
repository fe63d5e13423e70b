"""The agent: turns and steps, the transcript that the model is shown, and the models."""
